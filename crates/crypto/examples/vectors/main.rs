//! Writes the published known-answer vectors again: `cargo run --release --package sottovoce-crypto --example vectors`
//!
//! They follow from seeds alone; `tests/vectors.rs` compares what is on disk with what this program would write.

mod cases;
mod replay;
mod two_party_cases;
mod two_party_replay;

fn main() -> std::io::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in cases::files() {
        std::fs::write(folder.join(name), &text)?;
        println!("{name}: {} cases", text.matches("\"expect\"").count());
    }
    Ok(())
}
