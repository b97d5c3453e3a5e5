//! Counted tokens, what they cost, and how much of them may be used: the values that budgets are made of.

use serde::{Deserialize, Serialize};

use provost_base::AgentId;
use provost_base::limits::USAGE_SUM_MAX;

/// Prices are for so many tokens.
const PRICED_TOKENS: u128 = 1_000_000;

/// Tokens of calls, as they were counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// How many calls there were.
    pub calls: u64,
    /// Tokens read, without those from the cache.
    pub input: u64,
    /// Tokens written, with those of thinking.
    pub output: u64,
    /// Tokens of thinking.
    pub reasoning: u64,
    /// Tokens from the service's cache.
    pub cache_read: u64,
    /// Tokens put into it.
    pub cache_write: u64,
    /// Tokens read that the service did not tell: guessed from the request's size.
    pub guessed_input: u64,
    /// Tokens written that the service did not tell: guessed from the text's size.
    pub guessed_output: u64,
}

impl Counted {
    /// Adds more.
    pub fn add(&mut self, more: &Self) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more).min(USAGE_SUM_MAX);
        sum(&mut self.calls, more.calls);
        sum(&mut self.input, more.input);
        sum(&mut self.output, more.output);
        sum(&mut self.reasoning, more.reasoning);
        sum(&mut self.cache_read, more.cache_read);
        sum(&mut self.cache_write, more.cache_write);
        sum(&mut self.guessed_input, more.guessed_input);
        sum(&mut self.guessed_output, more.guessed_output);
    }

    /// All tokens, those of the cache and the guessed ones included. Those of thinking are among the written ones.
    pub fn tokens(&self) -> u64 {
        let all = [
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.guessed_input,
            self.guessed_output,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

/// What a model's tokens cost, in millionths of a US dollar for a million tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Price {
    /// The model's name; `*` stands for anything.
    pub model: Box<str>,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens from the cache.
    pub cache_read: u64,
    /// Tokens put into it.
    pub cache_write: u64,
}

impl Price {
    fn fits(&self, model: &str) -> bool {
        let mut parts = self.model.split('*');
        let Some(mut rest) = parts.next().and_then(|first| model.strip_prefix(first)) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    }

    /// What these tokens cost, in millionths of a US dollar.
    fn of(&self, it: &Counted) -> u64 {
        let parts = [
            (it.input.saturating_add(it.guessed_input), self.input),
            (it.output.saturating_add(it.guessed_output), self.output),
            (it.cache_read, self.cache_read),
            (it.cache_write, self.cache_write),
        ];
        let sum: u128 = parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
        u64::try_from(sum.div_ceil(PRICED_TOKENS)).unwrap_or(u64::MAX)
    }
}

/// What a budget is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPer {
    /// A task, with all that is delegated by it.
    Task,
    /// An agent, on one day.
    Agent,
    /// A day.
    Day,
    /// The repository, for good.
    Repository,
}

/// How much may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many tokens.
    Tokens(u64),
    /// So much money, in millionths of a US dollar.
    MicroUsd(u64),
}

impl Limit {
    /// The amount, in its unit.
    pub fn most(self) -> u64 {
        match self {
            Limit::Tokens(most) | Limit::MicroUsd(most) => most,
        }
    }

    /// An amount in this unit, for people.
    pub fn text(self, amount: u64) -> String {
        match self {
            Limit::Tokens(_) => format!("{amount} tokens"),
            // For people, whom the last digits do not matter to.
            Limit::MicroUsd(_) => format!("{:.2} USD", amount as f64 / 1e6),
        }
    }
}

/// A budget of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// What it is for.
    pub per: BudgetPer,
    /// The agent that it is for; every one by itself where none is named.
    pub agent: Option<AgentId>,
    /// How much may be used.
    pub limit: Limit,
    /// At which share a warning goes on record, in percent.
    pub warn_at: u8,
    /// At which share a person is asked, in percent; with 100 none is.
    pub ask_at: u8,
}

/// What the configuration says of money.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpendingSettings {
    /// Prices; the first one that fits a model counts.
    pub prices: Vec<Price>,
    /// Budgets; all of them count.
    pub budgets: Vec<Budget>,
}

impl SpendingSettings {
    /// What tokens of a model cost, in millionths of a US dollar; `None` without a price.
    pub fn cost(&self, model: &str, it: &Counted) -> Option<u64> {
        self.prices.iter().find(|price| price.fits(model)).map(|price| price.of(it))
    }
}
