//! Writes to standard output and standard error, without panics, and without any character that could move a cursor
//! or pass for something else.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};

use serde::Serialize;

use super::CliError;
use super::tasks::short_time;
use provost_jail::plain_text;

/// Writes one line to standard output. Foreign text in it must have passed [`plain`] or [`one_line`].
pub(super) fn line(text: impl Display) -> Result<(), CliError> {
    text_as_is(&format!("{text}\n"))
}

/// Writes text to standard output, unchanged.
pub(super) fn text_as_is(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::writing)
}

/// Writes JSON to standard output, with everything escaped that a terminal could obey.
pub(super) fn json(it: &impl Serialize) -> Result<(), CliError> {
    let pretty = serde_json::to_string_pretty(it).map_err(CliError::of)?;
    line(escaped(&pretty))
}

/// Writes one JSON value as a line of its own, for streams.
pub(super) fn json_line(it: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(it).map_err(CliError::of)?;
    line(escaped(&text))
}

/// Writes a text for a person to standard error; if that is closed, the text is lost.
pub(super) fn note(text: impl Display) {
    // One write, so that lines of several commands do not mix.
    let _unheard = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Returns foreign text of several lines, made harmless.
pub(super) fn plain(text: &str) -> String {
    plain_text(text)
}

/// Returns foreign text as one harmless line of at most `most` characters.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let text = plain_text(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= most {
        return text;
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Returns the name of a file or a symbol in one line of at most `most` characters, with hidden characters written out: of two names that
/// differ in them alone, each is shown as what it is.
pub(super) fn name(text: &str, most: usize) -> String {
    provost_base::visible_name(text, most)
}

/// Does the same as `one_line`, but cuts after a word, and adds the way to the rest.
pub(super) fn cut_at_a_word(text: &str, most: usize, rest: impl FnOnce() -> String) -> String {
    let text = one_line(text, usize::MAX);
    let Some((end, _)) = text.char_indices().nth(most) else { return text };
    let kept = text.get(..end).unwrap_or(&text);
    let kept = kept.rsplit_once(' ').map_or(kept, |(words, _)| words);
    format!("{kept} … ({})", rest())
}

/// Does the same as `one_line`, and keeps the leading spaces.
pub(super) fn one_line_indented(text: &str, most: usize) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indent), one_line(text, most.saturating_sub(indent)))
}

/// Returns a text of the daemon with its UTC times in this machine's time zone, as lists show them.
pub(super) fn local_times(text: &str) -> String {
    let mut local = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('Z') {
        // The length of a time without its Z: with milliseconds, or without.
        let found = [23, 19].into_iter().find_map(|len| {
            let from = before.len().checked_sub(len)?;
            let time = format!("{}Z", before.get(from..)?);
            chrono::DateTime::parse_from_rfc3339(&time).ok()?;
            Some((before.get(..from)?, time))
        });
        match found {
            Some((before, time)) => local.push_str(&format!("{before}{}", short_time(&time))),
            None => local.push_str(&format!("{before}Z")),
        }
        rest = after;
    }
    local + rest
}

/// Aligns the columns of rows; the first row is the heading.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns the width to fill: the terminal's, or, for a program, a width at which nothing useful is cut off.
pub(super) fn width() -> usize {
    provost_system::terminal_width().filter(|columns| *columns >= 40).map_or(1_000, usize::from)
}

/// A line about a slow operation: shown after a second, only on terminals, and erased at the end.
pub(super) struct Progress {
    what: String,
    since: std::time::Instant,
    shown: bool,
    /// Whether it must still be printed once where standard error is no terminal.
    told_once: bool,
}

/// The interval at which a line about a slow operation is written again.
const SHOWN_AGAIN: std::time::Duration = std::time::Duration::from_millis(250);

impl Progress {
    pub(super) fn begin(what: impl Into<String>) -> Self {
        Self { what: what.into(), since: std::time::Instant::now(), shown: false, told_once: false }
    }

    /// The same, but printed once as a plain line where standard error is no terminal.
    pub(super) fn told_once(mut self) -> Self {
        self.told_once = true;
        self
    }

    /// Replaces the text from now on.
    pub(super) fn says(&mut self, what: String) {
        self.what = what;
    }

    /// Shows the line while the future is pending.
    pub(super) async fn during<T>(&mut self, waited: impl Future<Output = T>) -> T {
        tokio::pin!(waited);
        loop {
            tokio::select! {
                done = &mut waited => return done,
                () = tokio::time::sleep(SHOWN_AGAIN) => self.tick(),
            }
        }
    }

    /// Shows the line while the work goes on, on a thread of its own.
    pub(super) fn beside<T: Send>(mut self, work: impl FnOnce() -> T + Send) -> T {
        let (ends, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let work = scope.spawn(move || {
                // Dropped at the end, also by a panic.
                let _ends = ends;
                work()
            });
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(SHOWN_AGAIN) {
                self.tick();
            }
            work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Updates the line; the caller calls it a few times a second.
    pub(super) fn tick(&mut self) {
        let elapsed = self.since.elapsed().as_secs();
        if elapsed < 1 {
            return;
        }
        if io::stderr().is_terminal() {
            self.shown = true;
            let _unseen = write!(io::stderr().lock(), "\r\x1b[K{} ({elapsed} s)", self.what);
        } else if std::mem::take(&mut self.told_once) {
            note(&self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _unseen = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Escapes control characters beyond U+001F and marks that turn text around, which JSON allows unescaped. They can
/// only be inside strings, where an escape means the same.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => text.push(c),
            c if c.is_control() || plain_text(c.encode_utf8(&mut [0; 4])).is_empty() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => text.push(c),
        }
    }
    text
}
