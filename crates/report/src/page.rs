//! What all pages share: how they begin, show their pictures, and say how to get them again. No script, nothing loaded from elsewhere.

use crate::plot::{Scene, dark_style, escape};
use std::fmt::Write;

/// How pages look.
pub const STYLE: &str = include_str!("page.css");

/// Width and height of the pictures. Narrow enough that a phone shows their labels at a readable size.
pub(crate) const WIDTH: f64 = 480.0;
pub(crate) const HEIGHT: f64 = 350.0;
pub(crate) const TALL: f64 = 420.0;

/// One finished picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name of its files without extension.
    pub file_stem: &'static str,
    /// What it shows.
    pub title: String,
    /// How to read it, in plain words.
    pub caption: String,
    /// The picture as SVG.
    pub svg: String,
    /// The picture as the bytes of a PNG file.
    pub png: Vec<u8>,
}

impl Picture {
    pub(crate) fn new(file_stem: &'static str, caption: String, scene: &Scene) -> Picture {
        Picture { file_stem, title: scene.title.clone(), caption, svg: scene.svg(), png: scene.png() }
    }
}

/// How to get a page again, and what identifies the run that it is about.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Commands that give this report again.
    pub reproduce: Vec<String>,
    /// The text of the task file, as resolved.
    pub task: String,
    /// The digest of the run.
    pub digest: String,
    /// Of what the digest is.
    pub digest_in_words: &'static str,
    /// The version of the program.
    pub version: String,
}

/// The beginning of a page, up to the answer and what must be said loudly.
pub(crate) fn begin(title: &str, subtitle: &str, answer: &str, loud: &[String]) -> String {
    let mut out = String::with_capacity(64 * 1024);
    // Writing to a String cannot fail; the results of `write!` are dropped throughout.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} – Sottovoce</title>\n\
         <style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        escape(title),
        dark_style()
    );
    let _ = writeln!(
        out,
        "<header>\n<p class=\"kicker\"><b>{}</b> · {}</p>\n<h1>{}</h1>",
        escape(title),
        escape(subtitle),
        escape(answer)
    );
    for line in loud.iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "<p class=\"loud\">{}</p>", escape(line));
    }
    out.push_str("</header>\n");
    out
}

/// The pictures of a page.
pub(crate) fn write_figures(out: &mut String, pictures: &[Picture]) {
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

/// The end of a page: how to get it again.
pub(crate) fn end(out: &mut String, origins: &Origins) {
    if !origins.reproduce.is_empty() {
        let commands = escape(&origins.reproduce.join("\n"));
        let _ = writeln!(out, "<h2>How to get this again</h2>\n<pre class=\"card\"><code>{commands}</code></pre>");
    }
    if !origins.task.is_empty() {
        let _ = writeln!(
            out,
            "<h2>The task</h2>\n<details class=\"card\" open><summary>task.toml</summary><pre><code>{}</code></pre></details>",
            escape(&origins.task)
        );
    }
    out.push_str("<footer>");
    if !origins.digest.is_empty() {
        let _ = write!(out, "<p>{}: <code>{}</code>.</p>", escape(origins.digest_in_words), escape(&origins.digest));
    }
    let _ = writeln!(
        out,
        "<p>Made by Sottovoce {}. This page loads nothing and runs no script.</p></footer>",
        escape(&origins.version)
    );
    out.push_str("</main>\n</body>\n</html>\n");
}
