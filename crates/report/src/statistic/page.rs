//! The page: the answer, the numbers, the pictures, and how to get them again.

use super::Report;
use crate::page::{self, Picture};
use crate::plot::escape;
use crate::plot::number::{NONE, bytes, count, seconds, significant};
use std::fmt::Write;

/// Digits of an estimate.
const DIGITS: usize = 7;

/// An estimate as a reader likes it: without zeros at the end that say nothing.
fn value(x: f64) -> String {
    let text = significant(x, DIGITS);
    if text.contains('.') && !text.contains('×') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// The sentence a report opens with, such as "The mean of room is 3.42: 20 agents agree to within 1.0×10⁻⁹, and the farthest is 8.0×10⁻¹⁰
/// from the exact value." It is about the agents' estimates, not about their mean, which can be right where nobody is.
pub fn answer(report: &Report) -> String {
    let (what, knowing) = (&report.statistic, report.agents.len() as u64);
    let agents = match knowing {
        1 => "one agent".to_owned(),
        _ if knowing == report.agents_in_all => format!("{} agents", count(knowing)),
        _ => format!("{} of {} agents", count(knowing), count(report.agents_in_all)),
    };
    let values: Vec<String> = report.columns.iter().zip(&report.estimate).map(named(what)).collect();
    if values.is_empty() {
        return format!("Nobody has an estimate of the {what}.");
    }
    let agree = match report.spread() {
        Some(spread) if spread > 0.0 => format!("{agents} agree to within {}", significant(spread, 2)),
        _ if knowing == 1 => "one agent knows it".to_owned(),
        _ => format!("{agents} agree to the last digit"),
    };
    let mut text = format!("{}: {agree}", list(&values));
    text[..1].make_ascii_uppercase();
    match farthest(report) {
        Some(error) if error > 0.0 && knowing == 1 => {
            format!("{text}, and is {} from the exact value.", significant(error, 2))
        }
        Some(error) if error > 0.0 => {
            format!("{text}, and the farthest is {} from the exact value.", significant(error, 2))
        }
        Some(_) => format!("{text}, and it is the exact value."),
        None => format!("{text}."),
    }
}

fn named<'a>(what: &'a str) -> impl Fn((&'a String, &'a f64)) -> String {
    move |(column, x)| format!("the {what} of {column} is {}", value(*x))
}

/// "a", "a and b", "a, b and c".
fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The largest |estimate - exact| of an agent, in any column.
fn farthest(report: &Report) -> Option<f64> {
    (0..report.columns.len()).filter_map(|column| report.farthest(column)).reduce(f64::max)
}

/// What an estimate misses, in a sentence.
pub fn missing_in_words(passed_over: u32) -> String {
    let what =
        if passed_over == 1 { "One contribution is".to_owned() } else { format!("{passed_over} contributions are") };
    format!("{what} missing: their members were gone and were passed over.")
}

/// The report as one self-contained HTML page that includes the pictures.
pub fn html(report: &Report, pictures: &[Picture]) -> String {
    let missing = (report.passed_over > 0).then(|| missing_in_words(report.passed_over));
    let loud: Vec<String> = [report.privacy.clone()].into_iter().chain(missing).collect();
    let mut out = page::begin(&report.title, &report.subtitle, &answer(report), &loud);
    write_estimates(&mut out, report);
    write_cost(&mut out, report);
    page::write_figures(&mut out, pictures);
    page::end(&mut out, &report.origins);
    out
}

fn row(out: &mut String, name: &str, cells: &[String]) {
    let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(name));
    for cell in cells {
        let _ = write!(out, "<td>{cell}</td>");
    }
    out.push_str("</tr>\n");
}

fn write_estimates(out: &mut String, report: &Report) {
    out.push_str("<h2>The numbers</h2>\n<div class=\"card scroll\"><table>\n<thead><tr><th></th>");
    for name in ["mean of the agents", "lowest agent", "highest agent", "exact", "farthest agent's error"] {
        if report.exact.is_some() || !["exact", "farthest agent's error"].contains(&name) {
            let _ = write!(out, "<th scope=\"col\">{name}</th>");
        }
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (k, column) in report.columns.iter().enumerate() {
        let Some(estimate) = report.estimate.get(k) else { continue };
        let (low, high) = report.range(k).unwrap_or((f64::NAN, f64::NAN));
        let mut cells = vec![value(*estimate), value(low), value(high)];
        if let Some(exact) = report.exact.as_ref().and_then(|exact| exact.get(k)) {
            cells.extend([value(*exact), report.farthest(k).map_or(NONE.to_owned(), |error| significant(error, 2))]);
        }
        row(out, &format!("{} of {column}", report.statistic), &cells);
    }
    out.push_str("</tbody>\n</table>\n");
    if let Some(deviation) = report.error_predicted {
        let deviation = significant(deviation, 3);
        let _ = writeln!(
            out,
            "<div class=\"words\"><p>The noise alone gives an estimate a standard deviation of {deviation}, by the formula for a run in which nobody is passed over.</p></div>"
        );
    }
    out.push_str("</div>\n");
}

fn write_cost(out: &mut String, report: &Report) {
    let last = report.samples.last().copied().unwrap_or_default();
    out.push_str("<h2>What it cost, and against whom</h2>\n<div class=\"card scroll\"><table>\n<thead><tr><th></th>");
    for name in ["wakes", "letters sent", "data sent", "per agent", "time", "epsilon", "delta"] {
        let _ = write!(out, "<th scope=\"col\">{name}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let per_agent = last.bytes_sent.checked_div(report.agents_in_all).map_or(NONE.to_owned(), bytes);
    let (sent, time) = (bytes(last.bytes_sent), seconds(report.seconds));
    let cells = [count(last.wakes), count(last.letters_sent), sent, per_agent, time];
    let spent = [escape(&report.epsilon), significant(report.delta, 3)];
    row(out, "all agents", &[&cells[..], &spent[..]].concat());
    let _ = write!(
        out,
        "</tbody>\n</table>\n<div class=\"words\"><p>Epsilon is that of the agent that spent most, {}.</p>",
        escape(&report.guarantee)
    );
    if let Some(pairs) = &report.pairs {
        let _ = write!(out, "<p>{}</p>", pairs.in_words());
    }
    out.push_str("</div></div>\n");
}
