//! Text in columns of a terminal: its hidden characters are shown, none moves a cursor, and it has the width that the terminal gives it.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use provost_base::visible;
use provost_jail::plain_text;

/// A tab as spaces.
const TAB: &str = "    ";

/// Returns a text with hidden and control characters shown; line ends stay.
pub(crate) fn shown(text: &str) -> String {
    visible(text).replace('\t', TAB)
}

/// Does the same in one line.
pub(crate) fn one_line(text: &str) -> String {
    shown(text).replace('\n', " ")
}

/// Returns a worker's output without colours and the like, with hidden characters shown.
pub(crate) fn of_a_worker(text: &str) -> String {
    shown(&plain_text(text))
}

/// Returns the number of columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns a text of at most `most` columns; a longer one ends with a sign that says so.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut taken = 0;
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if taken + columns + 1 > most {
            break;
        }
        taken += columns;
        out.push(c);
    }
    if most > 0 {
        out.push('…');
    }
    out
}

/// Returns a text of exactly so many columns: cut, or with spaces behind it.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let rest = columns.saturating_sub(text.width());
    text + &" ".repeat(rest)
}

/// Returns a text in lines of at most so many columns, broken at spaces where possible.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut out = Vec::new();
    for line in text.split('\n') {
        wrap_line(line, columns, &mut out);
    }
    out
}

fn wrap_line(line: &str, columns: usize, out: &mut Vec<String>) {
    let (mut filled, mut taken) = (String::new(), 0_usize);
    // The place of the line's last space.
    let mut space: Option<usize> = None;
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
        if taken + wide > columns {
            let rest = match space.take().filter(|at| *at > 0 && c != ' ') {
                Some(at) => filled.split_off(at).trim_start_matches(' ').to_owned(),
                None => String::new(),
            };
            out.push(std::mem::replace(&mut filled, rest));
            taken = filled.width();
            if c == ' ' {
                continue;
            }
        }
        if c == ' ' {
            space = Some(filled.len());
        }
        filled.push(c);
        taken += wide;
    }
    out.push(filled);
}

/// Writes a moment in the form of RFC 3339 in the zone of this machine: as a time today, otherwise with its day.
pub(crate) fn clock(at: &str, now_ms: i64) -> String {
    let Ok(read) = chrono::DateTime::parse_from_rfc3339(at) else { return one_line(at) };
    let local = read.with_timezone(&chrono::Local);
    let today = chrono::DateTime::from_timestamp_millis(now_ms)
        .map(|now| now.with_timezone(&chrono::Local).date_naive());
    match today == Some(local.date_naive()) {
        true => local.format("%H:%M:%S").to_string(),
        false => local.format("%Y-%m-%d %H:%M").to_string(),
    }
}

/// Writes a moment of this program as a time of day.
pub(crate) fn clock_of(at_ms: i64) -> String {
    let at = chrono::DateTime::from_timestamp_millis(at_ms);
    at.map(|at| at.with_timezone(&chrono::Local).format("%H:%M:%S").to_string()).unwrap_or_default()
}

/// Returns the seconds until a moment in the form of RFC 3339; `None` for a malformed one.
pub(crate) fn seconds_until(at: &str, now_ms: i64) -> Option<i64> {
    let read = chrono::DateTime::parse_from_rfc3339(at).ok()?;
    Some((read.timestamp_millis().saturating_sub(now_ms)).div_euclid(1000))
}

/// Writes the duration from one moment to another, or until now.
pub(crate) fn took(from: &str, to: Option<&str>, now_ms: i64) -> String {
    let at = |text: &str| Some(chrono::DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis());
    let Some(from) = at(from) else { return one_line(from) };
    let until = to.map_or(Some(now_ms), at).unwrap_or(now_ms);
    match until.saturating_sub(from).max(0) / 1000 {
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} min", s / 3600, s / 60 % 60),
    }
}

/// Writes the time that is left until a moment.
pub(crate) fn time_left(at: &str, now_ms: i64) -> String {
    match seconds_until(at, now_ms) {
        None => one_line(at),
        Some(left) if left < 0 => "over".into(),
        Some(left) if left < 3600 => format!("{}:{:02} left", left / 60, left % 60),
        Some(left) if left < 86_400 => format!("{} h {:02} min left", left / 3600, left / 60 % 60),
        Some(left) => format!("{} d {} h left", left / 86_400, left / 3600 % 24),
    }
}
