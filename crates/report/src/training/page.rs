//! The page: the answer, the table, the pictures, and how to get them again. No script, nothing loaded from elsewhere.

use std::fmt::Write;

use super::words::headline;
use super::{Picture, Report, Row, curves, finite, private};
use crate::plot::number::{self, NONE, count};
use crate::plot::{Ink, dark_style, escape};

/// How pages look.
pub const STYLE: &str = include_str!("page.css");

/// The report as one self-contained HTML page that includes the pictures.
pub fn html(report: &Report, pictures: &[Picture]) -> String {
    let mut out = String::with_capacity(32 * 1024 + pictures.iter().map(|p| p.svg.len() + 512).sum::<usize>());
    // Writing to a String cannot fail; the results of `write!` are dropped throughout.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} – Sottovoce</title>\n\
         <style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        escape(&report.title),
        dark_style()
    );
    let _ = writeln!(
        out,
        "<header>\n<p class=\"kicker\"><b>{}</b> · {}</p>\n<h1>{}</h1>",
        escape(&report.title),
        escape(&report.subtitle),
        escape(&headline(report))
    );
    if !report.privacy.is_empty() {
        let _ = writeln!(out, "<p class=\"loud\">{}</p>", escape(&report.privacy));
    }
    for warning in report.private.iter().flat_map(|private| &private.warnings) {
        let _ = writeln!(out, "<p class=\"loud\">Warning: {}</p>", escape(warning));
    }
    out.push_str("</header>\n");
    write_table(&mut out, report);
    if let Some(private) = &report.private {
        out.push_str(&private::section(private));
    }
    write_figures(&mut out, pictures);
    write_reproduce(&mut out, report);
    out.push_str("</main>\n</body>\n</html>\n");
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

fn write_figures(out: &mut String, pictures: &[Picture]) {
    if pictures.is_empty() {
        return;
    }
    out.push_str("<h2>The pictures</h2>\n<div class=\"figures\">\n");
    for picture in pictures {
        let _ = write!(
            out,
            "<figure class=\"card\" id=\"{}\">\n{}<figcaption>{}</figcaption>\n</figure>\n",
            picture.file_stem,
            picture.svg,
            escape(&picture.caption)
        );
    }
    out.push_str("</div>\n");
}

fn write_reproduce(out: &mut String, report: &Report) {
    if !report.reproduce.is_empty() {
        let commands = escape(&report.reproduce.join("\n"));
        let _ = writeln!(out, "<h2>How to get this again</h2>\n<pre class=\"card\"><code>{commands}</code></pre>");
    }
    if !report.task.is_empty() {
        let _ = writeln!(
            out,
            "<h2>The task</h2>\n<details class=\"card\" open><summary>task.toml</summary><pre><code>{}</code></pre></details>",
            escape(&report.task)
        );
    }
    out.push_str("<footer>");
    if !report.digest.is_empty() {
        let _ = write!(out, "<p>{}: <code>{}</code>.</p>", escape(report.digest_in_words), escape(&report.digest));
    }
    let _ = writeln!(
        out,
        "<p>Made by Sottovoce {}. This page loads nothing and runs no script.</p></footer>",
        escape(&report.version)
    );
}
