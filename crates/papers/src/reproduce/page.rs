//! The page with all results: the verdicts first, then each experiment with its plots and tables. No script, nothing loaded from elsewhere.

use super::outcome::Table;
use super::results::{Report, Results, claims_table};
use super::verdict::Verdict;
use super::{find, picture};
use sottovoce_report::page::STYLE;
use sottovoce_report::plot::{dark_style, escape};
use std::fmt::Write;

/// Texts may wrap; the page's other tables hold numbers.
const MORE: &str = "\
table.claims td, table.claims th { white-space: normal; text-align: left; vertical-align: top; font-size: .9rem }
table.claims td:last-child { min-width: 12rem }
td.holds { color: #00704f } td.known-miss { color: #a04700 } td.failed { color: #c00000; font-weight: 700 }
.prose { max-width: 56rem }
@media screen and (prefers-color-scheme: dark) { td.holds { color: #3ec99e } td.known-miss { color: #ff924c } td.failed { color: #ff6b6b } }
";

/// The page.
pub fn html(results: &Results) -> String {
    let mut out = String::new();
    let quick = results.experiments.iter().any(|report| report.quick);
    // Writing to a String cannot fail; the results of `write!` are dropped throughout.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Papers, run again – Sottovoce</title>\n\
         <style>\n{STYLE}{MORE}{}</style>\n</head>\n<body>\n<main>\n",
        dark_style()
    );
    let (mut hold, mut miss, mut failed) = (0, 0, 0);
    for judged in results.experiments.iter().flat_map(|report| &report.claims) {
        match judged.verdict {
            Verdict::Holds => hold += 1,
            Verdict::KnownMiss => miss += 1,
            Verdict::Failed => failed += 1,
        }
    }
    let _ = writeln!(
        out,
        "<header>\n<p class=\"kicker\"><b>Papers, run again</b> · {}</p>\n<h1>{hold} claims hold, {miss} do not and we know why, \
         {failed} came out otherwise than expected.</h1>",
        if quick { "quick version: fewer agents, runs and dimensions" } else { "full version" }
    );
    out.push_str(
        "<p class=\"loud\">What is called “not DP” does not give the guarantee that it claims: its noise is too small, by the number of \
         dimensions or more. It is shown because the papers' figures rest on it, and can be used by no task and no peer.</p>\n</header>\n",
    );
    for report in &results.experiments {
        section(&mut out, report);
    }
    let _ = writeln!(
        out,
        "<footer><p>Made by Sottovoce {}. Bands are one standard deviation over the runs. This page loads nothing and runs no \
         script.</p></footer>\n</main>\n</body>\n</html>",
        escape(results.version)
    );
    out
}

fn section(out: &mut String, report: &Report) {
    let Some(experiment) = find(&report.name) else { return };
    let _ = writeln!(
        out,
        "<h2 id=\"{}\">{}: {}</h2>\n<p class=\"kicker\">{}</p>",
        escape(experiment.name),
        escape(experiment.name),
        escape(experiment.title),
        escape(experiment.paper.title)
    );
    let claims = claims_table(&report.claims);
    let verdicts: Vec<Verdict> = report.claims.iter().map(|judged| judged.verdict).collect();
    table(out, &claims, Some(&verdicts));
    out.push_str("<p></p>\n<div class=\"figures\">\n");
    for plot in &report.outcome.plots {
        let _ = write!(
            out,
            "<figure class=\"card\">\n{}<figcaption>{}</figcaption>\n</figure>\n",
            picture::scene(plot).svg(),
            escape(&plot.caption)
        );
    }
    out.push_str("</div>\n");
    for shown in &report.outcome.tables {
        let _ = writeln!(out, "<details class=\"card\"><summary>{}</summary>", escape(&shown.caption));
        table(out, shown, None);
        out.push_str("</details>\n");
    }
    let _ = writeln!(
        out,
        "<details class=\"card\"><summary>parameters.toml</summary><pre><code>{}</code></pre></details>",
        escape(experiment.toml)
    );
}

fn table(out: &mut String, table: &Table, verdicts: Option<&[Verdict]>) {
    let class = if verdicts.is_some() { " class=\"claims\"" } else { "" };
    let _ = write!(out, "<div class=\"card scroll\"><table{class}>\n<thead><tr>");
    for column in &table.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (k, row) in table.rows.iter().enumerate() {
        out.push_str("<tr>");
        for (column, cell) in table.columns.iter().zip(row) {
            let class = match verdicts.and_then(|verdicts| verdicts.get(k)).filter(|_| column == "verdict") {
                None => "",
                Some(Verdict::Holds) => " class=\"holds\"",
                Some(Verdict::KnownMiss) => " class=\"known-miss\"",
                Some(Verdict::Failed) => " class=\"failed\"",
            };
            let _ = write!(out, "<td{class}>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}
