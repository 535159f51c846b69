//! The page: the answer, the table, the pictures, and how to get them again.

use std::fmt::Write;

use super::words::headline;
use super::{Report, Row, curves, finite, private};
use crate::page::{self, Picture};
use crate::plot::number::{self, NONE, count};
use crate::plot::{Ink, escape};

/// The report as one self-contained HTML page that includes the pictures.
pub fn html(report: &Report, pictures: &[Picture]) -> String {
    let warnings = report.private.iter().flat_map(|private| &private.warnings);
    let warnings = warnings.map(|warning| format!("Warning: {warning}"));
    let loud: Vec<String> = [report.privacy.clone()].into_iter().chain(warnings).collect();
    let mut out = page::begin(&report.title, &report.subtitle, &headline(report), &loud);
    write_table(&mut out, report);
    if let Some(private) = &report.private {
        out.push_str(&private::section(private));
    }
    page::write_figures(&mut out, pictures);
    page::end(&mut out, &report.origins);
    out
}

/// A column: its heading, and its cell for a row (HTML, already safe), or nothing.
type Column = (String, Cell);
type Cell = fn(&Row) -> Option<String>;

fn columns(report: &Report) -> Vec<Column> {
    let spread = |row: &Row| {
        let mean = number::score(finite(row.score_mean)?);
        Some(match finite(row.score_std) {
            Some(std) => format!("{mean} <span class=\"soft\">± {}</span>", number::score(std)),
            None => mean,
        })
    };
    let fixed: [(&str, Cell); 7] = [
        ("gain over local", |row| finite(row.gain).map(number::change)),
        ("agents that gain / lose", |row| Some(format!("{} / {}", count(row.agents_gain?), count(row.agents_lose?)))),
        ("objective", |row| finite(row.objective).map(|x| number::significant(x, 6))),
        ("wakes", |row| Some(count(row.wakes))),
        ("vectors sent", |row| Some(count(row.vectors_sent))),
        ("data sent", |row| Some(number::bytes(row.bytes_sent))),
        ("time", |row| finite(row.seconds).map(number::seconds)),
    ];
    let first: Column = (escape(&report.score_name), spread);
    std::iter::once(first).chain(fixed.into_iter().map(|(name, cell)| (name.to_string(), cell))).collect()
}

fn write_table(out: &mut String, report: &Report) {
    if report.table.is_empty() {
        return;
    }
    // A column in which nobody has a number says nothing.
    let mut columns = columns(report);
    columns.retain(|(_, cell)| report.table.iter().any(|row| cell(row).is_some()));
    out.push_str("<h2>The numbers</h2>\n<div class=\"card scroll\"><table>\n<thead><tr><th></th>");
    for (name, _) in &columns {
        let _ = write!(out, "<th scope=\"col\">{name}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &report.table {
        let run = report.runs.iter().position(|run| run.name == row.name);
        let at_home = report.private.as_ref().is_some_and(|private| private.home);
        let is_home = at_home && row.name == private::HOME;
        let main = if at_home { is_home } else { run.is_some_and(|i| i + 1 == report.runs.len()) };
        let ink = if is_home { Some(private::HOME_INK) } else { run.map(|i| curves::ink(report, i)) };
        let swatch = ink.map(swatch).unwrap_or_default();
        let class = if main { " class=\"main\"" } else { "" };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{swatch}{}</th>", escape(&row.name));
        for (_, cell) in &columns {
            let _ = write!(out, "<td>{}</td>", cell(row).unwrap_or_else(|| NONE.to_string()));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// A small disc in the colour of a run: a picture, so that the rules of the dark scheme reach it.
fn swatch(ink: Ink) -> String {
    let ([r, g, b], class) = (ink.light(), ink.class());
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">\
         <circle cx=\"6\" cy=\"6\" r=\"6\" class=\"f-{class}\" fill=\"#{r:02x}{g:02x}{b:02x}\"/></svg>"
    )
}
