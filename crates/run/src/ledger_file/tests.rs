//! Ledgers and their headers, written and read again.

use super::*;
use sottovoce_privacy::{Event, Sensitivity, Sum};

#[test]
fn ledgers_read_back_as_they_were_written() {
    let charge = |noise_multiplier: f64, count| Charge {
        sensitivity: Sensitivity::new(0.1 + 0.2).ok(),
        ..Charge::new(Event::Gaussian { noise_multiplier }, count)
    };
    let ledger = |charges: &[Charge]| Ledger::from_charges(charges.iter().copied()).expect("valid");
    let written = [
        ("north, \"upper\"".to_owned(), ledger(&[charge(1.0 / 3.0, 2), charge(1.933_445_210_123_456_7, 1)])),
        ("süd".to_owned(), ledger(&[charge(2.5, 7)])),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.jsonl");
    std::fs::write(&path, lines(None, written.iter().map(|(name, ledger)| (&**name, ledger)))).expect("written");
    assert_eq!(read(&path).expect("read"), written);
}

#[test]
fn a_header_says_against_whom_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.jsonl");
    let ledger = Ledger::from_charges([Charge::new(Event::Gaussian { noise_multiplier: 2.0 }, 3)]).expect("valid");
    for (colluders, shares) in [(1, Shares::One), (1, Shares::All), (2, Shares::All)] {
        let observer = Observer::Ring(Ring::new(8, colluders, shares).expect("a ring"));
        let header = Header::of(Unit::Agent, &observer).expect("not against everyone");
        let text = lines(Some(&header), [("a", &ledger)].into_iter());
        std::fs::write(&path, &text).expect("written");
        let (found, ledgers) = read_with_header(&path).expect("read");
        assert_eq!((found.as_ref(), ledgers.len()), (Some(&header), 1));
        assert_eq!(Header::guarantee(found.as_ref()), Ok((Unit::Agent, observer)));
        let bent = text.replace("any one other member", "everyone").replace("at most 2 colluding members", "nobody");
        std::fs::write(&path, bent).expect("written");
        assert!(read(&path).expect_err("another observer").to_string().contains("line 1"));
        for (bent, says) in [
            (text.replace("{\"ledger\":1", "{\"ledger\":2"), "form 2; accepted: 1"),
            (text.replace("\"members\":8", "\"members\":\"many\""), "line 1: is no header"),
        ] {
            std::fs::write(&path, bent).expect("written");
            let said = read(&path).expect_err(says).to_string();
            assert!(said.contains(says), "{said}");
        }
    }
    assert_eq!(Header::of(Unit::Record, &Observer::Everyone), None);
    assert_eq!(Header::guarantee(None), Ok((Unit::Record, Observer::Everyone)));
}

