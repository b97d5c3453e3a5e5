//! The entries of `[[price]]` and `[[budget]]`: prices of models' tokens, and bounds on their use.
//!
//! A wrong price is left out, and a budget in USD then holds calls of its model back. A wrong budget would set no
//! bound, so it is an error. A repository's file may have neither: the person who pays decides.

use toml::de::{DeArray, DeTable, DeValue};

use super::load::{Broken, File, Loading, Severity, join};
use super::table::{key, section};
use super::value::{Context, Mark, Row, Value, checked, quoted, words};
use super::worker::unknown;
use provost_base::AgentId;
use provost_base::limits::PRICES_MAX;

/// The millionths in one US dollar.
const MICRO: f64 = 1e6;
/// The highest price or budget, in US dollars.
const USD_MAX: f64 = 1e9;

words! {
    /// The scope of a budget.
    BudgetOf {
        /// A task with everything that it delegates, or a job of an editor.
        Task = "task",
        /// An agent, on one day.
        Agent = "agent",
        /// All agents, on one day.
        Day = "day",
        /// All agents, without a time limit.
        Repository = "repository",
    }
}

section! {
    /// One `[[price]]` entry: what a model's tokens cost, in US dollars for a million tokens. The first entry that fits the model's name counts, those of later files before those of earlier ones. Provost brings no prices: docs/cost.md has an example.
    PriceEntry {
        /// The model's name, as its service says it; `*` stands for anything.
        model: String = String::new(), "name", Required;
        /// Tokens that the model reads.
        input: Usd = Usd(0), "USD", Required;
        /// Tokens that the model writes.
        output: Usd = Usd(0), "USD", Required;
        /// Tokens out of the service's cache; without it, those cost as much as any that are read.
        cache_read: Option<Usd> = None, "USD";
        /// Tokens put into the service's cache; without it, those cost as much as any that are read.
        cache_write: Option<Usd> = None, "USD";
    }
}

section! {
    /// One `[[budget]]` entry: how much agents may use, by what the daemon counts in the answers of models' services. All entries count. Calls without a secret that the daemon adds are not seen, and count for nothing.
    BudgetEntry {
        /// `task`: each task with all that it delegates, and each job; `agent`: each agent on one day, with all that it delegates; `day`: all agents on one day; `repository`: all agents for good. Days are those of UTC.
        per: BudgetOf = BudgetOf::Task, "", Required, Strict;
        /// The one agent that it is for, with `per = "agent"`; without it, each agent has it.
        agent: Option<AgentId> = None, "ident", Strict;
        /// How many tokens, those of the cache included. Either this or `usd`.
        tokens: Option<u64> = None, "tokens" within Some(1)..=Some(1_000_000_000_000), Strict;
        /// How much money, by the `[[price]]` entries.
        usd: Option<Usd> = None, "USD", Strict;
        /// At which share a warning goes on record, in percent.
        warn_at: u32 = 60, "percent" within 1..=100, Strict;
        /// At which share a person is asked whether it goes on, in percent; with 100, no person is asked.
        ask_at: u32 = 80, "percent" within 1..=100, Strict;
    }
}

/// Money, in millionths of a US dollar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Usd(pub u64);

impl Value for Usd {
    const NAME: &'static str = "number";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let text = value.as_float().map(|it| it.as_str().replace('_', ""));
        let text = text.or_else(|| value.as_integer().map(ToString::to_string));
        let text = text.ok_or_else(|| format!("expected a number, found {}", value.type_str()))?;
        let usd = text.parse::<f64>().ok().filter(|it| (0.0..=USD_MAX).contains(it));
        let usd = usd.ok_or_else(|| format!("expected a number from 0 to {USD_MAX}, found {text}"))?;
        Ok(Self((usd * MICRO).round() as u64))
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&(self.0 as f64 / MICRO).to_string()).replace('"', ""))
    }
}

