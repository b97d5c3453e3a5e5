//! The types for the usage of models' tokens that the daemon itself has counted, and for budgets.

use serde::{Deserialize, Serialize};

use super::Used;

/// Differences below this share, in percent, are not reported: agents round, and omit parts of their usage.
const SAME_PERCENT: u64 = 5;

/// Tokens that the daemon has counted in the answers of model services, when it adds the secret. Workers cannot influence the counts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// The number of model calls.
    pub calls: u64,
    /// Input tokens, without those read from the cache.
    pub tokens_input: u64,
    /// Output tokens.
    pub tokens_output: u64,
    /// The reasoning tokens among them.
    pub tokens_reasoning: u64,
    /// Tokens read from the cache of the model services.
    pub tokens_cache_read: u64,
    /// Tokens written to that cache.
    pub tokens_cache_write: u64,
    /// Tokens that a service has not reported, guessed from sizes; they are in none of the other numbers.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens_guessed: u64,
    /// The price in US dollars by the configuration; absent if no model has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The models, as their services name them.
    pub models: Vec<String>,
    /// The models among them without a price: their tokens are not in the price.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Counted {
    /// Returns all tokens, including cached and guessed ones.
    pub fn tokens(&self) -> u64 {
        let all = [
            self.tokens_input,
            self.tokens_output,
            self.tokens_cache_read,
            self.tokens_cache_write,
            self.tokens_guessed,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the counts as a line of text.
    pub fn in_words(&self) -> String {
        let parts = [
            (self.tokens_input, "tokens in"),
            (self.tokens_cache_read, "of the cache"),
            (self.tokens_cache_write, "into the cache"),
            (self.tokens_output, "out"),
            (self.tokens_reasoning, "of thinking"),
            (self.tokens_guessed, "guessed, since the service did not tell them"),
        ];
        let told = parts.into_iter().filter(|(count, what)| *count > 0 || *what == "out");
        let mut parts: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        parts.extend(self.cost_usd.map(|usd| format!("{usd:.4} USD")));
        if !self.unpriced.is_empty() {
            match self.unpriced == self.models {
                true => parts.push("no price known".into()),
                false => parts.push(format!("no price for {}", names(&self.unpriced))),
            }
        }
        let calls = if self.calls == 1 { "call" } else { "calls" };
        format!(
            "{} by {} in {} {calls}, as the proxy has counted",
            parts.join(", "),
            names(&self.models),
            self.calls
        )
    }

    /// Returns how the agent's report differs, if by more than a small share.
    pub fn difference(&self, reported: &Used) -> Option<String> {
        let said = [
            reported.tokens_input,
            reported.tokens_output,
            reported.tokens_cache_read,
            reported.tokens_cache_write,
        ];
        if said.iter().all(Option::is_none) {
            return None;
        }
        let said = said.into_iter().flatten().fold(0, u64::saturating_add);
        let counted = self.tokens();
        let apart = said.abs_diff(counted);
        let differs = u128::from(apart) * 100 > u128::from(said.max(counted)) * u128::from(SAME_PERCENT);
        differs.then(|| format!("the agent reports {said} tokens, the proxy counted {counted}"))
    }
}

/// Joins names into a line, with a substitute for a model without a name.
fn names(names: &[String]) -> String {
    let name = |it: &String| if it.is_empty() { "a model that is not named".to_owned() } else { it.clone() };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The used part of a budget.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BudgetRow {
    /// The subject of the budget: `task ID`, `agent NAME`, `day`, `repository`.
    pub key: String,
    /// The used amount, as text with the unit.
    pub used: String,
    /// The budget, in the same form.
    pub of: String,
    /// The used share, in percent.
    pub percent: u64,
    /// `open`; `asked` until a person answers; `goes_on` after a yes; `stopped` after a no, or when it is used up; `unpriced`.
    pub state: String,
}
