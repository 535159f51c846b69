//! `sottovoce privacy plan`: what a private task is going to release, and what it can hope for, from public facts alone.

use crate::{Output, screen};
use sottovoce_report::plot::number;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::outlook::{self, CLEARNESS_FOR_UPDATES, CLEARNESS_MIN, Outlook, outlook};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::{AccountantName, Home, Task};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// The task file; it needs a section for privacy
    task: PathBuf,

    /// Draw how clearly agents hear each other against the number of updates: a new .svg or .png file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    let picture = arguments.plot.as_deref().map(Picture::of).transpose()?;
    let loaded = load(&Task::read(&arguments.task)?)?;
    let Some(outlook) = outlook(&loaded) else {
        let what = "the task has no [privacy], so there is nothing to plan; accepted: a task with [privacy]";
        return Err(Mistake::file(&arguments.task, what).into());
    };
    screen::warn(output, &outlook.warnings);
    let by_updates = outlook::by_updates(&loaded, &outlook, outlook.epsilon);
    let untuned_home = matches!(loaded.task.privacy.and_then(|privacy| privacy.home), Some(Home::Automatic));
    let suggested = outlook::suggested_updates(&by_updates, untuned_home).filter(|_| outlook.calibrated);
    if let Some(picture) = picture {
        draw(&loaded, &outlook, &by_updates, picture)?;
    }
    if output.json {
        let mut answer = serde_json::to_value(&outlook).expect("an outlook is JSON");
        answer["worth_it"] = serde_json::json!(outlook::worth_it(&by_updates, outlook.calibrated));
        answer["suggested_updates"] = serde_json::json!(suggested);
        answer["by_updates"] = by_updates
            .iter()
            .map(|(updates, clearness)| serde_json::json!({ "updates": updates, "clearness": clearness }))
            .collect();
        screen::say(answer)?;
    } else if !output.quiet {
        tell(&outlook, &by_updates, suggested, untuned_home)?;
    }
    Ok(())
}

fn tell(
    outlook: &Outlook,
    by_updates: &[(u64, f64)],
    suggested: Option<u64>,
    untuned_home: bool,
) -> Result<(), Mistake> {
    let Outlook { name, algorithm, epsilon, delta, accountant, guarantee, .. } = outlook;
    screen::say(format!(
        "{name}, {algorithm}: a budget of epsilon = {} at delta = {} for each agent, {guarantee}, by {accountant}.",
        number::bound(*epsilon),
        number::bound(*delta)
    ))?;
    screen::say(format!("{}\n", outlook.plan_in_words()))?;
    if outlook.groups.iter().any(|group| group.noise_max.is_some()) {
        groups(outlook)?;
        screen::say("")?;
    }
    let mut rows = vec![vec!["all releases, counted by".to_owned(), "epsilon".to_owned()]];
    let planned = |by: AccountantName| outlook.planned.get(by.name()).map(|&epsilon| bound_or_infinity(epsilon.into()));
    rows.extend(AccountantName::ALL.iter().map(|by| vec![by.name().to_owned(), planned(*by).unwrap_or_default()]));
    screen::table(&rows)?;
    details(outlook)?;
    let Some(clearness) = outlook.clearness else {
        return screen::say("\nThere is no rule of thumb for what this task can hope for.");
    };
    screen::say("")?;
    let mut rows = vec![vec!["updates".to_owned()], vec!["clearness".to_owned()]];
    for &(updates, clearness) in by_updates {
        rows[0].push(number::count(updates));
        rows[1].push(number::significant(clearness, 2));
    }
    screen::table(&rows)?;
    screen::say(format!(
        "\nClearness: the largest signal there can be in what an agent hears, its neighbours' mean, over the noise in it. Here it \
         is {}: {}.",
        number::significant(clearness, 2),
        outlook::in_words(clearness)
    ))?;
    if outlook::worth_it(by_updates, outlook.calibrated) == Some(false) {
        screen::say(format!(
            "Not worth collaborating at this budget: even one update is not heard above {CLEARNESS_MIN}. More epsilon, more \
             points, more neighbours or fewer features would help."
        ))?;
    } else if let Some(suggested) = suggested {
        let heard = by_updates.iter().any(|&(_, clearness)| clearness >= CLEARNESS_FOR_UPDATES);
        let why = format!("the most that are heard with a clearness of {CLEARNESS_FOR_UPDATES} or more");
        let plural = if suggested == 1 { "" } else { "s" };
        let why = match (untuned_home, heard) {
            (true, _) => "home models gain most from few clear words",
            (false, true) => &why,
            (false, false) => "more would not be heard",
        };
        screen::say(format!("Suggested: {} update{plural}; {why}.", number::count(suggested)))?;
    } else {
        screen::say(
            "No verdict: the limits were set with Gaussian noise and a start at zero, and for this task the figure flatters.",
        )?;
    }
    screen::say(
        "A rule of thumb from public facts alone; it has not looked at anyone's data. docs/privacy.md says how far to trust it.",
    )
}

