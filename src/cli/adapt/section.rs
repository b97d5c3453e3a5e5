//! The marked section in a host's file: finds it, replaces it and removes it, without changing any byte outside of it.
//!
//! ```text
//! <!-- provost:begin claude made=1 -->      a line of its own; what follows the name says how to take it out again
//! ...
//! <!-- provost:end claude -->
//! ```
//! `made` counts the file and the folders above it that were made for the section. `joined` is present when the text before
//! had no line end, which was then added: it is removed with the section, if the line before is still the same.

use std::ops::Range;

use clap::ValueEnum as _;

use super::host::AgentHost;
use provost_base::Digest;

/// The reason why the section cannot be told from the text around it. Lines are counted from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Damage {
    /// Two beginnings.
    #[error("lines {0} and {1} both begin the section of {host}", host = .2.word())]
    TwoBeginnings(usize, usize, AgentHost),
    /// No end.
    #[error("line {0} begins the section of {host}, and no line after it ends it", host = .1.word())]
    NoEnd(usize, AgentHost),
    /// No beginning.
    #[error("line {0} ends a section of {host} that no line before it begins", host = .1.word())]
    NoBeginning(usize, AgentHost),
    /// A line that Provost does not write.
    #[error("line {0} is not what the section of {host} begins with", host = .1.word())]
    Unreadable(usize, AgentHost),
}

/// The data that removing a section needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Marks {
    made: usize,
    joined: Option<String>,
}

struct Found {
    /// From the first byte of the line that begins it to the end of the line that ends it.
    range: Range<usize>,
    marks: Marks,
}

/// The file without the section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rest {
    /// The text.
    pub(super) text: Vec<u8>,
    /// The number of things that were made for the section: the file, and the folders above it.
    pub(super) made: usize,
}

/// Returns the text with this section in it. A new section comes last; `made` counts what was made for it.
///
/// # Errors
/// [`Damage`]; the caller must leave the text unchanged.
pub(super) fn put(text: &[u8], host: AgentHost, body: &str, made: usize) -> Result<Vec<u8>, Damage> {
    debug_assert!(!body.lines().any(|it| it.starts_with("<!--")), "nothing in it looks like a marker");
    let found = find(text, host)?;
    // A section keeps the line ends with which it begins.
    let pattern = found.as_ref().map_or(text, |it| &text[it.range.clone()]);
    let line_end = if is_crlf(pattern) { "\r\n" } else { "\n" };
    let (range, marks, ends) = match found {
        // A last line without a line end keeps none.
        Some(it) => {
            let ends = text[it.range.clone()].ends_with(b"\n");
            (it.range, it.marks, ends)
        }
        None => {
            let joined = (!text.is_empty() && !text.ends_with(b"\n")).then(|| digest_of(last_line(text)));
            (text.len()..text.len(), Marks { made, joined }, true)
        }
    };
    let mut section = String::new();
    if marks.joined.is_some() && range.is_empty() {
        section.push_str(line_end);
    }
    let lines =
        [beginning(host, &marks)].into_iter().chain(body.lines().map(str::to_owned)).chain([end(host)]);
    for line in lines {
        section.push_str(&line);
        section.push_str(line_end);
    }
    if !ends {
        section.truncate(section.len() - line_end.len());
    }
    Ok([&text[..range.start], section.as_bytes(), &text[range.end..]].concat())
}

/// Returns the text without the section; `None` where it has no section.
///
/// # Errors
/// [`Damage`]; the caller must leave the text unchanged.
pub(super) fn take_out(text: &[u8], host: AgentHost) -> Result<Option<Rest>, Damage> {
    let Some(Found { range, marks }) = find(text, host)? else { return Ok(None) };
    let mut before = &text[..range.start];
    // The added line end stays where text follows, which would otherwise join the line before.
    if let Some(joined) = marks.joined.filter(|_| range.end == text.len()) {
        let is_ours = |without: &&[u8]| digest_of(last_line(without)) == joined;
        let without =
            [&b"\n"[..], b"\r\n"].into_iter().filter_map(|it| before.strip_suffix(it)).find(is_ours);
        before = without.unwrap_or(before);
    }
    let text = [before, &text[range.end..]].concat();
    Ok(Some(match inherit(&text, host, marks.made)? {
        Some(text) => Rest { text, made: 0 },
        None => Rest { text, made: marks.made },
    }))
}

