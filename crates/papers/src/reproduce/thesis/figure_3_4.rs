//! Figure 3.4 of the thesis: the AUC of a score by gossip, GoSta against U2-gossip, on three graphs.

use super::super::bench::Bench;
use super::super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Series, Spread, Table};
use crate::svmguide3::scored;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::graphs::{torus, watts_strogatz};
use sottovoce_algorithms::pairs::exchange::{Exchange, Rule};
use sottovoce_algorithms::pairs::gosta_sync::GostaSync;
use sottovoce_algorithms::pairs::kernel::{Auc, Ties};
use sottovoce_algorithms::pairs::u2_gossip::U2Gossip;
use sottovoce_algorithms::reference::pairs::{Bound, observations, u2};
use sottovoce_algorithms::{Dataset, Observations};
use sottovoce_core::{Graph, PeerId};
use sottovoce_run::train::Halt;
use sottovoce_sim::{Clock, Faults, Settings, Simulation};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    seeds: Vec<u64>,
    /// Points, one for each agent: rows times columns of the torus.
    rows: usize,
    columns: usize,
    /// Watts-Strogatz: neighbours in the lattice, and how many edges move.
    neighbours: usize,
    rewire: f64,
    /// At which t one looks.
    looks: Vec<u64>,
}

impl Parameters {
    fn points(&self) -> usize {
        self.rows * self.columns
    }
}

/// Who works with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Complete,
    SmallWorld,
    Torus,
}

impl Shape {
    const ALL: [Shape; 3] = [Shape::Complete, Shape::SmallWorld, Shape::Torus];

    fn name(self) -> &'static str {
        match self {
            Shape::Complete => "complete",
            Shape::SmallWorld => "Watts-Strogatz",
            Shape::Torus => "torus",
        }
    }

    /// In the names of claims.
    fn id(self) -> &'static str {
        match self {
            Shape::Complete => "complete",
            Shape::SmallWorld => "watts-strogatz",
            Shape::Torus => "torus",
        }
    }

    fn graph(self, parameters: &Parameters, seed: u64) -> Graph {
        let graph = match self {
            Shape::Complete => return Graph::complete(parameters.points()).expect("the parameters are tested"),
            Shape::SmallWorld => watts_strogatz(parameters.points(), parameters.neighbours, parameters.rewire, seed),
            Shape::Torus => torus(parameters.rows, parameters.columns),
        };
        graph.expect("the parameters are tested")
    }
}

/// Who estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Gosta,
    U2,
}

impl Method {
    const ALL: [Method; 2] = [Method::Gosta, Method::U2];

    fn name(self) -> &'static str {
        match self {
            Method::Gosta => "GoSta",
            Method::U2 => "U2-gossip",
        }
    }

    /// Wakes in one of its steps: U2-gossip swaps along two edges.
    fn wakes(self) -> u64 {
        match self {
            Method::Gosta => 1,
            Method::U2 => 2,
        }
    }
}

/// How far agents are from the exact value, relative to it, at one look.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Errors {
    /// The root of the mean of the squares over agents.
    root_mean_square: f64,
    /// The standard deviation over agents.
    deviation: f64,
}

/// One run: errors at every look.
fn estimate<R: Rule>(
    exchange: &Exchange<Auc, R>,
    (graph, data): (&Graph, &Dataset),
    exact: f64,
    looks: impl Iterator<Item = u64>,
    seed: u64,
) -> Vec<Errors> {
    let settings = Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() };
    let rows = |agent: PeerId| Observations { points: data.points(agent), bounds: None };
    let mut run = Simulation::start(exchange, graph, rows, &settings).expect("without privacy nothing is refused");
    looks
        .map(|wakes| {
            while run.counters().wakes < wakes {
                run.advance(wakes - run.counters().wakes);
            }
            let now = run.now();
            let agents = (0..graph.agents() as u32).map(PeerId);
            let gaps: Vec<f64> =
                agents.map(|agent| (1.0 - exchange.estimate_at(run.state(agent), now) / exact).abs()).collect();
            let count = gaps.len() as f64;
            let mean = gaps.iter().sum::<f64>() / count;
            let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / count;
            Errors { root_mean_square: square.sqrt(), deviation: (square - mean * mean).max(0.0).sqrt() }
        })
        .collect()
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let points = scored(bench.data(), parameters.points())?;
    let mut data = Dataset::new(1);
    points.iter().for_each(|&(score, class)| data.push_agent(&[score], &[class]));
    // Equation (3.11): a pair with one score counts nothing.
    let kernel = Auc { ties: Ties::Zero };
    let everyone = (0..points.len() as u32).map(|k| Observations { points: data.points(PeerId(k)), bounds: None });
    let all = observations(&kernel, everyone);
    let exact = u2(&kernel, &all);
    let items: Vec<(Shape, Method, u64)> = Shape::ALL
        .iter()
        .flat_map(|&shape| Method::ALL.map(|method| (shape, method)))
        .flat_map(|(shape, method)| parameters.seeds.iter().map(move |&seed| (shape, method, seed)))
        .collect();
    let found = bench.each("runs", &items, |&(shape, method, seed)| {
        let graph = shape.graph(&parameters, seed);
        let (world, edges) = ((&graph, &data), graph.edge_count());
        let looks = parameters.looks.iter().map(|look| look * method.wakes());
        let tested = "the graph has edges";
        match method {
            Method::Gosta => estimate(&GostaSync::new(kernel, 1.0, edges).expect(tested), world, exact, looks, seed),
            Method::U2 => estimate(&U2Gossip::new(kernel, 1.0, edges).expect(tested), world, exact, looks, seed),
        }
    })?;
    let of = |shape: Shape, method: Method, look: usize, which: fn(&Errors) -> f64| -> Spread {
        let mine = items.iter().zip(&found).filter(|(item, _)| (item.0, item.1) == (shape, method));
        Spread::of(&mine.map(|(_, errors)| which(&errors[look])).collect::<Vec<f64>>())
    };
    let rates = Shape::ALL.map(|shape| {
        let graph = shape.graph(&parameters, parameters.seeds[0]);
        Bound::new(&kernel, &all, &graph).rate
    });
    Ok(ExperimentOutcome {
        tables: vec![table(&parameters, &rates, &of)],
        plots: vec![
            plot("error", "relative error", &parameters, &|shape, method, look| {
                of(shape, method, look, |errors| errors.root_mean_square)
            }),
            plot("deviation", "deviation over agents", &parameters, &|shape, method, look| {
                of(shape, method, look, |errors| errors.deviation)
            }),
        ],
        claims: claims(&parameters, &rates, &of),
    })
}

