//! The types for the rules in force.

use serde::{Deserialize, Serialize};

/// Query of `GET /rules`. A query with a worker describes a hypothetical request, and the answer has the rules' decision about it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesQuery {
    /// The worker of the request; without one, the answer only lists the rules.
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
    /// The command line that the tool would run.
    pub command: Option<String>,
    /// The file that the tool would touch.
    pub path: Option<String>,
    /// Whether it is a request of this daemon's person, signed by a passkey: `client`, `door` and `proof` follow from that.
    pub by_passkey: bool,
}

/// Answer to [`RulesQuery`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Digest of the rules in force.
    pub digest: String,
    /// The files of the rules; the later ones can only tighten.
    pub sources: Vec<String>,
    /// The rules, in the order of their files.
    pub rules: Vec<RuleTold>,
    /// The decision about the request, if the query has one.
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
    /// The file of the rule.
    pub file: String,
    /// The line at which the rule begins there, from 1.
    pub line: usize,
    /// The approvers whose answer counts, if the rule demands an approval.
    pub by: Vec<String>,
    /// Whether it matches the request, if the query has one.
    pub matched: Option<bool>,
    /// The first condition that does not hold for the request.
    pub unmet: Option<String>,
}

/// The decision of the rules about a request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleOutcome {
    /// `allow`, `approve` or `deny`.
    pub decision: String,
    /// The rule that decides; `no-rule` if none matches.
    pub rule: String,
    /// Its reason.
    pub reason: String,
    /// The approvers whose answer counts, if an approval is demanded.
    pub by: Vec<String>,
    /// How long the daemon waits for that answer, in seconds.
    pub wait_s: Option<u64>,
}