/// What the algorithm has to say besides: a line for each figure, and a table of those by several accountants.
fn details(outlook: &Outlook) -> Result<(), Mistake> {
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::String(word) => word.clone(),
        other => other.as_f64().map_or("-".to_owned(), |number| number::significant(number, 4)),
    };
    let (groups, lines): (Vec<_>, Vec<_>) = outlook.details.iter().partition(|(_, value)| value.is_object());
    if !lines.is_empty() {
        screen::say("")?;
        screen::table(
            &lines.iter().map(|(name, value)| vec![name.replace('_', " "), shown(value)]).collect::<Vec<_>>(),
        )?;
    }
    for (name, group) in groups {
        let Some(group) = group.as_object() else { continue };
        let columns: Vec<&String> =
            group.values().filter_map(|one| one.as_object()).flat_map(|one| one.keys()).collect();
        let mut unique: Vec<&String> = Vec::new();
        columns.into_iter().for_each(|column| {
            if !unique.contains(&column) {
                unique.push(column)
            }
        });
        let header = [name.replace('_', " ")].into_iter().chain(unique.iter().map(|column| column.replace('_', " ")));
        let mut rows = vec![header.collect::<Vec<_>>()];
        for (accountant, figures) in group {
            let cells = unique.iter().map(|column| figures.get(*column).map_or("-".to_owned(), shown));
            rows.push([accountant.clone()].into_iter().chain(cells).collect());
        }
        screen::say("")?;
        screen::table(&rows)?;
    }
    Ok(())
}

fn groups(outlook: &Outlook) -> Result<(), Mistake> {
    let header = ["training points", "agents", "sensitivity", "noise on each coordinate", "what they hear"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let spread = |least: Option<f64>, most: Option<f64>| match (least, most) {
        (Some(least), Some(most)) => {
            let [least, most] = [least, most].map(|x| number::significant(x, 2));
            if least == most { least } else { format!("{least} to {most}") }
        }
        _ => "-".to_owned(),
    };
    for group in &outlook.groups {
        rows.push(vec![
            format!("{} to {}", number::count(group.points_min as u64), number::count(group.points_max as u64)),
            number::count(group.agents as u64),
            spread(group.sensitivity_min, group.sensitivity_max),
            spread(group.noise_min, group.noise_max),
            group.clearness.map_or("-".to_owned(), |clearness| {
                format!("{} ({})", outlook::in_words(clearness), number::significant(clearness, 2))
            }),
        ]);
    }
    screen::table(&rows)
}

/// A picture that can be written.
struct Picture<'a> {
    file: &'a Path,
    svg: bool,
}

impl<'a> Picture<'a> {
    fn of(file: &'a Path) -> Result<Self, Mistake> {
        let svg = match file.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => true,
            Some("png") => false,
            _ => return Err(Mistake::file(file, "--plot needs a name that ends in .svg or .png")),
        };
        if file.exists() {
            return Err(Mistake::file(file, "exists already; accepted: a new file"));
        }
        Ok(Picture { file, svg })
    }
}

fn draw(loaded: &Loaded, outlook: &Outlook, own: &[(u64, f64)], picture: Picture<'_>) -> Result<(), Mistake> {
    let curve =
        |factor: f64| (factor * outlook.epsilon, outlook::by_updates(loaded, outlook, factor * outlook.epsilon));
    let curves = [curve(0.5), (outlook.epsilon, own.to_vec()), curve(2.0)];
    let updates = loaded.task.privacy.map_or(1, |privacy| privacy.updates);
    let Some(scene) = outlook::picture(&curves, updates) else {
        return Err(Mistake::file(picture.file, "there is nothing to draw: no rule of thumb for this algorithm"));
    };
    let bytes = if picture.svg { scene.svg().into_bytes() } else { scene.png() };
    // Beside its place first, so that it appears whole or not at all.
    let partial = picture.file.with_extension(format!("partial-{}", std::process::id()));
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, picture.file));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        Mistake::io(picture.file, "written", &error)
    })
}
