//! Reads durations, sizes, rates and hours, as people write them.

use serde::Serialize;

use provost_base::limits::{RATE_USES_MAX, TTL_MAX_MS};
use provost_base::{Timestamp, Ttl};
use provost_domain::Rate;

const MINUTE_MS: u64 = 60_000;
const DAY_MINUTES: u16 = 24 * 60;

/// Splits `20m` into 20 and `m`.
fn amount(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

fn unit_ms(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" | "min" => Some(MINUTE_MS),
        "h" => Some(60 * MINUTE_MS),
        "d" => Some(24 * 60 * MINUTE_MS),
        _ => None,
    }
}

/// Reads a duration: `20m`, `90s`, `1h`.
pub(super) fn duration(text: &str) -> Result<Ttl, String> {
    let wrong = || format!("`{text}` is not a duration; write a number and ms, s, m, h or d, as in \"20m\"");
    let (number, unit) = amount(text).ok_or_else(wrong)?;
    let ms = number.saturating_mul(unit_ms(unit).ok_or_else(wrong)?);
    let days = u64::from(TTL_MAX_MS) / (24 * 60 * MINUTE_MS);
    Ttl::from_millis(ms)
        .ok_or_else(|| format!("`{text}` is out of range: more than nothing, at most {days}d"))
}

/// Reads a size: `2GiB`, `4096`, `64KiB`; returns bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write a number and B, KiB, MiB or GiB, as in \"2GiB\"");
    let (number, unit) = amount(text).ok_or_else(wrong)?;
    let scale = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(scale).ok_or_else(|| format!("`{text}` is too large"))
}

/// Reads a rate: `30/h`, `30/h per client`, `5/30s`. Rates always count per client; the words are for readers.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || format!("`{text}` is not a rate; write \"30/h per client\" or \"5/30s\"");
    let short = text.strip_suffix("per client").unwrap_or(text).trim();
    let (count, window) = short.split_once('/').ok_or_else(wrong)?;
    let count: u32 = count.trim().parse().map_err(|_| wrong())?;
    let window = window.trim();
    let window = if unit_ms(window).is_some() { format!("1{window}") } else { window.to_owned() };
    let per = duration(&window).map_err(|_| wrong())?;
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 || most > RATE_USES_MAX {
        return Err(format!("`{text}` is out of range: between 1 and {RATE_USES_MAX} uses"));
    }
    Ok(Rate { count, per })
}

/// A part of every day, at a fixed offset from UTC. It may begin before midnight and end after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Hours {
    /// The first minute of the day that belongs to it, local time.
    pub from: u16,
    /// The first minute of the day that no longer belongs to it.
    pub to: u16,
    /// The minutes that local time is ahead of UTC.
    pub offset: i16,
}

impl Hours {
    /// Checks whether a moment falls within these hours.
    pub(super) fn hold(self, now: Timestamp) -> bool {
        let minute = now.0.div_euclid(60_000).saturating_add(i64::from(self.offset));
        let minute = minute.rem_euclid(i64::from(DAY_MINUTES));
        let (from, to) = (i64::from(self.from), i64::from(self.to));
        if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
    }
}

fn clock(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 || !text.bytes().all(|b| b.is_ascii_digit() || b == b':') {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let within = minutes < 60 && hours * 60 + minutes <= DAY_MINUTES;
    within.then_some(hours * 60 + minutes)
}

fn utc_offset(text: &str) -> Option<i16> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let minutes = i16::try_from(clock(text.get(1..)?)?).ok()?;
    (minutes <= 14 * 60).then_some(sign * minutes)
}

/// Reads hours: `08:00-20:00+01:00`, `22:00-06:00Z`.
pub(super) fn hours(text: &str) -> Result<Hours, String> {
    let wrong =
        || format!("`{text}` is not a time of day; write \"08:00-20:00+01:00\", with its offset from UTC");
    let (from, rest) = text.split_once('-').ok_or_else(wrong)?;
    let end = rest.char_indices().nth(5).map_or(rest.len(), |(at, _)| at);
    let (to, offset) = rest.split_at(end);
    let (from, to) = (clock(from).ok_or_else(wrong)?, clock(to).ok_or_else(wrong)?);
    if offset.is_empty() {
        return Err(format!("`{text}` has no offset from UTC; write \"{text}Z\" or \"{text}+01:00\""));
    }
    let offset = utc_offset(offset).ok_or_else(wrong)?;
    if from == to || from == DAY_MINUTES {
        return Err(format!("`{text}` is empty or the whole day; leave it out for the whole day"));
    }
    Ok(Hours { from, to, offset })
}

impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, offset) = (if self.offset < 0 { '-' } else { '+' }, self.offset.unsigned_abs());
        let [from, to, offset] =
            [self.from, self.to, offset].map(|it| format!("{:02}:{:02}", it / 60, it % 60));
        write!(f, "{from}-{to}{sign}{offset}")
    }
}
