//! What CONTRIBUTING.md adds to the sources in an hour, taken from the text of the page.
//!
//! Each block of Rust in the section is a new file, or lines that go below a line of a file that exists: the text before the block names the file
//! in backticks and says `below` which line.

use std::path::Path;

/// The page, and the section of it.
pub const PAGE: &str = "CONTRIBUTING.md";
const SECTION: &str = "## Add an algorithm in an hour\n";

/// Lines below a line of a file that exists.
pub struct Insertion {
    /// The file.
    pub file: String,
    /// The line.
    pub find: String,
    /// The line, and what goes below it.
    pub replace: String,
}

/// What the page adds.
pub struct Additions {
    /// Lines below lines of files that exist.
    pub insertions: Vec<Insertion>,
    /// Whole files by their paths.
    pub files: Vec<(String, String)>,
}

/// Reads the page.
pub fn read(root: &Path) -> Result<Additions, String> {
    let page = std::fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    parse(&page, &|file| root.join(file).is_file())
}

fn parse(page: &str, exists: &dyn Fn(&str) -> bool) -> Result<Additions, String> {
    let section = page.split_once(SECTION).ok_or_else(|| format!("{PAGE} has no section {SECTION:?}"))?.1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut additions = Additions { insertions: Vec::new(), files: Vec::new() };
    // Text and blocks take turns.
    let pieces: Vec<&str> = section.split("```").collect();
    for pair in pieces.chunks_exact(2) {
        let (text, Some(block)) = (pair[0], pair[1].strip_prefix("rust\n")) else { continue };
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let is_file = |word: &&&str| word.starts_with("crates/") && word.ends_with(".rs");
        let file = quoted.iter().rfind(is_file).ok_or_else(|| format!("{PAGE} says no file for:\n{block}"))?;
        let below = text.rsplit_once("below `").and_then(|(_, rest)| rest.split('`').next());
        match (exists(file), below) {
            (true, Some(line)) => {
                let find = format!("\n{line}\n");
                let replace = format!("{find}{block}");
                additions.insertions.push(Insertion { file: (*file).to_owned(), find, replace });
            }
            (false, None) => additions.files.push(((*file).to_owned(), block.to_owned())),
            (true, None) => return Err(format!("{PAGE} does not say below which line of {file} this goes:\n{block}")),
            (false, Some(_)) => return Err(format!("{PAGE} adds lines to {file}, which does not exist")),
        }
    }
    if additions.files.is_empty() { Err(format!("{PAGE} adds no file")) } else { Ok(additions) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_where_each_block_goes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace");
        let additions = read(root).expect("a page that can be followed");
        let files: Vec<&str> = additions.files.iter().map(|(file, _)| file.as_str()).collect();
        let expected = [
            "crates/algorithms/src/personal/posted_propagation.rs",
            "crates/task/src/algorithms/posted_propagation.rs",
            "crates/sim/tests/posted_propagation.rs",
        ];
        assert_eq!((files, additions.insertions.len()), (expected.to_vec(), 3));
    }

    #[test]
    fn a_block_without_a_place_is_refused() {
        let page = |text: &str| format!("# A\n{SECTION}{text}\n```rust\nfn f() {{}}\n```\n## B\n```rust\nno\n```\n");
        let parsed = |text: &str| parse(&page(text), &|file| file == "crates/a/old.rs");
        let added = parsed("In `crates/a/new.rs`:").expect("a new file");
        assert_eq!(added.files, [("crates/a/new.rs".to_owned(), "fn f() {}\n".to_owned())]);
        assert!(parsed("In `crates/a/old.rs`, below `mod a;`:").is_err_and(|why| why.contains("adds no file")));
        for text in ["Somewhere:", "In `crates/a/old.rs`:", "In `crates/a/new.rs`, below `mod a;`:"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