/// Hands the count of made things to another section in the same file, whose removal is then the last.
fn inherit(text: &[u8], host: AgentHost, made: usize) -> Result<Option<Vec<u8>>, Damage> {
    if made == 0 {
        return Ok(None);
    }
    for other in AgentHost::value_variants().iter().filter(|it| **it != host) {
        let Some(Found { range, marks }) = find(text, *other)? else { continue };
        let line = text[range.clone()].split_inclusive(|it| *it == b'\n').next().unwrap_or_default();
        let rest = &text[range.start + line.trim_ascii_end().len()..];
        let begins = beginning(*other, &Marks { made, ..marks });
        return Ok(Some([&text[..range.start], begins.as_bytes(), rest].concat()));
    }
    Ok(None)
}

fn beginning(host: AgentHost, marks: &Marks) -> String {
    let made = if marks.made > 0 { format!(" made={}", marks.made) } else { String::new() };
    let joined = marks.joined.as_ref().map(|it| format!(" joined={it}")).unwrap_or_default();
    format!("<!-- provost:begin {}{made}{joined} -->", host.word())
}

fn end(host: AgentHost) -> String {
    format!("<!-- provost:end {} -->", host.word())
}

fn find(text: &[u8], host: AgentHost) -> Result<Option<Found>, Damage> {
    let begins = format!("<!-- provost:begin {} ", host.word());
    let ends = end(host);
    let mut begun: Option<(usize, usize, Marks)> = None;
    let mut found = None;
    let mut at = 0;
    for (number, line) in text.split_inclusive(|it| *it == b'\n').enumerate() {
        let (start, number) = (at, number + 1);
        at += line.len();
        let line = line.trim_ascii_end();
        if line.starts_with(begins.as_bytes()) {
            if let Some((first, ..)) = &begun {
                return Err(Damage::TwoBeginnings(*first, number, host));
            }
            let marks = marks(&line[begins.len()..]).ok_or(Damage::Unreadable(number, host))?;
            begun = Some((number, start, marks));
        } else if line == ends.as_bytes() {
            match (&begun, &found) {
                (Some((_, start, marks)), None) => {
                    found = Some(Found { range: *start..at, marks: marks.clone() });
                }
                _ => return Err(Damage::NoBeginning(number, host)),
            }
        }
    }
    match (begun, found) {
        (Some((number, ..)), None) => Err(Damage::NoEnd(number, host)),
        (_, found) => Ok(found),
    }
}

fn marks(rest: &[u8]) -> Option<Marks> {
    let words = std::str::from_utf8(rest).ok()?.strip_suffix("-->")?;
    let mut marks = Marks::default();
    for word in words.split_whitespace() {
        match word.split_once('=')? {
            ("made", number) => marks.made = number.parse().ok().filter(|it| *it < 100)?,
            ("joined", digest) => marks.joined = Some(digest.to_owned()),
            _ => return None,
        }
    }
    Some(marks)
}

/// Returns whether the first line ends with CR and LF; the others are assumed to end alike.
fn is_crlf(text: &[u8]) -> bool {
    text.split_inclusive(|it| *it == b'\n').next().is_some_and(|line| line.ends_with(b"\r\n"))
}

fn last_line(text: &[u8]) -> &[u8] {
    text.rsplit(|it| *it == b'\n').next().unwrap_or_default()
}

fn digest_of(line: &[u8]) -> String {
    Digest::of(line).to_string().chars().take(12).collect()
}
