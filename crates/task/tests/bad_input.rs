//! What bad input gets: one clear line that names file, line or field and says what would be accepted.

mod support;

use support::{gzip, loaded, task};

/// Loads the good task with these files over it, and returns the one line it is refused with.
fn refused(files: &[(&str, &[u8])]) -> String {
    let found = loaded(files).expect_err("bad input is refused").to_string();
    assert!(!found.contains('\n'), "{found}");
    found
}

fn check(name: &str, content: &str, expected: &str) {
    let found = refused(&[(name, content.as_bytes())]);
    assert!(found.contains(expected), "{name}:\n{content}\nsaid:     {found}\nexpected: {expected}");
    assert!(found.contains(name), "{found} does not name {name}");
}

#[test]
fn the_good_task_is_good() {
    loaded(&[]).expect("a problem");
}

#[test]
fn a_bad_row_of_points_is_named_by_file_and_line() {
    for (content, expected) in [
        ("", "train.csv: the file is empty; accepted: a header and at least one row"),
        ("agent,label,x\n", "train.csv: no rows; accepted: at least one row"),
        (
            "agent,label\nann,1\nbob,1\n",
            "train.csv, line 1: no feature column; accepted: the header agent,label,<feature>...",
        ),
        ("user,label,x\nann,1,1\n", "line 1: column 1 is \"user\", not \"agent\"; accepted: the header agent,label"),
        ("agent,target,x\nann,1,1\n", "line 1: column 2 is \"target\", not \"label\"; accepted"),
        ("agent\nann\n", "line 1: column 2 is \"\", not \"label\"; accepted"),
        ("agent,label,x,y\nann,1,1,1\nbob,1,1\n", "line 3: 3 fields; accepted: 4, as in the header"),
        ("agent,label,x,y\nann,1,1,1,1\n", "line 2: 5 fields; accepted: 4, as in the header"),
        ("agent,label,x,y\nann,1,1,1\n\n\nbob,1,1,one\n", "line 5: column \"y\" is \"one\"; accepted: a finite number"),
        ("agent,label,x,y\nann,1,,1\n", "line 2: column \"x\" is \"\"; accepted: a finite number"),
        ("agent,label,x,y\nann,1,1,NaN\n", "line 2: column \"y\" is \"NaN\"; accepted: a finite number"),
        ("agent,label,x,y\nann,1,-inf,1\n", "line 2: column \"x\" is \"-inf\"; accepted: a finite number"),
        ("agent,label,x,y\nann,1,1e999,1\n", "line 2: column \"x\" is \"1e999\"; accepted: a finite number"),
        (
            "agent,label,x,y\nann,1,1e308,1\n",
            "line 2: column \"x\" is \"1e308\"; accepted: a finite number, at most 1e75",
        ),
        ("agent,label,x\nann,yes,1\n", "line 2: label is \"yes\"; accepted: a finite number"),
        ("agent,label,x\nann,nan,1\n", "line 2: label is \"nan\"; accepted: a finite number"),
        ("agent,label,x\nann,2,1\n", "line 2: label is 2; accepted by this loss: -1 and 1, or 0 and 1"),
        ("agent,label,x\nann,0.5,1\n", "line 2: label is 0.5; accepted by this loss"),
        ("agent,label,x\nann,0,1\nbob,1,1\nbob,-1,1\n", "line 4: label is -1, but 0 stands in "),
        ("agent,label,x\n,1,1\n", "line 2: an agent without a name; accepted: any text"),
    ] {
        check("train.csv", content, expected);
    }
    let not_utf8 = refused(&[("train.csv", b"agent,label,x\n\xff\xfe,1,1\n")]);
    assert!(not_utf8.contains("train.csv, line 2") && not_utf8.contains("not UTF-8"), "{not_utf8}");
}

#[test]
fn a_quote_that_is_never_closed_is_named_where_it_opens() {
    for (content, line) in [
        ("agent,label,x\nann,1,1\n\"bob,1,2\nann,1,3\n", 3),
        ("agent,label,x\nann,1,1\n\nbob,1,\"2\nann,1,3\n", 4),
        ("agent,label,x\n\"say \"\"hi\"\"\",1,1\n\"\"\"bob,1,2", 3),
        ("\"agent,label,x\nann,1,1\n", 1),
        ("\u{feff}\"agent,label,x\nann,1,1\n", 1),
    ] {
        let expected = format!("train.csv, line {line}: a quote is opened and never closed; accepted: quotes in pairs");
        check("train.csv", content, &expected);
    }
    check("train.csv", "agent,label,x\n\"ann\",1\nbob,1,\"2\n", "line 2: 2 fields; accepted: 3");
    check("train.csv", "agent,label,x\nann,1,5\"\nbob,1,1\n", "line 2: column \"x\" is \"5\\\"\"; accepted");
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    for (content, line) in [
        ("agent,label,x\r\nann,1,1\r\nann,1,bad\r\n", 3),
        ("agent,label,x\r\nann,1,1\r\n\r\n\r\nann,1,bad", 5),
        ("\u{feff}agent,label,x\nann,1,1\nann,1,bad\n", 3),
        ("\u{feff}agent,label,x\nann,1,1\nann,1,1\n\nann,1,bad\n", 5),
        ("agent,label,x\n\"a\nb\",1,1\nann,1,bad\n", 4),
        ("\n\nagent,label,x\nann,1,bad", 4),
        ("agent,label,x\nann,1,bad", 2),
        ("\n\nagent,table,x\n", 3),
    ] {
        check("train.csv", content, &format!("train.csv, line {line}: "));
    }
    let text = task("train.csv", "train.csv.gz");
    let files = [("task.toml", text.as_bytes()), ("train.csv.gz", &gzip(b"agent,label,x\n\nann,1,bad\n"))];
    assert!(refused(&files).contains("train.csv.gz, line 3: "));
}

