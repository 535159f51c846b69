//! Every command in every document is run, and what documents show as output is what comes out.
//!
//! A document's `sh` blocks are run in order, in an empty folder of its own. A block that follows a line such as
//! `` `task.toml`: `` is a file that the reader writes, so it is written. A `text` block is output: each of its lines must
//! have been printed by a command before it, times aside.
//!
//! `sottovoce peer start` runs on while the reader goes on in another terminal, until it is stopped or the document ends. The
//! reader has patience: the next command is given when all such peers are quiet. Where a document names port 41nn, a free one is used.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Documents that would be of no use without a command.
const WITH_COMMANDS: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "THREATS.md",
    "docs/peer.md",
    "docs/privacy.md",
    "docs/run-directory.md",
    "docs/task.md",
];

/// Documents that may do without. Pages under `docs` that are in neither list may too.
const WITHOUT_COMMANDS: &[&str] =
    &["ARCHITECTURE.md", "CHANGELOG.md", "papers/2018-aistats/README.md", "papers/slides/README.md"];

/// Lines that are not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo install --path crates/cli", "it would install the program for the user who runs the tests"),
    ("cargo test --release --package sottovoce-sim", "the test command runs these tests"),
    ("python3 benches/peers/numba_wake.py", "it downloads numba, and its figures need an idle machine"),
];

/// What the walk through a new algorithm names and the reader has yet to write.
const YET_TO_WRITE: &str = "posted_propagation.rs";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// Every document: its name and its text.
fn documents() -> Vec<(String, String)> {
    let mut names: BTreeSet<String> =
        WITH_COMMANDS.iter().chain(WITHOUT_COMMANDS).map(|&name| name.to_owned()).collect();
    for entry in fs::read_dir(root().join("docs")).expect("docs").flatten() {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if name.ends_with(".md") {
            names.insert(format!("docs/{name}"));
        }
    }
    names
        .into_iter()
        .map(|name| {
            let text = fs::read_to_string(root().join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, text)
        })
        .collect()
}

/// A fenced block.
struct Block<'t> {
    language: &'t str,
    /// The file it is, by the line before it.
    file: Option<&'t str>,
    lines: Vec<&'t str>,
}

/// The fenced blocks of a document, and its lines outside of them.
fn read(text: &str) -> (Vec<Block<'_>>, Vec<&str>) {
    let (mut blocks, mut prose) = (Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            prose.push(line);
            continue;
        };
        let before = prose.iter().rev().find(|line| !line.trim().is_empty());
        let file = before.and_then(|line| line.trim().strip_prefix('`')?.strip_suffix("`:"));
        let lines = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
        blocks.push(Block { language, file, lines });
    }
    (blocks, prose)
}

/// The words of a printed line, times aside: they are never the same twice.
fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let unit = ["ms", "s", "min"].contains(&word.trim_end_matches([',', ';', '.']));
        match words.last_mut() {
            Some(number) if unit && number.parse::<f64>().is_ok() => *number = "TIME",
            _ => words.push(word),
        }
    }
    words
}

/// Follows a document as a reader would. Returns how many commands of this project it has.
fn follow(name: &str, text: &str, folder: &Path) -> usize {
    let chores = fs::read_to_string(root().join("xtask/src/main.rs")).expect("xtask");
    let (mut commands, mut printed) = (0, Vec::new());
    let mut peers = Peers { folder, running: Vec::new() };
    let free = with_free_ports(text);
    for block in read(&free).0 {
        match (block.language, block.file) {
            ("sh", _) => {
                for line in block.lines.iter().map(|line| line.trim()) {
                    let ours = line.strip_prefix("sottovoce ").or(line.strip_prefix("cargo run --release -- "));
                    if let Some(peer) = ours.and_then(|ours| ours.strip_prefix("peer start ")) {
                        commands += 1;
                        peers.start(peer);
                    } else if let Some(arguments) = ours {
                        commands += 1;
                        peers.wait();
                        printed.extend(run(name, line, arguments, folder));
                    } else if let Some(chore) = line.strip_prefix("cargo xtask ") {
                        commands += 1;
                        assert!(chores.contains(&format!("\n  {chore} ")), "{name}: `{line}` is no chore of xtask's");
                    } else {
                        let known = NOT_RUN.iter().any(|(known, _)| *known == line);
                        assert!(known || line.is_empty() || line.starts_with('#'), "{name}: `{line}` is never tested");
                    }
                }
            }
            ("text", _) => {
                for line in block.lines.iter().filter(|line| !line.trim().is_empty()) {
                    let found = printed.iter().any(|printed: &String| words(printed) == words(line));
                    assert!(found, "{name} shows `{line}`, but its commands print\n{}", printed.join("\n"));
                }
            }
            // Pieces of source files are shown by the name of the file, too.
            ("rust", _) => {}
            (_, Some(file)) => fs::write(folder.join(file), block.lines.join("\n") + "\n").expect("a file is written"),
            _ => {}
        }
    }
    commands
}

/// Peers that a document has started.
struct Peers<'f> {
    folder: &'f Path,
    running: Vec<(String, Child)>,
}

impl Peers<'_> {
    fn start(&mut self, name: &str) {
        let process = Command::new(env!("CARGO_BIN_EXE_sottovoce"))
            .args(["peer", "start", name, "--with-parent"])
            .current_dir(self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        self.running.push((name.to_owned(), process));
    }

    /// Until all have nothing left to say, or have ended.
    fn wait(&mut self) {
        let began = Instant::now();
        while let Some(name) = self.running.iter_mut().find_map(|(name, process)| {
            let status = ["peer", "status", name, "--json"];
            let said = Command::new(env!("CARGO_BIN_EXE_sottovoce")).args(status).current_dir(self.folder).output();
            let quiet =
                String::from_utf8_lossy(&said.expect("the program starts").stdout).contains("\"phase\":\"quiet\"");
            let ended = process.try_wait().expect("it is ours").is_some();
            (!quiet && !ended).then(|| name.clone())
        }) {
            assert!(began.elapsed() < Duration::from_secs(60), "peer {name} is not quiet after a minute");
            std::thread::sleep(Duration::from_millis(100));
        }
        self.running.retain_mut(|(_, process)| process.try_wait().expect("it is ours").is_none());
    }
}