type Figures<'f> = &'f dyn Fn(Shape, Method, usize, fn(&Errors) -> f64) -> Spread;

fn claims(parameters: &Parameters, rates: &[f64; 3], of: Figures<'_>) -> Vec<Claim> {
    let last = parameters.looks.len() - 1;
    let t = parameters.looks[last];
    let error = |shape, method, look| of(shape, method, look, |errors| errors.root_mean_square);
    let mut claims = Vec::new();
    for shape in Shape::ALL {
        let [gosta, u2] = Method::ALL.map(|method| error(shape, method, last));
        let ratio = gosta.mean / u2.mean;
        claims.push(Claim::new(
            &format!("below-{}", shape.id()),
            &format!("{}: the error of GoSta is below that of U2-gossip at t = {t}", shape.name()),
            "below everywhere",
            format!("{gosta} against {u2}"),
            ratio,
            ratio < 1.0,
        ));
        let [gosta, u2] = Method::ALL.map(|method| of(shape, method, last, |errors| errors.deviation));
        let ratio = gosta.mean / u2.mean;
        claims.push(Claim::new(
            &format!("agree-{}", shape.id()),
            &format!("{}: agents differ less with GoSta than with U2-gossip at t = {t}", shape.name()),
            "smaller standard deviation over agents",
            format!("{gosta} against {u2}"),
            ratio,
            ratio < 1.0,
        ));
    }
    // From the first look on, and not only at the last one.
    let early = (0..=last).map(|look| {
        let [gosta, u2] = Method::ALL.map(|method| error(Shape::Torus, method, look).mean);
        gosta / u2
    });
    let worst = early.fold(0.0, f64::max);
    claims.push(Claim::new(
        "below-torus-always",
        "Torus: the error of GoSta is below that of U2-gossip at every look",
        "below everywhere",
        format!("up to {worst:.2} times that of U2-gossip"),
        worst,
        worst < 1.0,
    ));
    let errors = Shape::ALL.map(|shape| error(shape, Method::Gosta, last));
    let steps = (errors[1].mean / errors[0].mean).min(errors[2].mean / errors[1].mean);
    claims.push(Claim::new(
        "order",
        &format!("GoSta at t = {t}: the better connected the graph, the smaller the error"),
        "complete, Watts-Strogatz, grid",
        format!("{}, {}, {}", errors[0], errors[1], errors[2]),
        steps,
        steps > 1.0,
    ));
    let printed = [7.94e-4, 5.49e-5, 6.03e-6];
    for ((shape, rate), printed) in Shape::ALL.into_iter().zip(rates).zip(printed) {
        claims.push(Claim::new(
            &format!("constant-{}", shape.id()),
            &format!("{}: c of Theorem 3.1, in millionths", shape.name()),
            &format!("{:.3} (Colin et al. 2015)", printed * 1e6),
            format!("{:.3}", rate * 1e6),
            rate * 1e6,
            (rate / printed - 1.0).abs() < 0.2,
        ));
    }
    claims
}

fn plot(name: &str, label: &str, parameters: &Parameters, of: &dyn Fn(Shape, Method, usize) -> Spread) -> Plot {
    let mut series = Vec::new();
    for (ink, shape) in Shape::ALL.into_iter().enumerate() {
        for method in Method::ALL {
            let points = parameters.looks.iter().enumerate();
            let points = points.map(|(look, &t)| of(shape, method, look).at(t as f64)).collect();
            let name = format!("{}, {}", method.name(), shape.name());
            series.push(Series { name, ink, dashed: method == Method::U2, points });
        }
    }
    Plot {
        name: name.to_owned(),
        title: format!("Figure 3.4: {label} of an AUC by gossip"),
        caption: format!(
            "{} agents with one point each; GoSta with a common clock draws one edge for each t, U2-gossip two. Mean and standard deviation of {} runs.",
            parameters.points(),
            parameters.seeds.len()
        ),
        x: Labelled::log("t"),
        y: Labelled::log(label),
        series,
    }
}

fn table(parameters: &Parameters, rates: &[f64; 3], of: Figures<'_>) -> Table {
    let mut rows = Vec::new();
    for (shape, rate) in Shape::ALL.into_iter().zip(rates) {
        for (look, t) in parameters.looks.iter().enumerate() {
            let mut row = vec![shape.name().to_owned(), format!("{rate:.3e}"), t.to_string()];
            for method in Method::ALL {
                row.push(of(shape, method, look, |errors| errors.root_mean_square).to_string());
                row.push(of(shape, method, look, |errors| errors.deviation).to_string());
            }
            rows.push(row);
        }
    }
    Table {
        name: "errors".to_owned(),
        caption:
            "Error relative to the exact value, root mean square over agents, and its standard deviation over agents"
                .to_owned(),
        columns: ["graph", "c", "t", "GoSta", "GoSta over agents", "U2-gossip", "U2-gossip over agents"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    }
}