#[test]
fn a_bad_edge_is_named_by_file_and_line() {
    for (content, expected) in [
        ("", "edges.csv: the file is empty"),
        ("from,to,weight\nann,bob,1\n", "line 1: the columns are \"from,to,weight\"; accepted: the header a,b,weight"),
        ("a,b\nann,bob\n", "line 1: the columns are \"a,b\"; accepted: the header a,b,weight"),
        ("a,b,weight\nann,bob\n", "line 2: 2 fields; accepted: 3"),
        ("a,b,weight\nann,bob,-0.5\n", "line 2: weight is \"-0.5\"; accepted: a finite number above 0"),
        ("a,b,weight\nann,bob,5e-324\n", "line 2: weight is \"5e-324\"; accepted: a finite number above 0, from 1e-75"),
        ("a,b,weight\nann,bob,0\n", "line 2: weight is \"0\"; accepted: a finite number above 0"),
        ("a,b,weight\nann,bob,NaN\n", "line 2: weight is \"NaN\"; accepted: a finite number above 0"),
        ("a,b,weight\nann,bob,inf\n", "line 2: weight is \"inf\"; accepted: a finite number above 0"),
        ("a,b,weight\nann,bob,heavy\n", "line 2: weight is \"heavy\"; accepted: a finite number above 0"),
        (
            "a,b,weight\nann,bob,1\nbob,bob,1\n",
            "line 3: \"bob\" is joined to itself; accepted: an edge between two agents",
        ),
        (
            "a,b,weight\nann,bob,1\ncy,bob,2\nbob,ann,2\n",
            "line 4: \"bob\" and \"ann\" are joined with weight 2, and on line 2 with weight 1; accepted: each pair once",
        ),
        ("a,b,weight\nann,bob,1\nann,bob,1\n", "line 3: \"ann\" and \"bob\" are joined with weight 1, and on line 2"),
        ("a,b,weight\nann,,1\n", "line 2: an agent without a name"),
        (
            "a,b,weight\nann,cy,1\n",
            "edges.csv: agent \"bob\" is in the data, but no edge names it; accepted: an edge, or graph.allow-isolated = true",
        ),
    ] {
        check("edges.csv", content, expected);
    }
}

#[test]
fn a_missing_file_is_named() {
    for (from, to) in [("train.csv", "nobody.csv"), ("edges.csv", "nobody.csv"), ("train.csv", "nobody.csv.gz")] {
        let found = refused(&[("task.toml", task(from, to).as_bytes())]);
        assert!(found.contains("/nobody.csv") && found.contains("cannot be read: No such file"), "{found}");
    }
    let folder =
        refused(&[("task.toml", task("train = \"train.csv\"", "train = \"a.svm\"\nagents = \"b\"").as_bytes())]);
    assert!(folder.contains("/b: cannot be read"), "{folder}");
    // A folder where a file should be.
    let place = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(place.path().join("train.csv")).expect("folder");
    std::fs::write(place.path().join("task.toml"), support::TASK).expect("written");
    let found = support::read(place.path()).expect_err("a folder").to_string();
    assert!(found.contains("train.csv") && found.contains("cannot be read"), "{found}");
}

#[test]
fn a_file_that_is_not_compressed_as_it_says_is_named() {
    let gz = task("train.csv", "train.csv.gz");
    let found = refused(&[("task.toml", gz.as_bytes()), ("train.csv.gz", support::TRAIN.as_bytes())]);
    assert!(found.contains("train.csv.gz") && found.contains("cannot be read"), "{found}");
    let mut cut = gzip(support::TRAIN.as_bytes());
    cut.truncate(cut.len() / 2);
    let found = refused(&[("task.toml", gz.as_bytes()), ("train.csv.gz", &cut)]);
    assert!(found.contains("train.csv.gz") && found.contains("cannot be read"), "{found}");
}

