//! What a user got wrong, in one line.

use std::fmt;
use std::path::{Path, PathBuf};

/// The longest piece of a user's own text that a message repeats, in characters.
const QUOTE_MAX: usize = 60;

/// A user's mistake: where it is and what would be accepted. Its text is always one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    file: Option<PathBuf>,
    line: Option<u64>,
    what: String,
}

impl Mistake {
    /// A mistake that is in no file, such as a command's argument.
    pub fn new(what: impl Into<String>) -> Self {
        Mistake { file: None, line: None, what: what.into() }
    }

    /// A mistake of a whole file.
    pub fn file(file: &Path, what: impl Into<String>) -> Self {
        Mistake { file: Some(file.to_owned()), line: None, what: what.into() }
    }

    /// A mistake on one line of a file, counted from 1.
    pub fn line(file: &Path, line: u64, what: impl Into<String>) -> Self {
        Mistake { file: Some(file.to_owned()), line: Some(line), what: what.into() }
    }

    /// The disk or the operating system said no.
    pub fn io(file: &Path, doing: &str, error: &std::io::Error) -> Self {
        Mistake::file(file, format!("cannot be {doing}: {error}"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if let Some(file) = &self.file {
            text = file.display().to_string();
            if let Some(line) = self.line {
                text += &format!(", line {line}");
            }
            text += ": ";
        }
        text += &self.what;
        // One line whatever a file's name or a library's message holds.
        text.chars().try_for_each(|c| if c.is_control() { write!(f, " ") } else { write!(f, "{c}") })
    }
}

/// A user's own text as a message repeats it: quoted, escaped, shortened.
pub fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * QUOTE_MAX + 4)]);
    let short: String = text.chars().take(QUOTE_MAX).collect();
    if short.len() < text.len() { format!("{:?}", short + "...") } else { format!("{short:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_it_repeats() {
        let mistake = Mistake::line(Path::new("a\nb.csv"), 3, format!("label {}\r\nis no number", quote(b"x\ny")));
        assert_eq!(mistake.to_string(), "a b.csv, line 3: label \"x\\ny\"  is no number");
        assert!(quote(&[b'x'; 10_000]).len() < 80);
        assert_eq!(quote(b"\xff"), "\"\u{fffd}\"");
    }
}