impl Drop for Peers<'_> {
    fn drop(&mut self) {
        for (_, process) in &mut self.running {
            // It may have ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A text with free ports in place of 4100 to 4199.
fn with_free_ports(text: &str) -> String {
    let mut parts = text.split("/tcp/41");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut known: Vec<(String, u16)> = Vec::new();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(digits) = digits else {
            out += "/tcp/41";
            out += part;
            continue;
        };
        let port = known.iter().find(|(known, _)| known == digits).map(|(_, port)| *port).unwrap_or_else(|| {
            let start = 10_000 + (std::process::id() % 19_000) as u16;
            let taken = |port: &u16| known.iter().any(|(_, known)| known == port);
            let port =
                (start..30_000).find(|port| !taken(port) && std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok());
            let port = port.expect("a free port");
            known.push((digits.to_owned(), port));
            port
        });
        out += &format!("/tcp/{port}{}", &part[2..]);
    }
    out
}

/// Runs the program. Returns the lines it prints.
fn run(name: &str, line: &str, arguments: &str, folder: &Path) -> Vec<String> {
    assert!(!line.contains(['|', '>', '<', '"', '\'', '$', '&', ';', '\\']), "{name}: `{line}` needs a shell");
    let output = Command::new(env!("CARGO_BIN_EXE_sottovoce"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: `{line}` ends with {}:\n{error}", output.status);
    String::from_utf8(output.stdout).expect("the program prints UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn every_command_in_every_document_works() {
    for (name, text) in documents() {
        let folder = tempfile::tempdir().expect("a folder");
        let commands = follow(&name, &text, folder.path());
        assert!(commands > 0 || !WITH_COMMANDS.contains(&&*name), "{name} has no command");
    }
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for line in ["cargo run --release -- demo", "cargo xtask test"] {
        assert!(readme.lines().any(|found| found == line), "README.md does not say `{line}`");
    }
}

#[test]
fn the_page_on_the_run_directory_names_everything_in_one() {
    let page = fs::read_to_string(root().join("docs/run-directory.md")).expect("docs/run-directory.md");
    let names = |word: &str| assert!(page.contains(&format!("`{word}`")), "docs/run-directory.md does not name {word}");
    let folder = tempfile::tempdir().expect("a folder");
    follow("docs/run-directory.md", &page, folder.path());
    for run in ["run", "private-run", "moons-run"] {
        let run = folder.path().join(run);
        for entry in fs::read_dir(&run).expect("the page makes all").flatten() {
            names(&entry.file_name().into_string().expect("a name in UTF-8"));
        }
        let text = |file: &str| fs::read_to_string(run.join(file)).expect("a file of the run");
        let summary: serde_json::Value = serde_json::from_str(&text("summary.json")).expect("summary.json is JSON");
        let ledger = text("ledger.jsonl");
        let charge = serde_json::from_str(ledger.lines().next().expect("a charge")).expect("a line is JSON");
        let parts = ["accounting", "model_bits", "learned_graph"].iter().filter_map(|part| summary.get(part));
        for object in [&summary, &summary["accuracy"], &charge].into_iter().chain(parts) {
            object.as_object().expect("an object").keys().for_each(|key| names(key));
        }
        names(text("metrics.csv").lines().next().expect("a header"));
    }
    assert!(folder.path().join("private-run/home.csv").exists(), "the second run is private");
    assert!(folder.path().join("moons-run/edges.csv").exists(), "the third run learns its graph");
}

#[test]
fn links_and_paths_lead_somewhere() {
    for (name, text) in documents() {
        let page = root().join(&name);
        let folder = page.parent().expect("a document is in a folder");
        let prose = read(&text).1.join("\n");
        for target in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or("");
            let outside = file.is_empty() || file.contains("://");
            assert!(outside || folder.join(file).exists(), "{name} links to {target}, which does not exist");
        }
        for code in prose.split('`').skip(1).step_by(2) {
            let tops = ["crates/", "xtask/", "docs/", "examples/", "benches/", "papers/", ".ci/"];
            let is_path = tops.iter().any(|top| code.starts_with(top)) && !code.contains(char::is_whitespace);
            if is_path && !code.ends_with(YET_TO_WRITE) {
                assert!(root().join(code).exists(), "{name} names {code}, which does not exist");
            }
        }
    }
}

#[test]
fn a_document_that_is_wrong_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let notices = |text: &str| std::panic::catch_unwind(|| follow("a page", text, folder.path())).is_err();
    assert!(!notices("```sh\nsottovoce --version\n```\n"));
    for wrong in [
        "```sh\nsottovoce trian\n```\n",
        "```sh\nsottovoce --version | cat\n```\n",
        "```sh\nmake install\n```\n",
        "```sh\nsottovoce peer start nowhere\nsottovoce peer status nowhere\n```\n",
        "```sh\ncargo xtask dance\n```\n",
        "```sh\nsottovoce --version\n```\n```text\nsottovoce 99\n```\n",
    ] {
        assert!(notices(wrong), "{wrong}");
    }
    assert_eq!(words("20,000 wakes, 60 ms; objective 291.278."), words("20,000 wakes, 1.2 s; objective 291.278."));
    assert_ne!(words("local 0.739 26 ms"), words("local 0.740 26 ms"));
}