#[test]
fn a_header_of_pairs_holds_the_graph_that_a_mean_is_of() {
    let graph = Graph::ring(5).expect("a ring");
    let header = Header::of(Unit::Record, &Observer::Pairs { rounds: 7, told: None }).expect("not against everyone");
    assert!(header.gossip().is_none(), "the worst pair needs no graph");
    let text = serde_json::to_string(&header).expect("JSON");
    assert_eq!(
        text,
        r#"{"ledger":1,"unit":"record","observer":"each one other member, by pair","pairs":{"rounds":7}}"#
    );
    let with = header.with_graph(&graph);
    let back: Header = serde_json::from_str(&serde_json::to_string(&with).expect("JSON")).expect("a header");
    assert_eq!(back, with);
    assert_eq!(Header::guarantee(Some(&back)), Ok((Unit::Record, Observer::Pairs { rounds: 7, told: None })));
    let gossip = back.gossip().expect("a graph").expect("a good one");
    assert_eq!((gossip.members(), gossip.distances(&[0])[2]), (5, Some(2)));
    let told = Observer::Pairs { rounds: 7, told: Some(Told { gamma: 1.5 }) };
    let text = serde_json::to_string(&Header::of(Unit::Agent, &told)).expect("JSON");
    assert!(text.contains(r#""pairs":{"rounds":7,"told":{"gamma":1.5}}"#), "{text}");
    let read = |text: &str| serde_json::from_str::<Header>(text).expect("a header");
    assert_eq!(Header::guarantee(Some(&read(&text))), Ok((Unit::Agent, told)));
    for (from, bad) in [("1.5", "0.5"), ("1.5", "1e300"), (r#""rounds":7"#, r#""rounds":4000000000"#)] {
        assert!(Header::guarantee(Some(&read(&text.replace(from, bad)))).is_err(), "{bad}");
    }
    for bad in [r#""edges":[[0,5]"#, r#""members":4000000,"edges":[[0,1]"#] {
        let text = serde_json::to_string(&with).expect("JSON");
        let from = if bad.contains("members") { r#""members":5,"edges":[[0,1]"# } else { r#""edges":[[0,1]"# };
        let bent: Header = serde_json::from_str(&text.replace(from, bad)).expect("a header");
        assert!(bent.gossip().expect("a graph").is_err(), "{bad}");
    }
}

#[test]
fn a_line_that_is_no_charge_is_named_by_its_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.jsonl");
    let good = r#"{"agent":"a","mechanism":"reveal","audience":"everyone","count":1}"#;
    for bad in [
        "garbage",
        r#"{"mechanism":"reveal","audience":"everyone","count":1}"#,
        r#"{"agent":"a","mechanism":"reveal","audience":"everyone","count":0}"#,
        r#"{"agent":"a","mechanism":"laplace","noise_multiplier":-1,"audience":"everyone","count":1}"#,
        "\u{fffd}\u{0}",
    ] {
        std::fs::write(&path, format!("{good}\n\n{bad}\n")).expect("written");
        let said = read(&path).expect_err(bad).to_string();
        assert!(said.contains("ledger.jsonl, line 3"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(read(&folder.path().join("absent")).is_err());
}

#[test]
fn unknown_and_doubled_keys_are_refused_by_name_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.jsonl");
    let good = r#"{"agent":"a","mechanism":"laplace","noise_multiplier":2.0,"audience":"everyone","count":1}"#;
    for (from, to, key) in [
        (r#""count":1"#, r#""count":1,"note":"fine""#, "note"),
        (r#""count":1"#, r#""count":1,"Count":1"#, "Count"),
        (r#""count":1"#, r#""count":1,"count":1"#, "count"),
        (r#""agent":"a""#, r#""agent":"a","agent":"b""#, "agent"),
        (r#""noise_multiplier":2.0"#, r#""noise_multiplier":2.0,"noise_multiplier":9.0"#, "noise_multiplier"),
        (r#""count":1"#, r#""count":1,"epsilon":0.1"#, "epsilon"),
        (r#""count":1"#, r#""count":1,"epsilon":null"#, "null"),
    ] {
        let bad = good.replace(from, to);
        std::fs::write(&path, format!("{good}\n{bad}\n")).expect("written");
        let said = read(&path).expect_err(&bad).to_string();
        assert!(said.contains("ledger.jsonl, line 2") && said.contains(key), "{bad}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn equal_ledgers_are_accounted_for_once_and_alike() {
    let ledger = |count| {
        let charge = Charge::new(Event::Laplace { noise_multiplier: 10.0 }, count);
        Ledger::from_charges([Charge { sensitivity: Sensitivity::new(count as f64).ok(), ..charge }]).expect("valid")
    };
    let ledgers = [ledger(1), ledger(5), ledger(1), Ledger::default()];
    let found = epsilons(ledgers.iter(), 0.0, &Sum);
    let expected: Vec<f64> = ledgers.iter().map(|ledger| Sum.epsilon(ledger, 0.0)).collect();
    assert_eq!(found, expected);
}
