use super::*;
use crate::read::KEYS;
use crate::task::names_of;

fn page(name: &str) -> String {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect(&path)
}

/// The rows of a page's table that begins so, without its two head lines.
fn rows(page: &str, head: &str) -> Vec<String> {
    let start = page.find(head).unwrap_or_else(|| panic!("no table {head}"));
    page[start..].lines().take_while(|line| line.starts_with('|')).skip(2).map(str::to_owned).collect()
}

#[test]
fn names_are_words_of_a_task_file_and_each_is_described_once() {
    for (k, one) in TABLE.iter().enumerate() {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(!one.name.is_empty() && one.name.chars().all(plain), "{one:?}");
        assert!(!one.sentence.is_empty() && !one.sentence.ends_with('.'), "{one:?}: {}", one.sentence);
        assert!(!NAMES[..k].contains(&one.name), "{one:?} twice");
        let section = one.keys.first().map_or("", |key| key.path);
        let inside = |path: &str| path == section || path.starts_with(&format!("{section}."));
        assert!(one.keys.iter().all(|key| inside(key.path)), "{one:?} has keys in two sections");
    }
}

#[test]
fn the_page_on_tasks_holds_this_very_table() {
    let (page, expected) = (page("docs/task.md"), markdown());
    assert!(page.contains(&expected), "docs/task.md is behind the code; its table should be:\n{expected}");
}

#[test]
fn the_readme_lists_the_algorithms_and_what_they_do() {
    let rows = rows(&page("README.md"), "| `algorithm` |");
    assert_eq!(rows.len(), TABLE.len(), "{rows:?}");
    for (row, one) in rows.iter().zip(TABLE) {
        let expected = format!("| `{}` | {} | ", one.name, one.sentence);
        assert!(row.starts_with(&expected), "README.md is behind the code; a row should begin:\n{expected}");
    }
}

/// Where the documentation of a key names algorithms, it names those that can do it.
#[test]
fn keys_name_the_algorithms_that_read_them() {
    let doc = |path: &str| KEYS.iter().find(|key| key.path == path).expect(path).doc;
    let learned = names_of(TABLE, |one| one.learned_graph.is_some());
    assert!(doc("graph.kind").contains(&format!("algorithm = {learned}")), "{learned}");
    assert!(doc("privacy").contains("see the table of algorithms"), "it names none, and the table is made of them");
}
