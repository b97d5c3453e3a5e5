//! Reads the tokens and the cost that a worker reports, from any place in its JSON output.
//!
//! DevIt 1.10, "Token/cost stats". The numbers are claims of the worker; the daemon shows them and never relies on
//! them.

use std::collections::VecDeque;

use serde_json::Value;

use super::result::clip;
use provost_jail::Used;

const INPUT: [&str; 4] = ["input_tokens", "tokens_input", "prompt_tokens", "prompt_token_count"];
const OUTPUT: [&str; 5] = [
    "output_tokens",
    "tokens_output",
    "completion_tokens",
    "completion_token_count",
    "candidates_token_count",
];
const REASONING: [&str; 2] = ["reasoning_tokens", "tokens_reasoning"];
const COST: [&str; 2] = ["cost_estimate_usd", "cost_usd"];
const CACHE_READ: [&str; 4] =
    ["cache_read_input_tokens", "cached_input_tokens", "cached_content_token_count", "tokens_cache_read"];
const CACHE_WRITE: [&str; 3] =
    ["cache_creation_input_tokens", "cache_write_input_tokens", "tokens_cache_write"];
const MODEL: [&str; 3] = ["model", "model_used", "model_name"];
/// Longest name of a model that is kept, in bytes.
const MODEL_LEN_MAX: usize = 200;
/// Names of objects in which a bare `cost` is a sum of money.
const PRICED: [&str; 2] = ["usage", "pricing"];

/// Tokens and cost of one run; `None` if the output does not report them.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Usage {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
    pub(super) cost_usd: Option<f64>,
    pub(super) model: Option<String>,
}

impl From<Used> for Usage {
    fn from(used: Used) -> Self {
        let Used { input, output, reasoning, cache_read, cache_write, cost_usd } = used;
        Self { input, output, reasoning, cache_read, cache_write, cost_usd, model: None }
    }
}

impl Usage {
    /// Reads a whole value, level by level: totals stand above their parts.
    pub(super) fn of(value: &Value) -> Self {
        let mut usage = Self::default();
        let mut total = None;
        let mut queue = VecDeque::from([("", value)]);
        while let Some((name, value)) = queue.pop_front() {
            match value {
                Value::Array(items) => queue.extend(items.iter().map(|item| (name, item))),
                Value::Object(members) => {
                    for (key, member) in members {
                        usage.note(name, key, member);
                        if key == "total_tokens" {
                            total = total.or(member.as_u64());
                        }
                        queue.push_back((key, member));
                    }
                }
                _ => {}
            }
        }
        usage.output = usage.output.or(total);
        usage
    }

    fn note(&mut self, within: &str, key: &str, value: &Value) {
        let tokens = |known: &mut Option<u64>| *known = known.or(value.as_u64());
        if INPUT.contains(&key) {
            tokens(&mut self.input);
        } else if OUTPUT.contains(&key) {
            tokens(&mut self.output);
        } else if REASONING.contains(&key) {
            tokens(&mut self.reasoning);
        } else if CACHE_READ.contains(&key) {
            tokens(&mut self.cache_read);
        } else if CACHE_WRITE.contains(&key) {
            tokens(&mut self.cache_write);
        } else if MODEL.contains(&key) {
            let named = value.as_str().map(|it| clip(it.trim(), MODEL_LEN_MAX)).filter(|it| !it.is_empty());
            self.model = self.model.take().or_else(|| named.map(str::to_owned));
        } else if key == "modelUsage" {
            // The members are models by name; if there are several, the one that did the work is unknown.
            let only = value.as_object().filter(|it| it.len() == 1).and_then(|it| it.keys().next());
            self.model = self.model.take().or_else(|| only.map(|it| clip(it, MODEL_LEN_MAX).to_owned()));
        } else if COST.contains(&key)
            || key.ends_with("_cost_usd")
            || (key == "cost" && PRICED.contains(&within))
        {
            let cost = value.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
            self.cost_usd = self.cost_usd.or(cost);
        }
    }
}
