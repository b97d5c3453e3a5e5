//! The rows as they are printed: Markdown, so that they can go into a document as they are.

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;

use crate::machine;

/// What the numbers of a row are, and so which end of them is the best.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// More is better.
    PerSecond,
    /// Less is better.
    Milliseconds,
    /// Less is better.
    Microseconds,
}

/// One number per round.
#[derive(Clone, Default)]
pub(crate) struct Rounds(pub(crate) Vec<f64>);

impl Rounds {
    pub(crate) fn push(&mut self, number: f64) {
        self.0.push(number);
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            len if len % 2 == 1 => sorted[len / 2],
            len => f64::midpoint(sorted[len / 2 - 1], sorted[len / 2]),
        }
    }

    pub(crate) fn best(&self, unit: Unit) -> f64 {
        let better = if unit == Unit::PerSecond { f64::max } else { f64::min };
        self.0.iter().copied().fold(f64::NAN, better)
    }
}

/// Where the rows go.
pub(crate) struct Table {
    begun: Instant,
}

impl Table {
    pub(crate) fn begin() -> Result<Self> {
        say(&machine::describe())?;
        Ok(Self { begun: Instant::now() })
    }

    pub(crate) fn section(&mut self, name: &str) -> Result<()> {
        say(&format!("\n## {name}\n"))
    }

    /// Opens a table of ratios.
    pub(crate) fn ratios(&mut self, rounds: usize) -> Result<()> {
        say(&format!(
            "Best and median of {rounds} rounds, the two sides of a row by turns.\n\n\
             | | best | floor's best | ratio of bests | median | floor's median | ratio of medians |\n\
             |---|---|---|---|---|---|---|"
        ))
    }

    pub(crate) fn ratio(&mut self, what: &str, unit: Unit, ours: &Rounds, floor: &Rounds) -> Result<()> {
        let (best, floor_best) = (ours.best(unit), floor.best(unit));
        let (median, floor_median) = (ours.median(), floor.median());
        say(&format!(
            "| {what} | {} | {} | **{:.2}** | {} | {} | {:.2} |",
            number(best, unit),
            number(floor_best, unit),
            best / floor_best,
            number(median, unit),
            number(floor_median, unit),
            median / floor_median,
        ))
    }

    /// A sentence between tables.
    pub(crate) fn note(&mut self, text: &str) -> Result<()> {
        say(text)
    }

    pub(crate) fn end(self) -> Result<()> {
        say(&format!(
            "\nTook {:.0} s; load average at the end {}.",
            self.begun.elapsed().as_secs_f64(),
            machine::load()
        ))
    }
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond if value >= 10_000.0 => format!("{:.1} k/s", value / 1_000.0),
        Unit::PerSecond => format!("{value:.0} /s"),
        Unit::Milliseconds => format!("{value:.2} ms"),
        Unit::Microseconds => format!("{value:.2} µs"),
    }
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// For what ends the run.
pub(crate) fn complain(text: &str) {
    // If nobody reads standard error, nobody is there to be told.
    let _ = writeln!(std::io::stderr(), "{text}");
}