#[test]
fn test_points_that_do_not_fit_are_named() {
    let with_test = task("[graph]", "test = \"test.csv\"\n[graph]");
    for (test, expected) in [
        ("agent,label,x,z\nann,1,1,1\n", "test.csv, line 1: column 4 is \"z\" where "),
        ("agent,label,x\nann,1,1\n", "test.csv, line 1: 1 features where "),
        ("agent,label,x,y\n", "test.csv: no rows"),
        ("agent,label,x,y\nann,0,1,1\n", "test.csv, line 2: label is 0, but -1 stands in "),
        ("agent,label,x,y\nzoe,1,1,1\n", "agent \"zoe\" is in the data, but no edge names it"),
    ] {
        let found = refused(&[("task.toml", with_test.as_bytes()), ("test.csv", test.as_bytes())]);
        assert!(found.contains(expected), "{test}\nsaid:     {found}\nexpected: {expected}");
    }
}

#[test]
fn a_bad_line_of_libsvm_is_named() {
    let svm = task("train = \"train.csv\"", "train = \"train.svm\"\nagents = \"agents.txt\"");
    for (points, agents, expected) in [
        (
            "1 1:2\n-1 0:3\n",
            "ann\nbob\n",
            "train.svm, line 2: \"0:3\" is no entry; accepted: index:value, the index from 1",
        ),
        ("1 1:2\n-1 3\n", "ann\nbob\n", "train.svm, line 2: \"3\" is no entry; accepted"),
        ("1 1:2\n-1 1:nan\n", "ann\nbob\n", "train.svm, line 2: \"1:nan\" is no entry"),
        ("1 4294967295:1\n", "ann\n", "is no entry; accepted: index:value, the index from 1 to 1048576"),
        ("1 2:1 1:1\n", "ann\n", "train.svm, line 1: index 1 after 2; accepted: growing indices"),
        ("1 1:1 1:1\n", "ann\n", "train.svm, line 1: index 1 after 1; accepted: growing indices"),
        ("x 1:1\n", "ann\n", "train.svm, line 1: label is \"x\"; accepted: a finite number"),
        ("3 1:1\n", "ann\n", "train.svm, line 1: label is 3; accepted by this loss"),
        ("1 1:1\n1 1:2\n", "ann\n", "agents.txt: 1 agents for the 2 rows of "),
        ("\n# nothing\n", "", "train.svm: no rows"),
        ("1\n-1\n", "ann\nbob\n", "train.svm: no feature in any row"),
    ] {
        let files =
            [("task.toml", svm.as_bytes()), ("train.svm", points.as_bytes()), ("agents.txt", agents.as_bytes())];
        let found = refused(&files);
        assert!(found.contains(expected), "{points}\nsaid:     {found}\nexpected: {expected}");
    }
}

#[test]
fn a_graph_that_does_not_fit_the_agents_is_named() {
    for (graph, expected) in [
        (
            "kind = \"torus\"\nrows = 2\ncolumns = 3",
            "a torus of 2 x 3 has no place for exactly 2 agents; accepted: rows x columns = 2",
        ),
        ("kind = \"knn\"\nneighbours = 10", "10 neighbours among 2 agents; at most 1"),
        ("kind = \"watts-strogatz\"\nneighbours = 3", "3 neighbours among 2 agents; at most 1"),
        ("kind = \"erdos-renyi\"\nprobability = 0", "agent \"ann\" is in the data, but no edge names it; accepted"),
        (
            "kind = \"similarity\"\nvectors = \"v.csv\"\nwidth = 1e-4",
            "no threshold connects the agents: some weights vanish; accepted: a larger width",
        ),
    ] {
        let text = task("edges = \"edges.csv\"", graph);
        let found = refused(&[("task.toml", text.as_bytes()), ("v.csv", b"agent,v0\nann,1\nbob,-1\n")]);
        assert!(found.contains(expected) && found.contains("task.toml"), "said:     {found}\nexpected: {expected}");
    }
    let text = task("edges = \"edges.csv\"", "kind = \"similarity\"\nvectors = \"v.csv\"");
    for (vectors, expected) in [
        ("agent,v0\nann,1\n", "v.csv: agent \"bob\" has no vector; accepted: one row for each agent"),
        ("agent\nann\n", "v.csv, line 1: accepted: the header agent,<coordinate>..."),
        ("name,v0\nann,1\n", "v.csv, line 1: accepted: the header agent,<coordinate>..."),
        ("agent,v0\nann,1\nann,2\n", "v.csv, line 3: agent \"ann\" has a vector on line 2 already"),
        ("agent,v0\nann,inf\n", "v.csv, line 2: column \"v0\" is \"inf\"; accepted: a finite number"),
    ] {
        let found = refused(&[("task.toml", text.as_bytes()), ("v.csv", vectors.as_bytes())]);
        assert!(found.contains(expected), "said:     {found}\nexpected: {expected}");
    }
}
