//! Counted tokens, their cost, and the amounts that may be used: the values from which budgets are made.

use serde::{Deserialize, Serialize};

use provost_base::AgentId;
use provost_base::limits::USAGE_SUM_MAX;

/// The number of tokens that a price is for.
const PRICED_TOKENS: u128 = 1_000_000;

/// The tokens of calls to a model, as they were counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// The number of calls.
    pub calls: u64,
    /// Tokens read, without those from the cache.
    pub input: u64,
    /// Tokens written, including those of thinking.
    pub output: u64,
    /// Tokens of thinking.
    pub reasoning: u64,
    /// Tokens read from the service's cache.
    pub cache_read: u64,
    /// Tokens put into that cache.
    pub cache_write: u64,
    /// Tokens read that the service did not report: estimated from the request's size.
    pub guessed_input: u64,
    /// Tokens written that the service did not report: estimated from the text's size.
    pub guessed_output: u64,
}

impl Counted {
    /// Adds more counts; each sum stays within its bound.
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

    /// Returns the sum of all tokens, cached and estimated ones included. Tokens of thinking are among the written ones.
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

/// The price of a model's tokens, in millionths of a US dollar for a million tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Price {
    /// The model's name; `*` stands for anything.
    pub model: Box<str>,
    /// The price of tokens read.
    pub input: u64,
    /// The price of tokens written.
    pub output: u64,
    /// The price of tokens from the cache.
    pub cache_read: u64,
    /// The price of tokens put into the cache.
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

    /// Returns the cost of these tokens, in millionths of a US dollar.
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

/// The unit to which a budget applies.
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

/// The amount that may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A number of tokens.
    Tokens(u64),
    /// An amount of money, in millionths of a US dollar.
    MicroUsd(u64),
}

impl Limit {
    /// Returns the amount, in its unit.
    pub fn most(self) -> u64 {
        match self {
            Limit::Tokens(most) | Limit::MicroUsd(most) => most,
        }
    }

    /// Returns an amount in this unit as text for people.
    pub fn text(self, amount: u64) -> String {
        match self {
            Limit::Tokens(_) => format!("{amount} tokens"),
            // The text is for people, to whom the last digits do not matter.
            Limit::MicroUsd(_) => format!("{:.2} USD", amount as f64 / 1e6),
        }
    }
}

/// A budget of the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The unit to which the budget applies.
    pub per: BudgetPer,
    /// The agent to which the budget applies; `None` means each agent by itself.
    pub agent: Option<AgentId>,
    /// The amount that may be used.
    pub limit: Limit,
    /// The share of the limit, in percent, at which a warning goes on record.
    pub warn_at: u8,
    /// The share of the limit, in percent, at which a person is asked; 100 means never.
    pub ask_at: u8,
}

/// The part of the configuration that is about money.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpendingSettings {
    /// Prices; the first one that fits a model counts.
    pub prices: Vec<Price>,
    /// Budgets; all of them apply.
    pub budgets: Vec<Budget>,
}

impl SpendingSettings {
    /// Returns the cost of a model's tokens, in millionths of a US dollar; `None` without a price.
    pub fn cost(&self, model: &str, it: &Counted) -> Option<u64> {
        self.prices.iter().find(|price| price.fits(model)).map(|price| price.of(it))
    }
}
