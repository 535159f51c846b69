//! The published vectors: on disk as the generator makes them, and each of them gives what it says.

#[path = "../examples/vectors/cases.rs"]
mod cases;
#[path = "../examples/vectors/replay.rs"]
mod replay;
#[path = "../examples/vectors/two_party_cases.rs"]
mod two_party_cases;
#[path = "../examples/vectors/two_party_replay.rs"]
mod two_party_replay;

use std::path::Path;

fn on_disk(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn published_vectors_are_those_that_seeds_give() {
    for (name, text) in cases::files() {
        assert_eq!(on_disk(name), text, "{name} differs: cargo run --release -p sottovoce-crypto --example vectors");
    }
}

#[test]
fn every_published_vector_gives_what_it_says() {
    let (mut honest, mut tampered) = (0, 0);
    for (name, _) in cases::files() {
        let cases: Vec<serde_json::Value> = serde_json::from_str(&on_disk(name)).expect("a list of cases");
        for case in cases {
            assert_eq!(case["expect"], replay::outcome(&case), "{name}: {}", case["name"]);
            if case["expect"] == "accept" { honest += 1 } else { tampered += 1 }
        }
    }
    assert!(honest >= 40 && tampered >= 150, "{honest} honest and {tampered} tampered cases");
}
