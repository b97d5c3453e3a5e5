//! `provost cost`: sums of what agents say that they have used.

use clap::{Args, Subcommand, ValueEnum};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::USAGE_DAYS_KEPT;

/// `provost cost`.
#[derive(Subcommand, Debug)]
pub(super) enum Cost {
    /// Show what agents say that they have used, in sums
    #[command(
        after_help = "Examples:\n  provost cost show\n  provost cost show --by day --since 7d\n  provost cost show --by task --limit 20\n  provost cost show --by model --json\n\nThe numbers are those that the agents' programs report. The daemon shows them and does not check them. Days are those of UTC."
    )]
    Show(Show),
}

/// `provost cost show`.
#[derive(Args, Debug)]
pub(super) struct Show {
    /// What is summed
    #[arg(long, value_enum, default_value_t = By::Agent)]
    by: By,
    /// Only of this time until now, such as 24h or 7d
    #[arg(long, value_parser = span, value_name = "7d")]
    since: Option<u64>,
    /// The largest number of rows
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// What is summed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// Each agent
    Agent,
    /// Each day
    Day,
    /// Each model
    Model,
    /// Each task
    Task,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            By::Agent => "agent",
            By::Day => "day",
            By::Model => "model",
            By::Task => "task",
        }
    }
}

/// A span of hours, days or weeks, in milliseconds.
fn span(text: &str) -> Result<u64, String> {
    let wrong = || format!("write a time such as 24h, 7d or 4w, up to {USAGE_DAYS_KEPT} days");
    let text = text.trim();
    let (number, unit) =
        text.split_at(text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len());
    let hours: u64 = match unit.trim() {
        "h" => 1,
        "d" => 24,
        "w" => 24 * 7,
        _ => return Err(wrong()),
    };
    let hours = number.parse::<u64>().ok().and_then(|it| it.checked_mul(hours)).ok_or_else(wrong)?;
    if (1..=USAGE_DAYS_KEPT * 24).contains(&hours) { Ok(hours * 3_600_000) } else { Err(wrong()) }
}

pub(super) fn cost(here: &RepoContext, asked: &Cost) -> Result<u8, CliError> {
    let Cost::Show(asked) = asked;
    let query = wire::CostQuery {
        by: Some(asked.by.word().into()),
        within_ms: asked.since,
        limit: Some(asked.limit),
    };
    let costs = wait_for(async { Ok(here.daemon(None).await?.cost(&query).await?) })?;
    if here.json {
        out::json(&costs)?;
        return Ok(DONE);
    }
    if costs.rows.is_empty() {
        out::note("no run has said what it used; `provost agent add` sets up agents that do");
        return Ok(DONE);
    }
    out::text_as_is(&table(asked.by, &costs))?;
    if costs.truncated {
        out::note("there are more rows; the total has them: --limit shows more");
    }
    out::note("as the agents report it; nothing of it was checked");
    Ok(DONE)
}

fn table(by: By, costs: &wire::Costs) -> String {
    let key = by.word().to_uppercase();
    let head = [key.as_str(), "AGENT", "RUNS", "IN", "CACHED", "OUT", "USD", "MODEL"];
    let mut rows = vec![head.map(String::from)];
    rows.extend(costs.rows.iter().map(|it| row(&it.key, it)));
    rows.push(row("total", &costs.total));
    match by {
        // The agent is the key.
        By::Agent => {
            let without = |[key, _, runs, read, cached, written, usd, model]: [String; 8]| {
                [key, runs, read, cached, written, usd, model]
            };
            out::table(&rows.into_iter().map(without).collect::<Vec<_>>())
        }
        _ => out::table(&rows),
    }
}

fn row(key: &str, it: &wire::CostRow) -> [String; 8] {
    let count = |number: Option<u64>| number.map_or("-".into(), |it| it.to_string());
    let cached = match (it.used.tokens_cache_read, it.used.tokens_cache_write) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0).saturating_add(write.unwrap_or(0))),
    };
    let name = |text: &str| if text.is_empty() { "-".to_owned() } else { out::one_line(text, 60) };
    [
        name(key),
        name(it.worker.as_deref().unwrap_or_default()),
        it.runs.to_string(),
        count(it.used.tokens_input),
        count(cached),
        count(it.used.tokens_output),
        it.used.cost_usd.map_or("-".into(), |it| format!("{it:.4}")),
        name(it.used.model.as_deref().unwrap_or_default()),
    ]
}
