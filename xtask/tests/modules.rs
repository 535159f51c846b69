//! The inside of each crate, as tests: modules that do not use one another in a circle, one style of modules, one place for tests, and sizes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The most lines of a crate without its tests: room for the families of algorithms that are still to come, and no more.
const CRATE_LINES_MAX: usize = 16_000;

/// The most lines of all files of one folder, without their tests.
const FOLDER_LINES_MAX: usize = 4_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace").to_path_buf()
}

/// The source folders of all crates.
fn crates() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).expect("crates").flatten().map(|entry| entry.path());
    let all = folders.chain([root().join("fuzz"), root().join("xtask")]);
    let mut sources: Vec<PathBuf> = all.map(|folder| folder.join("src")).filter(|folder| folder.is_dir()).collect();
    sources.sort();
    assert!(sources.len() > 10, "{sources:?}");
    sources
}

/// All source files below a folder, and their texts.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            found.push((path, text));
        }
    }
    found
}

/// Where a module stands in its crate: `["task", "config"]`; nothing for the crate itself.
type Place = Vec<String>;

fn place(source: &Path, file: &Path) -> Place {
    let inside = file.strip_prefix(source).expect("a file of the crate").with_extension("");
    let mut place: Place = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if place.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        place.pop();
    }
    place
}

/// Whether a module is for tests alone.
fn is_of_tests(place: &Place) -> bool {
    place.iter().any(|name| name == "tests" || name == "testing")
}

/// A text without what is for tests alone, without comments, and without what stands in quotes.
fn program(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.map(|line| line.split('"').step_by(2).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

/// The paths that a tree of `use` names, and the names that they have here: `a::{b, c as d}` names `a::b` as b and `a::c` as d.
fn names(tree: &str, before: &[String], found: &mut Vec<(Place, String)>) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let head = head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
        let path: Place = before.iter().cloned().chain(head).collect();
        let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
        let (mut depth, mut from) = (0, 0);
        for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names(&inner[from..at], &path, found);
                    from = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty() && *part != "self");
    let path: Place = before.iter().cloned().chain(parts.map(str::to_owned)).collect();
    if let Some(last) = path.last().cloned() {
        found.push((path, alias.map_or(last, str::to_owned)));
    }
}

/// The modules of a crate: their programs without `use`, and what they use, with the names that it has there.
struct Modules {
    uses: BTreeMap<Place, Vec<(Place, String)>>,
    bodies: BTreeMap<Place, String>,
}

impl Modules {
    fn of(source: &Path) -> Self {
        let mut modules = Modules { uses: BTreeMap::new(), bodies: BTreeMap::new() };
        for (file, text) in files(source) {
            let (mut uses, mut body) = (Vec::new(), String::new());
            for statement in program(&text).split_inclusive(';') {
                let (rest, tree) = match statement.split_once("use ") {
                    Some((rest, tree))
                        if rest.trim_end().ends_with(['}', ';', ']', ')'])
                            || rest.trim().is_empty()
                            || rest.trim_end().ends_with("pub") =>
                    {
                        (rest, tree)
                    }
                    _ => (statement, ""),
                };
                body += rest;
                names(tree.trim_end_matches(';'), &[], &mut uses);
            }
            let place = place(source, &file);
            modules.uses.insert(place.clone(), uses);
            modules.bodies.insert(place, body);
        }
        modules
    }

    /// A path of this crate from its root; none for what is of other crates.
    fn absolute(&self, from: &Place, path: &[String]) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                let base = from.get(..from.len().checked_sub(up)?)?;
                Some(base.iter().chain(&path[up..]).cloned().collect())
            }
            _ => {
                let child: Place = from.iter().chain([first]).cloned().collect();
                self.uses.contains_key(&child).then(|| from.iter().chain(path).cloned().collect())
            }
        }
    }

    /// The module where something is defined, also when another one hands it on.
    fn defined(&self, path: &Place, depth: usize) -> Option<Place> {
        let at = (0..=path.len()).rev().find(|&at| self.uses.contains_key(&path[..at]))?;
        let module = path[..at].to_vec();
        let handed = path.get(at).and_then(|name| self.uses[&module].iter().find(|(_, alias)| alias == name));
        match handed {
            Some((other, _)) if depth < 8 => {
                let other: Place = other.iter().chain(&path[at + 1..]).cloned().collect();
                self.defined(&self.absolute(&module, &other)?, depth + 1)
            }
            _ => Some(module),
        }
    }

    /// Which module uses which, among modules of one folder.
    fn arrows(&self) -> BTreeMap<Place, BTreeSet<Place>> {
        let mut arrows: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
        for (from, uses) in self.uses.iter().filter(|(from, _)| !is_of_tests(from)) {
            let body = &self.bodies[from];
            let starts = ["crate::", "super::"].iter().flat_map(|word| body.match_indices(word));
            let written = starts.map(|(at, _)| {
                let path = body[at..].split(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter)).next();
                path.unwrap_or_default()
                    .split("::")
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
                    .collect::<Place>()
            });
            let paths = uses.iter().map(|(path, _)| path.clone()).chain(written);
            for to in paths.filter_map(|path| self.defined(&self.absolute(from, &path)?, 0)) {
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if shared < from.len() && shared < to.len() {
                    arrows.entry(from[..=shared].to_vec()).or_default().insert(to[..=shared].to_vec());
                }
            }
        }
        arrows
    }
}

