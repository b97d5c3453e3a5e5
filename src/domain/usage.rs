//! The usage of a run, as its worker reports it: tokens, cost, and the model. These are claims: shown and kept, and
//! never relied on.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use provost_base::Json;

/// Tokens, money and a model; each is `None` if the worker does not report it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, as the model's service counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written, as the model's service counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens that the model has spent on thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Tokens that came out of the service's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens that were put into that cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_microusd: Option<u64>,
    /// The model that the worker names; without one, the model that it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
}

impl Usage {
    /// Returns the usage in the metadata of a report; `None` if there is none.
    pub fn of_metadata(metadata: Option<&Json>) -> Option<Self> {
        let metadata = metadata?.value();
        let number = |name: &str| metadata.get(name).and_then(Value::as_u64);
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).map(Into::into);
        let cost = metadata.get("cost_estimate_usd").and_then(Value::as_f64);
        let usage = Self {
            input: number("tokens_input"),
            output: number("tokens_output"),
            reasoning: number("tokens_reasoning"),
            cache_read: number("tokens_cache_read"),
            cache_write: number("tokens_cache_write"),
            // A claim that is too large is cut, and a negative one counts as zero.
            cost_microusd: cost.filter(|it| it.is_finite()).map(|it| (it * 1e6).round() as u64),
            model: text("model_reported").or_else(|| text("model_used")),
        };
        (usage != Self::default()).then_some(usage)
    }

    /// Adds the usage of another run. The newest model is the one that is named.
    pub fn add(&mut self, more: &Self) {
        let sum = |to: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *to = Some(to.unwrap_or(0).saturating_add(more));
            }
        };
        sum(&mut self.input, more.input);
        sum(&mut self.output, more.output);
        sum(&mut self.reasoning, more.reasoning);
        sum(&mut self.cache_read, more.cache_read);
        sum(&mut self.cache_write, more.cache_write);
        sum(&mut self.cost_microusd, more.cost_microusd);
        if more.model.is_some() {
            self.model.clone_from(&more.model);
        }
    }
}
