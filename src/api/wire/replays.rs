//! What other rules would have decided of requests that are on record.

use serde::{Deserialize, Serialize};

use super::RuleOutcome;

/// Body of `POST /replay-rules`. It changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayRules {
    /// Ready-made rules that are asked: `default`, `strict` or `open`.
    pub builtin: Option<String>,
    /// The text of a file of rules that are asked.
    pub text: Option<String>,
    /// How many decisions are looked at, from the newest back.
    pub last: Option<usize>,
}

/// Answer to [`ReplayRules`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesReplayed {
    /// Digest of the rules that were asked.
    pub digest: String,
    /// Of how many decisions they were asked.
    pub asked: u64,
    /// The oldest event that was looked at.
    pub from: u64,
    /// The newest event that was looked at.
    pub to: u64,
    /// Whether the time was over before enough decisions were found.
    pub late: bool,
    /// Decisions about tools of hosts, whose arguments are not on record.
    pub without_arguments: u64,
    /// Decisions about a command line that is kept no more.
    pub without_command: u64,
    /// The requests that they would have decided otherwise, newest first.
    pub changed: Vec<DecidedOtherwise>,
    /// Further ones.
    pub more: u64,
}

/// A request that other rules would have decided otherwise.
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
    /// The worker, where it was a delegation.
    pub worker: Option<String>,
    /// The task that came of it.
    pub task: Option<String>,
    /// What was decided: `allow`, `approve` or `deny`.
    pub was: String,
    /// The rule that decided.
    pub was_rule: String,
    /// What would have been decided.
    pub would: RuleOutcome,
}