/// A module that comes back to itself, and the way.
fn circle(arrows: &BTreeMap<Place, BTreeSet<Place>>) -> Option<Vec<String>> {
    for start in arrows.keys() {
        let mut came_from: BTreeMap<&Place, &Place> = BTreeMap::new();
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            for to in arrows.get(at).into_iter().flatten() {
                if to == start {
                    let way = std::iter::successors(Some(at), |at| came_from.get(*at).copied());
                    return Some(way.map(|place| place.join("::")).collect());
                }
                if !came_from.contains_key(to) {
                    came_from.insert(to, at);
                    next.push(to);
                }
            }
        }
    }
    None
}

#[test]
fn modules_of_a_crate_do_not_use_one_another_in_a_circle() {
    for source in crates() {
        let found = circle(&Modules::of(&source).arrows());
        assert!(found.is_none(), "{}: {} and back", source.display(), found.unwrap_or_default().join(" <- "));
    }
}

/// A circle is seen through a module that hands on what another defines, and through a path in the middle of a function.
#[test]
fn a_circle_is_noticed() {
    let folder = std::env::temp_dir().join(format!("sottovoce-modules-{}", std::process::id()));
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, text).expect("written");
    };
    write("lib.rs", "mod a;\nmod b;\npub use b::{deep::{Thing as Other}, Unused};\n");
    write("a.rs", "use crate::Other;\nfn f() {}\n// crate::b\n");
    write("b/mod.rs", "mod deep;\nfn g() -> u8 { let x = 1; crate::a::f(x) }\n");
    write("b/deep.rs", "pub struct Thing;\n");
    assert_eq!(circle(&Modules::of(&folder).arrows()), Some(vec!["b".to_owned(), "a".to_owned()]));
    write("b/mod.rs", "mod deep;\nfn g() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    assert_eq!(circle(&Modules::of(&folder).arrows()), None);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_module_with_parts_is_a_folder_with_a_door() {
    for (file, _) in crates().iter().flat_map(|source| files(source)) {
        let folder = file.with_extension("");
        assert!(!folder.is_dir(), "{} and its folder: accepted is {}/mod.rs", file.display(), folder.display());
    }
}

#[test]
fn unit_tests_stand_at_the_end_of_their_file_or_in_a_file_beside_it() {
    for (file, text) in crates().iter().flat_map(|source| files(source)) {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(!name.ends_with("_tests.rs"), "{}: accepted is a folder with tests.rs in it", file.display());
        assert!(!text.contains("#[path"), "{}: a module lies where its name says", file.display());
        let (program, tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
        assert!(
            tests.is_empty() || tests.ends_with("\n}\n") && tests.matches("\n}\n").count() == 1,
            "{}: tests stand last",
            file.display()
        );
        if !["tests.rs", "testing.rs"].contains(&name.as_str()) {
            assert!(!program.contains("#[test]"), "{}: tests stand in `mod tests`", file.display());
        }
        for after in program.split("#[cfg(test)]\n").skip(1) {
            let item = after.lines().next().unwrap_or_default();
            let known = item.ends_with("mod tests;") || item.ends_with("mod testing;");
            assert!(known, "{}: {item:?} is for tests alone, outside of `tests` and `testing`", file.display());
        }
    }
}

#[test]
fn crates_and_folders_can_be_read_in_a_day() {
    for source in crates() {
        let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for (file, text) in files(&source).iter().filter(|(file, _)| !is_of_tests(&place(&source, file))) {
            let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let folder = file.parent().expect("a folder").to_owned();
            *folders.entry(folder).or_default() += program.lines().count();
        }
        let all: usize = folders.values().sum();
        assert!(all <= CRATE_LINES_MAX, "{} has {all} lines", source.display());
        for (folder, lines) in folders {
            assert!(lines <= FOLDER_LINES_MAX, "{} has {lines} lines", folder.display());
        }
    }
}
