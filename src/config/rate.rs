//! A rate, in every spelling that DevIt's configuration knows. DevIt 1.8.

use toml::de::DeValue;

use super::value::{Context, Value, integer, split_number};
use provost_base::Ttl;

/// A number of times per span; a count of zero means without limit, as in DevIt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Rate {
    /// The number of times; 0 means without limit.
    pub count: u32,
    /// The span, in seconds.
    pub per_s: u32,
}

impl Rate {
    /// The longest span, in seconds: a week, like every other.
    const SPAN_MAX_S: u64 = 7 * 24 * 3_600;
    const COUNT: [&str; 3] = ["count", "max", "max_actions"];
    const SPAN: [&str; 4] = ["per_seconds", "window_secs", "interval", "every"];

    fn wrong() -> String {
        "expected a rate such as \"10/minute\", \"3/30s\" or \"100/hour\", a number per minute, or \
         { count = 3, per_seconds = 30 }"
            .into()
    }

    fn checked(count: u64, per_s: u64) -> Result<Self, String> {
        let count = u32::try_from(count).map_err(|_| format!("a count must not be above {}", u32::MAX))?;
        match u32::try_from(per_s) {
            Ok(per_s) if (1..=Self::SPAN_MAX_S).contains(&u64::from(per_s)) => Ok(Self { count, per_s }),
            _ => Err(format!("the span of a rate is 1 to {} seconds", Self::SPAN_MAX_S)),
        }
    }

    /// Reads a table: DevIt 1.8 has three names for the count and four for the span; one of each may stand in it.
    fn of_table(table: &toml::de::DeTable<'_>, context: &Context) -> Result<Self, String> {
        let known = |key: &str| Self::COUNT.contains(&key) || Self::SPAN.contains(&key);
        if let Some(key) = table.keys().map(toml::Spanned::get_ref).find(|key| !known(key)) {
            return Err(format!("`{key}` is not a part of a rate; {}", Self::wrong()));
        }
        let one = |names: &[&'static str]| {
            let mut there = names.iter().filter_map(|name| Some((name, table.get(*name)?.get_ref())));
            let first = there.next();
            match (first, there.next()) {
                (Some((one, _)), Some((other, _))) => {
                    Err(format!("`{one}` and `{other}` mean the same; write one"))
                }
                (first, _) => Ok(first.map(|(_, value)| value)),
            }
        };
        let count = whole(one(&Self::COUNT)?.ok_or_else(Self::wrong)?)?;
        let span = match one(&Self::SPAN)? {
            None => 60,
            Some(text) if text.is_str() => u64::from(Ttl::read(text, context)?.as_millis()) / 1_000,
            Some(number) => whole(number)?,
        };
        Self::checked(count, span)
    }
}

/// Reads a whole number, also where it is written `10.0`.
fn whole(value: &DeValue<'_>) -> Result<u64, String> {
    let Some(float) = value.as_float() else { return integer(value) };
    let digits = float.as_str().strip_suffix(".0").unwrap_or(float.as_str());
    let plain = Some(digits).filter(|it| it.bytes().all(|b| b.is_ascii_digit()));
    plain
        .and_then(|it| it.parse().ok())
        .ok_or_else(|| format!("expected a whole number from 0 upwards, found {float}"))
}

impl Value for Rate {
    const NAME: &'static str = "rate";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let text = match value {
            DeValue::Integer(_) | DeValue::Float(_) => return Self::checked(whole(value)?, 60),
            DeValue::Table(table) => return Self::of_table(table, context),
            other => other.as_str().ok_or_else(Self::wrong)?.to_ascii_lowercase(),
        };
        let (count, span) =
            text.split_once('/').or_else(|| text.split_once("per ")).ok_or_else(Self::wrong)?;
        let (times, unit) = split_number(span);
        let unit_s = match unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
            _ => return Err(Self::wrong()),
        };
        let times = if span.trim_start().starts_with(|c: char| c.is_ascii_digit()) { times } else { Some(1) };
        let per_s = times.and_then(|times| times.checked_mul(unit_s)).ok_or_else(Self::wrong)?;
        match split_number(count) {
            (Some(count), "") => Self::checked(count, per_s),
            _ => Err(Self::wrong()),
        }
    }
    fn print(&self) -> Option<String> {
        Some(match self.per_s {
            60 => format!("\"{}/minute\"", self.count),
            3_600 => format!("\"{}/hour\"", self.count),
            seconds => format!("\"{}/{seconds}s\"", self.count),
        })
    }
}
