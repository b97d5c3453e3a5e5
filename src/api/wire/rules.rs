//! The rules in force, as they travel.

use serde::{Deserialize, Serialize};

/// Query of `GET /rules`. With a worker it is a request that is only thought of, and the answer says what the rules say to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesQuery {
    /// The worker of the request; without one, the rules are listed alone.
    pub worker: Option<String>,
    /// The directory, from the root of the repository; the root when absent.
    pub dir: Option<String>,
    /// The asking agent; `agent` when absent.
    pub client: Option<String>,
    /// The door of the request: `own`, `devit` and the like; `devit` when absent.
    pub door: Option<String>,
    /// The proof of the asking agent: `terminal`, `peer_uid`, `own_key`, `shared_key`; the last when absent.
    pub proof: Option<String>,
    /// `delegate`, `screenshot`, `apply` or `permission`; the first when absent.
    pub action: Option<String>,
    /// The tool of DevIt, or of a host.
    pub tool: Option<String>,
    /// The line that the tool would run.
    pub command: Option<String>,
    /// The file that the tool would touch.
    pub path: Option<String>,
    /// Whether the request is one of the person of this daemon that a passkey has signed: `client`, `door` and `proof` are theirs.
    pub by_passkey: bool,
}

/// Answer to [`RulesQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Digest of the rules in force.
    pub digest: String,
    /// The files that they come from; the later ones can only tighten.
    pub sources: Vec<String>,
    /// The rules, in the order of their files.
    pub rules: Vec<RuleTold>,
    /// What they say to the request, where there is one.
    pub outcome: Option<RuleOutcome>,
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleTold {
    /// Its name in decisions.
    pub id: String,
    /// `allow`, `approve` or `deny`.
    pub decision: String,
    /// Its reason, for callers and approvers.
    pub reason: String,
    /// The file that it is in.
    pub file: String,
    /// The line at which it begins there, from 1.
    pub line: usize,
    /// Whose answer counts, where it asks.
    pub by: Vec<String>,
    /// Whether it matches the request, where there is one.
    pub matched: Option<bool>,
    /// The first condition that does not hold for the request.
    pub unmet: Option<String>,
}

/// What the rules say to a request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleOutcome {
    /// `allow`, `approve` or `deny`.
    pub decision: String,
    /// The rule that decides; `no-rule` where none matches.
    pub rule: String,
    /// Its reason.
    pub reason: String,
    /// Whose answer counts, where an answer is waited for.
    pub by: Vec<String>,
    /// How long that is waited for, in seconds.
    pub wait_s: Option<u64>,
}
