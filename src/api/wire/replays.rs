//! The decisions that other rules would have made about recorded requests.

use serde::{Deserialize, Serialize};

use super::RuleOutcome;

/// Body of `POST /replay-rules`. It changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayRules {
    /// The ready-made rules to try: `default`, `strict` or `open`.
    pub builtin: Option<String>,
    /// The text of a file of rules to try.
    pub text: Option<String>,
    /// The most decisions to check, from the newest back.
    pub last: Option<usize>,
}

/// Answer to [`ReplayRules`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesReplayed {
    /// Digest of the rules that were tried.
    pub digest: String,
    /// The number of decisions on which they were tried.
    pub asked: u64,
    /// The oldest event that was read.
    pub from: u64,
    /// The newest event that was read.
    pub to: u64,
    /// Whether the time ended before enough decisions were found.
    pub late: bool,
    /// The number of decisions about tools of hosts, whose arguments are not on record.
    pub without_arguments: u64,
    /// The number of decisions about a command line that is no longer kept.
    pub without_command: u64,
    /// The requests that they would have decided differently, newest first.
    pub changed: Vec<DecidedOtherwise>,
    /// The number of further ones.
    pub more: u64,
}

/// A request that other rules would have decided differently.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DecidedOtherwise {
    /// The event of the decision.
    pub seq: u64,
    /// When it was decided.
    pub at: String,
    /// The kind of request, as rules name it.
    pub action: String,
    /// The agent that asked.
    pub asked_by: String,
    /// The worker, if it was a delegation.
    pub worker: Option<String>,
    /// The task that it made.
    pub task: Option<String>,
    /// The decision: `allow`, `approve` or `deny`.
    pub was: String,
    /// The rule that decided.
    pub was_rule: String,
    /// The decision that the other rules would have made.
    pub would: RuleOutcome,
}
