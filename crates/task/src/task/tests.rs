use super::*;

const SMALL: &str = "algorithm = \"local\"\n[data]\ntrain = \"train.csv\"\n[graph]\nkind = \"ring\"\n";

fn parse(text: &str) -> Result<Task, Mistake> {
    Task::parse(text, Path::new("/tasks/task.toml"))
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn what_is_absent_has_the_documented_default() {
    let task = parse(SMALL).expect("a task");
    assert_eq!(task.name, "task");
    assert_eq!(*task.data.train.file, *Path::new("/tasks/train.csv"));
    assert_eq!((task.data.test, task.data.normalize, task.data.feature_bound), (Test::Absent, Normalize::None, None));
    assert_eq!((task.model.loss, task.model.trade_off, task.model.start), (Loss::Logistic, 1.0, Start::Local));
    assert_eq!((task.model.regularization, task.model.points_max), (Regularization::OneOverPoints, None));
    assert_eq!((task.run.wakes_per_agent, task.run.tolerance, task.run.seed), (200, None, 1));
    assert!(task.faults.is_none() && !task.graph.allow_isolated && task.model.intercept.is_none());
    let with_tolerance = parse(&format!("{SMALL}[run]\ntolerance = 1e-9\n")).expect("a task");
    assert_eq!((with_tolerance.run.wakes_per_agent, with_tolerance.run.tolerance), (200_000, Some(1e-9)));
    let admm = parse(&SMALL.replace("local", "admm")).expect("a task");
    assert_eq!(admm.own.get("admm.penalty"), None);
    assert_eq!(admm.own.number("admm.inner"), Some(10.0));
}

#[test]
fn the_resolved_task_reads_back_as_the_same_task() {
    let graphs = [
        "edges = \"e.csv\"",
        "kind = \"ring\"\nallow-isolated = true",
        "kind = \"complete\"",
        "kind = \"torus\"\nrows = 3\ncolumns = 4",
        "kind = \"watts-strogatz\"\nneighbours = 5\nrewire = 0.3\nseed = 9223372036854775807",
        "kind = \"erdos-renyi\"\nprobability = 1",
        "kind = \"knn\"",
        "kind = \"similarity\"\nvectors = \"../v.csv\"\nwidth = 0.30000000000000004\nthreshold = 1e-300",
        "kind = \"similarity\"\nvectors = \"v.csv.gz\"\nthreshold = \"connected\"",
    ];
    let rests = [
        "",
        "[model]\nloss = \"squared\"\nregularization = 0\ntrade-off = 3\nintercept = true\nconstant = 3\npoints-max = 100\nstart = \"zero\"",
        "[admm]\npenalty = 0.1\ninner = \"exact\"\n[model]\nloss = \"hinge\"\nregularization = 1e-7",
        "[run]\ntolerance = 1e-9\nclock = \"poisson\"\nseed = 0x10\n[faults]\nloss = 0.3\nduplicate = 0.1\nleave = 0.2\n\
         die = 0.01\nuntil = 100\ndelay = { mean = 1.5, max = 10 }\npartitions = [{ from = 10, to = 20, share = 0.4 }, \
         { from = 30, to = 40 }]",
    ];
    let data = [
        "train = \"a b.csv\"",
        "train = \"t.svm.gz\"\nagents = \"names\"\ntest = \"u.libsvm\"\ntest-agents = \"names2\"\nnormalize = \"l1\"",
        "train = \"t.csv.gz\"\nsplit = 0.2\nsplit-seed = 7\nnormalize = \"l2\"\nfeature-bound = 2",
    ];
    for algorithm in ["local", "model-propagation", "admm"] {
        for graph in graphs {
            for rest in rests {
                for data in data {
                    let text = format!(
                        "name = \"q\\\"\\\\\"\nalgorithm = \"{algorithm}\"\n[data]\n{data}\n[graph]\n{graph}\n{rest}"
                    );
                    let task = parse(&text).expect(&text);
                    let written = task.to_toml();
                    assert_eq!(parse(&written).expect(&written), task, "{written}");
                    assert_eq!(parse(&written).expect(&written).to_toml(), written);
                }
            }
        }
    }
}

#[test]
fn boosting_and_learned_graphs_have_their_defaults_and_read_back() {
    let learned = SMALL.replace("ring", "learned");
    let linear = parse(&learned.replace("local", "coordinate-descent")).expect("a task");
    let boosted = parse(&learned.replace("local", "frank-wolfe")).expect("a task");
    let known = parse(&SMALL.replace("local", "frank-wolfe")).expect("a task");
    let sparsity = |task: &Task| match &task.graph.source {
        GraphSource::Learned(learned) => learned.sparsity,
        other => panic!("{other:?}"),
    };
    assert_eq!((linear.model.trade_off, sparsity(&linear)), (5.0, 0.1));
    assert_eq!((boosted.model.trade_off, sparsity(&boosted)), (1.0, 10.0));
    let (predictors, step) = (Predictors::Stumps(200), Step::LocalClock);
    let defaults = Boosting { predictors, range: None, radius: 10.0, step, local_rounds: 1000 };
    assert_eq!([linear.boosting, boosted.boosting, known.boosting], [Some(defaults); 3]);
    assert_eq!(parse(SMALL).expect("a task").boosting, None);
    let said = "\nsample = 3\nsparsity = 0.5\nstrength = 2\nfirst-wakes = 0\nmodel-wakes = 7\ngraph-wakes = 0.5\n\
                oracle = \"o.csv\"\ngroups = \"g.csv.gz\"\n[model]\ntrade-off = 3\n[boosting]\npredictors = \"columns\"\n\
                radius = 3\nstep = \"descent\"\nlocal-rounds = 9\n";
    let whole = learned.trim_end().replace("local", "frank-wolfe") + said;
    let private =
        learned.replace("local", "coordinate-descent").replace("train.csv\"", "train.csv\"\nnormalize = \"l2\"");
    let private = |rest: &str| {
        let text = format!("{private}[privacy]\nepsilon = 1\ndelta = 1e-6\n{rest}");
        parse(&text).expect(&text)
    };
    let (plain, without) = (private("updates = 3"), private("losses = false"));
    let told = private("losses = { bound = 0.5, share = 0.25 }\nwarm = { epsilon = 0.1 }\n[model]\nstart = \"warm\"");
    let losses = |task: &Task| task.privacy.expect("private").losses;
    assert_eq!(losses(&plain), Some(Losses { bound: 2.0 * core::f64::consts::LN_2, share: 0.1 }));
    assert_eq!((losses(&without), losses(&told)), (None, Some(Losses { bound: 0.5, share: 0.25 })));
    // The first graph, twice 20 + 2 x 3 wakes on models, and a turn of the graph between them.
    assert_eq!(plain.run.wakes_per_agent, 20 + 26 + 100 + 26);
    let newton = learned.replace("local", "coordinate-descent").trim_end().to_owned() + "\nmodel-step = \"newton\"\n";
    let newton = parse(&newton).expect(&newton);
    for task in [linear, boosted, known, parse(&whole).expect(&whole), newton, plain, without, told] {
        let written = task.to_toml();
        assert_eq!(parse(&written).expect(&written), task, "{written}");
    }
}

#[test]
fn the_resolved_task_says_every_default() {
    let written = parse(&SMALL.replace("local", "admm")).expect("a task").to_toml();
    for key in &*crate::read::KEYS {
        use crate::keys::Kind;
        // What depends on data, on another choice, or is absent by default has nothing to say.
        let silent = [
            "data.test",
            "data.split",
            "data.split-seed",
            "data.agents",
            "data.test-agents",
            "data.dimension",
            "data.record",
            "data.feature-bound",
            "graph.edges",
            "graph.rows",
            "graph.columns",
            "graph.neighbours",
            "graph.rewire",
            "graph.probability",
            "graph.vectors",
            "graph.width",
            "graph.threshold",
            "graph.seed",
            "graph.sample",
            "graph.sparsity",
            "graph.strength",
            "graph.first-wakes",
            "graph.model-wakes",
            "graph.graph-wakes",
            "graph.model-step",
            "graph.oracle",
            "graph.groups",
            "model.constant",
            "model.points-max",
            "model.step",
            "model.radius",
            "admm.penalty",
            "run.tolerance",
            "run.rounds",
            "run.hops",
            "run.accelerated",
            "faults.until",
        ];
        let silent = silent.contains(&key.path)
            || key.path.starts_with("privacy")
            || key.path.starts_with("boosting.")
            || key.path.starts_with("statistic.")
            || ["token.", "muffliato.", "gopa.", "servers.", "roles."]
                .iter()
                .any(|section| key.path.starts_with(section))
            || key.path.contains("partitions.");
        let leaf = key.path.rsplit('.').next().unwrap_or_default();
        let said = written.contains(&format!("\n{leaf} = ")) || written.starts_with(&format!("{leaf} = "));
        if !matches!(key.kind, Kind::Table) && !silent {
            assert!(said, "{} is not in\n{written}", key.path);
        }
    }
}

#[test]
fn a_fingerprint_depends_on_what_files_hold_and_not_on_where_they_lie() {
    let fingerprint = |rows: &str, folder: &str| {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join(folder);
        std::fs::create_dir(&folder).expect("folder");
        std::fs::write(folder.join("train.csv"), rows).expect("written");
        std::fs::write(folder.join("task.toml"), SMALL).expect("written");
        Task::read(&folder.join("task.toml")).expect("a task").fingerprint().expect("a fingerprint")
    };
    let one = fingerprint("agent,label,x\na,1,2\n", "one");
    assert_eq!(one, fingerprint("agent,label,x\na,1,2\n", "two"));
    assert_ne!(one, fingerprint("agent,label,x\na,1,3\n", "one"));
    assert!(one.contains("sha256:"), "{one}");
    let missing = parse(SMALL).expect("a task").fingerprint().expect_err("no such file").to_string();
    assert!(missing.contains("/tasks/train.csv"), "{missing}");
}

#[test]
fn a_seed_that_toml_cannot_write_is_refused() {
    let mut task = parse(SMALL).expect("a task");
    task.set_seed(i64::MAX as u64).expect("accepted");
    assert_eq!(parse(&task.to_toml()).expect("a task").run.seed, i64::MAX as u64);
    assert!(task.set_seed(u64::MAX).is_err());
}

#[test]
fn every_mistake_in_a_task_names_its_line_and_what_is_accepted() {
    let with = |section: &str| format!("{SMALL}{section}\n");
    let graph = |lines: &str| SMALL.replace("kind = \"ring\"", lines);
    let learned =
        |section: &str| with(section).replace("\"local\"", "\"coordinate-descent\"").replace("ring", "learned");
    let private = |rest: &str| {
        let task = learned(&format!("[privacy]\nepsilon = 1\ndelta = 1e-6\n{rest}"));
        task.replace("train.csv\"", "train.csv\"\nnormalize = \"l2\"")
    };
    let boosted = |section: &str| with(section).replace("\"local\"", "\"frank-wolfe\"");
    let data = |lines: &str| SMALL.replace("train = \"train.csv\"", lines);
    let cases = [
        // Unknown keys and values of a wrong type or out of range.
        (
            with("[model]\ntradeoff = 1"),
            "line 7: unknown key \"model.tradeoff\"; the nearest known key is model.trade-off",
        ),
        (
            format!("trade-off = 1\n{SMALL}"),
            "line 1: unknown key \"trade-off\"; the nearest known key is model.trade-off",
        ),
        (
            "name = \"a\\u001b[31mb\"\n".to_owned() + &with(""),
            "line 1: name is \"a\\u{1b}[31mb\"; accepted: text without control characters",
        ),
        (with("[fault]\nloss = 0.1"), "line 6: unknown key \"fault\"; the nearest known key is faults"),
        (with("[faults]\ndelay = { mean = 1, maximum = 2 }"), "the nearest known key is faults.delay.max"),
        (with("[faults]\npartitions = [{ form = 1 }]"), "the nearest known key is faults.partitions.from"),
        (with("[model]\ntrade-off = 0"), "line 7: model.trade-off is 0; accepted: a finite number above 0"),
        (with("[model]\ntrade-off = -2.5"), "line 7: model.trade-off is -2.5; accepted: a finite number above 0"),
        (with("[model]\ntrade-off = nan"), "line 7: model.trade-off is nan; accepted: a finite number above 0"),
        (with("[model]\ntrade-off = inf"), "line 7: model.trade-off is inf; accepted: a finite number above 0"),
        (with("[model]\ntrade-off = \"1\""), "line 7: model.trade-off is \"1\"; accepted: a finite number above 0"),
        (
            with("[model]\nloss = \"hing\""),
            "model.loss is \"hing\"; accepted: \"logistic\", \"squared\", \"smoothed-hinge\" or",
        ),
        (with("[model]\nregularization = \"1/n\""), "accepted: a finite number from 0, or \"1/m\""),
        (with("[model]\nregularization = -1"), "accepted: a finite number from 0, or \"1/m\""),
        (with("[model]\nconstant = 2"), "line 7: model.constant is for model.intercept = true only"),
        (with("[model]\nintercept = 1"), "model.intercept is 1; accepted: true or false"),
        (with("[model]\npoints-max = 0"), "model.points-max is 0; accepted: a whole number from 1 to"),
        (with("[run]\nwakes-per-agent = 0"), "run.wakes-per-agent is 0; accepted: a whole number from 1 to"),
        (with("[run]\nwakes-per-agent = 1.5"), "run.wakes-per-agent is 1.5; accepted: a whole number"),
        (with("[run]\nwakes-per-agent = 5000000000"), "accepted: a whole number from 1 to 4294967295"),
        (with("[run]\nseed = -1"), "run.seed is -1; accepted: a whole number from 0"),
        (
            with("[run]\nseed = 99999999999999999999"),
            "line 7: run.seed is 99999999999999999999; accepted: a whole number",
        ),
        (with("[run]\ntolerance = 0.0"), "run.tolerance is 0.0; accepted: a finite number above 0"),
        (with("[faults]\nloss = 1"), "faults.loss is 1; accepted: a number from 0 to below 1"),
        (with("[faults]\nloss = 1970-01-01"), "faults.loss is a datetime; accepted: a number from 0 to below 1"),
        (with("[faults]\npartitions = 3"), "faults.partitions is 3; accepted: an array of tables"),
        (with("[faults]\npartitions = [3]"), "faults.partitions is an array; accepted: an array of tables"),
        (with("[admm]\ninner = \"all\""), "accepted: a whole number from 1 to 4294967295, or \"exact\""),
        (format!("model = 3\n{SMALL}"), "line 1: model is 3; accepted: a table"),
        (SMALL.replace("local", "frank-wulfe"), "line 1: algorithm is \"frank-wulfe\"; accepted: \"local\""),
        (data("train = \"\""), "data.train is \"\"; accepted: a path"),
        // What keys mean together.
        (SMALL.replace("algorithm = \"local\"", ""), "algorithm is missing; accepted: \"local\""),
        ("algorithm = \"local\"".to_owned(), "data is missing; accepted: a table"),
        (data(""), "line 2: data.train is missing; accepted: a path"),
        (data("train = \"train.xls\""), "line 3: data.train is \"/tasks/train.xls\"; accepted: a file named .csv"),
        (data("train = \"t.svm\""), "line 3: data.train is libsvm, which names no agents; accepted: data.agents"),
        (data("train = \"t.csv\"\nagents = \"a\""), "line 4: data.agents has no meaning for a csv file"),
        (data("train = \"t.csv\"\ntest = \"u.csv\"\nsplit = 0.5"), "line 5: data.test and data.split are both given"),
        (data("train = \"t.csv\"\nsplit-seed = 5"), "line 4: data.split-seed has no meaning without data.split"),
        (data("train = \"t.csv\"\ntest-agents = \"a\""), "line 4: data.test-agents has no meaning without data.test"),
        (
            data("train = \"t.csv\"\ntest = \"u.svm\"\ntest-agents = \"a\""),
            "line 4: data.train and data.test have two formats",
        ),
        (graph(""), "line 4: [graph] says neither edges nor kind; accepted"),
        (graph("edges = \"e.csv\"\nkind = \"ring\""), "line 6: graph.edges and graph.kind are both given"),
        (graph("edges = \"e.txt\""), "graph.edges; accepted: a file named .csv or .csv.gz"),
        (graph("kind = \"ring\"\nrewire = 0.1"), "line 6: graph.rewire is for kind = \"watts-strogatz\" only"),
        (graph("kind = \"torus\"\nrows = 3"), "graph.columns is missing; accepted: a whole number"),
        (graph("kind = \"erdos-renyi\""), "graph.probability is missing; accepted: a number from 0 to 1"),
        (graph("kind = \"similarity\""), "graph.vectors is missing; accepted: a path"),
        (
            graph("kind = \"learned\""),
            "line 5: local needs a graph that is known; accepted with kind = \"learned\": algorithm = \"coordinate-descent\" or",
        ),
        (graph("kind = \"ring\"\nsample = 5"), "line 6: graph.sample is for kind = \"learned\" only"),
        (learned("[run]\ntolerance = 1e-6"), "line 7: run.tolerance cannot end a run whose graph is learned"),
        (learned("[model]\nstart = \"zero\""), "line 7: model.start = \"zero\" tells nobody who is like whom"),
        (
            private("schedule = \"corrected\""),
            "line 10: privacy.schedule weighs updates by the edges of a graph that is known; accepted with kind = \"learned\"",
        ),
        (
            private("[model]\nstart = \"zero\"").replace("zero", "local"),
            "line 11: model.start = \"local\" would send exact local models",
        ),
        (
            private("[model]\nloss = \"squared\"").replace("[privacy]", "[privacy]\nclip = 1"),
            "privacy.losses.bound is missing, and squared losses have no bound of their own; accepted: privacy.losses",
        ),
        (
            private("[run]\nwakes-per-agent = 42"),
            "line 11: run.wakes-per-agent is 42, and no turn of the graph begins before that; accepted: more than \
             graph.first-wakes + graph.model-wakes = 42",
        ),
        (
            private("").replace("coordinate-descent", "frank-wolfe"),
            "line 1: frank-wolfe sends exact models, so it cannot be private; accepted with [privacy]",
        ),
        (
            private("").replace("\"learned\"", "\"learned\"\nmodel-step = \"newton\""),
            "graph.model-step = \"newton\" is for linear models without noise; accepted with frank-wolfe and with [privacy]",
        ),
        (
            learned("")
                .replace("coordinate-descent", "frank-wolfe")
                .replace("\"learned\"", "\"learned\"\nmodel-step = \"newton\""),
            "graph.model-step = \"newton\" is for linear models without noise",
        ),
        (
            with("[model]").replace("\"ring\"", "\"ring\"\nmodel-step = \"newton\""),
            "graph.model-step is for kind = \"learned\" only",
        ),
        (
            private("losses = false").replace("learned", "ring"),
            "line 10: privacy.losses is for kind = \"learned\" only",
        ),
        (
            boosted("[privacy]\nepsilon = 1\ndelta = 1e-6"),
            "line 1: frank-wolfe sends exact models, so it cannot be private; accepted with [privacy]",
        ),
        (boosted("[model]\nloss = \"squared\""), "line 7: frank-wolfe boosts classifiers by a loss of its own"),
        (boosted("[model]\nstart = \"zero\""), "line 7: model.start has no meaning for frank-wolfe"),
        (
            boosted("[boosting]\npredictors = 0"),
            "boosting.predictors is 0; accepted: a whole number from 1 to 1000000, or",
        ),
        (
            boosted("[boosting]\nrange = [1, 0]"),
            "boosting.range is an array; accepted: two finite numbers, the larger one last",
        ),
        (boosted("[boosting]\nrange = [0, 1, 2]"), "boosting.range is an array; accepted: two finite numbers"),
        (boosted("[boosting]\nrange = [0, inf]"), "boosting.range is an array; accepted: two finite numbers"),
        (boosted("[boosting]\nrange = [0, 1]\npredictors = \"columns\""), "boosting.range is for stumps"),
        (boosted("[boosting]\nstump = 5"), "unknown key \"boosting.stump\"; the nearest known key is"),
        (
            with("[model]\nstart = \"warm\""),
            "line 7: model.start = \"warm\" needs [privacy]; accepted without it: \"local\"",
        ),
        (
            with("[model]\nloss = \"hinge\"").replace("\"local\"", "\"coordinate-descent\""),
            "line 7: model.loss = \"hinge\" is not smooth, so coordinate-descent cannot use it; accepted: model.loss = \"smoothed-hinge\"",
        ),
        (with("[faults]\ndelay = { mean = 2, max = 1 }"), "faults.delay.max is 1; accepted: a finite number from"),
        (with("[faults]\nleave = 0.7\ndie = 0.7"), "line 7: faults.leave + faults.die is 1.4; accepted: at most 1"),
        (with("[faults]\npartitions = [{ from = 3, to = 3 }]"), "line 7: faults.partitions: from 3 to 3; accepted"),
        (with("[faults]\nuntil = 2\npartitions = [{ from = 1, to = 3 }]"), "is after faults.until; accepted"),
        (with("[privacy]\nepsilon = 0"), "privacy.epsilon is 0; accepted: a finite number above 0"),
        (with("[privacy]\nhome = true"), "privacy.home is true; accepted: a table, or false"),
        // No TOML.
        (with("[model\nloss"), "line 6: not valid TOML"),
        (with("[graph]"), "line 6: not valid TOML"),
    ];
    for (text, expected) in cases {
        let found = refused(&text);
        assert!(found.contains(expected), "{text}\nsaid:     {found}\nexpected: {expected}");
        assert!(found.starts_with("/tasks/task.toml"), "{found}");
        assert!(!found.contains('\n'), "{found}");
    }
}

/// A private task that is fine, in parts that can be spoiled.
const PRIVATE: &str = "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\nnormalize = \"l2\"\n[graph]\nkind = \
                       \"ring\"\n[model]\nloss = \"logistic\"\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";

#[test]
fn a_private_task_has_the_documented_defaults_and_reads_back_as_itself() {
    let task = parse(PRIVATE).expect("a private task");
    let privacy = task.privacy.expect("a section");
    assert_eq!((privacy.mechanism, privacy.clip, privacy.updates), (Mechanism::Gaussian, 1.0, 1));
    assert_eq!((privacy.schedule, privacy.warm, privacy.accountant), (Schedule::Uniform, None, AccountantName::Tight));
    assert_eq!((privacy.home, privacy.noise), (Some(Home::Automatic), NoiseKind::Idealized));
    assert_eq!((task.model.start, task.run.wakes_per_agent), (Start::Zero, 22));
    let intercept = parse(&PRIVATE.replace("[privacy]", "intercept = true\n[privacy]")).expect("a private task");
    assert!((intercept.privacy.expect("a section").clip - 2.0f64.sqrt()).abs() < 1e-12);
    let large =
        parse(&PRIVATE.replace("[privacy]", "intercept = true\nconstant = 3\n[privacy]")).expect("a private task");
    let privacy = large.privacy.expect("a section");
    assert!((privacy.clip - 10.0f64.sqrt()).abs() < 1e-12, "a larger constant is a longer gradient");
    assert!((privacy.feature_bound(&large) - 10.0f64.sqrt()).abs() < 1e-12);
    let warm = "start = \"warm\"\n[privacy]\nwarm = { epsilon = 0.05, regularization = 0.5, wakes = 3 }\nhome = { scale = 30, trade-off = 100 }\n\
                mechanism = \"laplace\"\nschedule = \"proposition-2\"\naccountant = \"theorem-1\"\nnoise = \"exact\"\n\
                updates = 7\nclip = 0.25";
    let warm = PRIVATE.replace("[privacy]", warm);
    for text in [PRIVATE, &warm, &PRIVATE.replace("coordinate-descent", "input-perturbation")] {
        let task = parse(text).expect("a private task");
        assert_eq!(parse(&task.to_toml()).expect("the resolved task"), task, "{text}");
    }
    let resolved = parse(&warm).expect("a private task");
    let start = resolved.privacy.and_then(|privacy| privacy.warm).expect("a warm start").start;
    assert!((start.radius - (libm::log(2.0f64) / 0.5).sqrt()).abs() < 1e-12, "{start:?}");
    assert_eq!((start.trade_off, start.wakes, resolved.run.wakes_per_agent), (1.0, 3, 37));
}

#[test]
fn what_would_not_be_private_is_refused_with_the_reason_and_what_to_do() {
    let cases = [
        ("delta = 1e-6", "delta = 0", "Gaussian noise has no guarantee without a delta; accepted: a delta above 0"),
        ("epsilon = 1\n", "", "privacy.epsilon is missing; accepted: a finite number above 0"),
        ("delta = 1e-6", "", "privacy.delta is missing; accepted"),
        ("epsilon = 1", "epsilon = 0", "privacy.epsilon is 0; accepted: a finite number above 0"),
        ("epsilon = 1", "epsilon = inf", "privacy.epsilon is inf; accepted: a finite number above 0"),
        ("delta = 1e-6", "delta = 1", "privacy.delta is 1; accepted: a number from 0 to below 1"),
        ("delta = 1e-6", "delta = 1e-6\nclip = 0", "privacy.clip is 0; accepted: a finite number above 0"),
        ("normalize = \"l2\"\n", "", "needs a public bound on the features"),
        ("kind = \"ring\"", "kind = \"knn\"", "computes the graph from private data"),
        ("[model]", "[run]\ntolerance = 1e-9\n[model]", "a private run follows its plan"),
        (
            "loss = \"logistic\"",
            "start = \"local\"",
            "would send exact local models; accepted with [privacy]: \"zero\"",
        ),
        ("loss = \"logistic\"", "start = \"warm\"", "needs privacy.warm = { epsilon = .. }"),
        ("delta = 1e-6", "delta = 1e-6\nwarm = { epsilon = 0.1 }", "has no meaning without model.start = \"warm\""),
        ("loss = \"logistic\"", "loss = \"squared\"", "privacy.clip is missing"),
        ("coordinate-descent", "admm", "admm sends exact models, so it cannot be private; accepted with [privacy]"),
        ("coordinate-descent", "model-propagation", "model-propagation sends exact models"),
    ];
    for (good, bad, expected) in cases {
        assert!(PRIVATE.contains(good));
        let found = refused(&PRIVATE.replace(good, bad));
        assert!(found.contains(expected), "{bad}\nsaid:     {found}\nexpected: {expected}");
        assert!(!found.contains('\n'), "{found}");
    }
    let warm = |part, loss| {
        let text = PRIVATE.replace("loss = \"logistic\"", &format!("loss = \"{loss}\"\nstart = \"warm\""));
        refused(&format!("{text}clip = 1.0\nwarm = {{ epsilon = {part} }}\n"))
    };
    assert!(warm("1.0", "logistic").contains("nothing is left for one update; accepted: less than privacy.epsilon"));
    assert!(warm("0.5", "squared").contains("a loss with bounded slopes"));
    let bare = SMALL.replace("local", "input-perturbation");
    assert!(refused(&bare).contains("accepted: with a section [privacy]"));
}

#[test]
fn a_file_that_is_no_task_is_named() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("task.toml");
    let refused = |expected: &str| {
        let found = Task::read(&file).expect_err(expected).to_string();
        assert!(found.contains(expected) && found.contains("task.toml"), "{found}");
    };
    refused("cannot be read");
    std::fs::write(&file, b"\xff").expect("written");
    refused("TOML in UTF-8");
    std::fs::write(&file, vec![b'#'; TASK_BYTES_MAX as usize + 1]).expect("written");
    refused("at most");
}
