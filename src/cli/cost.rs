//! `provost cost`: sums of the usage that agents report, and of the usage that the daemon has counted.

use clap::{Args, Subcommand, ValueEnum};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::USAGE_DAYS_KEPT;

/// `provost cost`.
#[derive(Subcommand, Debug)]
pub(super) enum Cost {
    /// Show what agents say that they have used, and what the daemon has counted, in sums
    #[command(
        after_help = "Examples:\n  provost cost show\n  provost cost show --by day --since 7d\n  provost cost show --by task --limit 20\n  provost cost show --by model --json\n\nReported numbers are those of the agents' programs, unchecked. Counted ones are those that the proxy reads in the answers of models' services. Days are those of UTC."
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

/// The unit by which usage is summed.
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

/// Reads a span of hours, days or weeks, in milliseconds.
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
        out::note("no run has used a model; `provost agent add` sets up agents that do");
        return Ok(DONE);
    }
    out::text_as_is(&table(asked.by, &costs))?;
    if costs.truncated {
        out::note("there are more rows; the total has them: --limit shows more");
    }
    out::note(
        "reported: as the agents report it, and nothing of it was checked; counted: by the proxy, in the answers of the models' services",
    );
    for note in notes(&costs) {
        out::note(&note);
    }
    Ok(DONE)
}

/// Returns notes about the rows: differences, models without a price, guessed tokens, budgets.
fn notes(costs: &wire::Costs) -> Vec<String> {
    let mut notes = Vec::new();
    for row in &costs.rows {
        let differs = row.counted.as_ref().and_then(|it| it.difference(&row.used));
        notes.extend(differs.map(|differs| format!("{}: {differs}", out::one_line(&row.key, 60))));
    }
    if let Some(total) = &costs.total.counted {
        if !total.unpriced.is_empty() {
            let models = total.unpriced.iter().map(|it| if it.is_empty() { "(not named)" } else { it });
            let models = models.collect::<Vec<_>>().join(", ");
            notes.push(format!(
                "no price for {}: their tokens are not in USD; [[price]] sets one",
                out::one_line(&models, 200)
            ));
        }
        if total.tokens_guessed > 0 {
            notes.push(format!(
                "{} tokens are guessed, since their service did not tell them",
                total.tokens_guessed
            ));
        }
    }
    for it in &costs.budgets {
        let state = match it.state.as_str() {
            "asked" => ", a person is asked: `provost approval list`",
            "goes_on" => ", a person lets it go on",
            "stopped" => ", no further call is made",
            "unpriced" => ", no further call is made: a model has no price",
            _ => "",
        };
        notes.push(format!(
            "budget of {}: {} of {} used ({} %){state}",
            out::one_line(&it.key, 60),
            it.used,
            it.of,
            it.percent
        ));
    }
    notes
}

fn table(by: By, costs: &wire::Costs) -> String {
    let key = by.word().to_uppercase();
    let head = [key.as_str(), "AGENT", "", "RUNS", "CALLS", "IN", "CACHED", "OUT", "USD", "MODEL"];
    let mut rows = vec![head.map(String::from)];
    costs.rows.iter().for_each(|it| rows.extend(both(&it.key, it)));
    rows.extend(both("total", &costs.total));
    match by {
        // The key column already has the agent.
        By::Agent => {
            let without = |[key, _, rest @ ..]: [String; 10]| {
                let [source, runs, calls, read, cached, written, usd, model] = rest;
                [key, source, runs, calls, read, cached, written, usd, model]
            };
            out::table(&rows.into_iter().map(without).collect::<Vec<_>>())
        }
        _ => out::table(&rows),
    }
}

/// Returns a row of the reported usage, and one of the counted usage, where the daemon has counted some.
fn both(key: &str, it: &wire::CostRow) -> Vec<[String; 10]> {
    let name = |text: &str| if text.is_empty() { "-".to_owned() } else { out::one_line(text, 60) };
    let count = |number: Option<u64>| number.map_or("-".into(), |it| it.to_string());
    let usd = |usd: Option<f64>| usd.map_or("-".into(), |it| format!("{it:.4}"));
    let head = |source: &str| [name(key), name(it.worker.as_deref().unwrap_or_default()), source.to_owned()];
    let mut rows = Vec::new();
    if it.runs > 0 || it.counted.is_none() {
        let cached = match (it.used.tokens_cache_read, it.used.tokens_cache_write) {
            (None, None) => None,
            (read, write) => Some(read.unwrap_or(0).saturating_add(write.unwrap_or(0))),
        };
        let [key, worker, source] = head("reported");
        let model = name(it.used.model.as_deref().unwrap_or_default());
        rows.push([
            key,
            worker,
            source,
            it.runs.to_string(),
            "-".into(),
            count(it.used.tokens_input),
            count(cached),
            count(it.used.tokens_output),
            usd(it.used.cost_usd),
            model,
        ]);
    }
    if let Some(counted) = &it.counted {
        let [key, worker, source] = head("counted");
        let cached = counted.tokens_cache_read.saturating_add(counted.tokens_cache_write);
        let one = if let [only] = &counted.models[..] { only.as_str() } else { "" };
        rows.push([
            key,
            worker,
            source,
            "-".into(),
            counted.calls.to_string(),
            counted.tokens_input.to_string(),
            cached.to_string(),
            counted.tokens_output.to_string(),
            usd(counted.cost_usd),
            name(one),
        ]);
    }
    rows
}