impl Loading {
    /// Reads the entries of `[[price]]`.
    pub(super) fn prices(&mut self, file: &File<'_>, list: &DeArray<'_>) {
        let mut found = Vec::new();
        for entry in list {
            let at = entry.span().start;
            if file.foreign {
                self.note(file, at, "price", NOT_THEIRS.into(), Severity::Warning);
                continue;
            }
            let read = match entry.get_ref() {
                _ if found.len() + self.done.config.prices.len() >= PRICES_MAX => {
                    Err(format!("there may be at most {PRICES_MAX} prices"))
                }
                DeValue::Table(table) => self.price(file, table),
                other => Err(format!("expected a table, found {}", other.type_str())),
            };
            match read {
                Ok(price) => found.push(price),
                Err(why) => {
                    self.note(file, at, "price", format!("{why}; this price is left out"), Severity::Error);
                }
            }
        }
        found.append(&mut self.done.config.prices);
        self.done.config.prices = found;
    }

    fn price(&mut self, file: &File<'_>, table: &DeTable<'_>) -> Result<PriceEntry, String> {
        let (mut price, rows) = (PriceEntry::default(), PriceEntry::rows());
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match price.set(name, value.get_ref(), &file.context) {
                Some(result) => result.map_err(|why| format!("`{name}`: {why}"))?,
                None => {
                    let message = unknown(name, &rows, "a price")?;
                    self.note(file, key.span().start, &join("price", name), message, Severity::Warning);
                }
            }
        }
        match ["model", "input", "output"].iter().find(|it| !table.contains_key(**it)) {
            Some(missing) => Err(format!("`{missing}` is missing")),
            None if price.model.trim().is_empty() => {
                Err("`model` is empty: name a model, or write \"*\"".into())
            }
            None => Ok(price),
        }
    }

    /// Reads the entries of `[[budget]]`.
    pub(super) fn budgets(&mut self, file: &File<'_>, list: &DeArray<'_>) -> Result<(), Broken> {
        for entry in list {
            let at = entry.span().start;
            if file.foreign {
                self.note(file, at, "budget", NOT_THEIRS.into(), Severity::Warning);
                continue;
            }
            let read = match entry.get_ref() {
                _ if self.done.config.budgets.len() >= PRICES_MAX => {
                    Err(format!("there may be at most {PRICES_MAX} budgets"))
                }
                DeValue::Table(table) => budget(file, table),
                other => Err(format!("expected a table, found {}", other.type_str())),
            };
            match read {
                Ok(budget) => self.done.config.budgets.push(budget),
                Err(why) => return Err(self.broken_at(file, at, "budget", why)),
            }
        }
        Ok(())
    }
}

/// The message about a price or a budget in a repository's file.
const NOT_THEIRS: &str = "is ignored: a repository may not set it; put it into your own configuration";

fn budget(file: &File<'_>, table: &DeTable<'_>) -> Result<BudgetEntry, String> {
    let (mut budget, rows) = (BudgetEntry::default(), BudgetEntry::rows());
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        match budget.set(name, value.get_ref(), &file.context) {
            Some(result) => result.map_err(|why| format!("`{name}`: {why}"))?,
            None => return Err(format!("`{name}` {}", unknown(name, &rows, "a budget")?)),
        }
    }
    if !table.contains_key("per") {
        return Err("`per` is missing: write one of task, agent, day, repository".into());
    }
    match (budget.tokens, budget.usd) {
        (None, None) => return Err("`tokens` or `usd` is missing: say how much may be used".into()),
        (Some(_), Some(_)) => {
            return Err("`tokens` and `usd` both say how much: make two entries of it".into());
        }
        (None, Some(Usd(0))) => {
            return Err("`usd` is nothing: a worker without a network makes no calls".into());
        }
        _ => {}
    }
    if budget.agent.is_some() && budget.per != BudgetOf::Agent {
        return Err("`agent` goes with `per = \"agent\"`".into());
    }
    Ok(budget)
}
