//! The types for the usage of runs.

use serde::{Deserialize, Serialize};

/// The resources that a worker reports to have used. The daemon shows these reports and never relies on them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    /// Input tokens of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Output tokens of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Tokens that the model has spent on reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_reasoning: Option<u64>,
    /// Tokens read from the cache of the model's service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_cache_read: Option<u64>,
    /// Tokens written to that cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_cache_write: Option<u64>,
    /// The cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The model that the worker names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Used {
    /// Returns the reported usage as a line of text; the model's name is unchanged from the worker's report.
    pub fn in_words(&self) -> Option<String> {
        let parts = [
            (self.tokens_input, "tokens in"),
            (self.tokens_cache_read, "of the cache"),
            (self.tokens_cache_write, "into the cache"),
            (self.tokens_output, "out"),
            (self.tokens_reasoning, "of thinking"),
        ];
        let count = |(count, what): (Option<u64>, &str)| count.map(|count| format!("{count} {what}"));
        let mut parts: Vec<String> = parts.into_iter().filter_map(count).collect();
        parts.extend(self.cost_usd.map(|usd| format!("{usd:.4} USD")));
        let by = self.model.as_ref().map(|model| format!(" by {model}")).unwrap_or_default();
        (!parts.is_empty()).then(|| format!("{}{by}, as its worker says", parts.join(", ")))
    }
}
