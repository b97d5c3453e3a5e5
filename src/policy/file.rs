//! A rule file, read and checked, but not yet compiled.
//!
//! It has the rules in normal form: defaults filled in, units resolved, patterns in one spelling. Its digest is the
//! version of the policy; both evaluators start from it.

use serde::{Deserialize, Serialize};

use super::condition::When;
use super::request::Request;
use provost_base::{RuleId, Ttl};
use provost_domain::{Approver, Credentials, Door, Git, Proof, Rate, Tier, WorkerKind};

pub(super) use provost_domain::Action;

/// The time that an approval waits for an answer if its rule does not say.
pub const APPROVAL_WAIT: Ttl = Ttl::minutes(10);

/// The ruling of a rule for the requests that it matches. Ordered: later is stricter, and the strictest wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The request may go on.
    Allow,
    /// The request waits for an approver.
    Approve,
    /// The request is refused.
    Deny,
}

impl Ruling {
    /// Returns its name in rules.
    pub fn name(self) -> &'static str {
        match self {
            Ruling::Allow => "allow",
            Ruling::Approve => "approve",
            Ruling::Deny => "deny",
        }
    }
}

/// Returns the reason why a rule cannot ask for approval of this action, if there is one.
pub fn cannot_wait(action: Action) -> Option<&'static str> {
    match action {
        Action::Approve => {
            Some("this rule asks for approval, and an answer to an approval cannot wait for another")
        }
        Action::Token => {
            Some("this rule demands approval, and a token is made while the caller waits; allow or deny it")
        }
        Action::Delegate | Action::Screenshot | Action::Apply | Action::Permission => None,
    }
}

/// The kind of network that a worker asks for, without the particulars.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Net {
    /// No network at all.
    None,
    /// Ports of the host's loopback.
    Ports,
    /// Hosts through the proxy.
    Hosts,
}

pub(super) const RULINGS: &[(&str, Ruling)] =
    &[("allow", Ruling::Allow), ("approve", Ruling::Approve), ("deny", Ruling::Deny)];
pub(super) const ACTIONS: &[(&str, Action)] = &[
    ("delegate", Action::Delegate),
    ("screenshot", Action::Screenshot),
    ("apply", Action::Apply),
    ("permission", Action::Permission),
    ("approve", Action::Approve),
    ("token", Action::Token),
];
/// Every door that a caller can come in through; the daemon's own actions are not judged.
pub(super) const DOORS: &[(&str, Door)] = Door::ENTRANCES;
pub(super) const PROOFS: &[(&str, Proof)] = &[
    ("shared_key", Proof::SharedKey),
    ("own_key", Proof::OwnKey),
    ("peer_uid", Proof::PeerUid),
    ("person", Proof::Terminal),
    ("desktop", Proof::Desktop),
    ("jailed", Proof::Jailed),
    ("token", Proof::Token),
    ("passkey", Proof::Passkey),
];
pub(super) const KINDS: &[(&str, WorkerKind)] = &[("cli", WorkerKind::Cli), ("polling", WorkerKind::Polling)];
pub(super) const TIERS: &[(&str, Tier)] = &[("job", Tier::Job), ("ll", Tier::Ll), ("ns", Tier::Ns)];
pub(super) const CREDENTIALS: &[(&str, Credentials)] =
    &[("proxy", Credentials::Proxy), ("file", Credentials::File), ("env", Credentials::Env)];
pub(super) const GITS: &[(&str, Git)] = &[("read", Git::Read), ("write", Git::Write)];
pub(super) const NETS: &[(&str, Net)] = &[("none", Net::None), ("ports", Net::Ports), ("hosts", Net::Hosts)];

/// The limits of a rule that permits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Limit {
    /// The least confinement that the worker must have.
    pub tier_min: Option<Tier>,
    /// The longest run of the worker.
    pub timeout: Option<Ttl>,
    /// The largest data segment of one process, in bytes.
    pub memory: Option<u64>,
    /// The most processes at once in the jail.
    pub processes: Option<u32>,
    /// The most unfinished tasks of one client under this rule.
    pub concurrent: Option<u32>,
    /// The most uses by one client within a window.
    pub rate: Option<Rate>,
    /// The `host:port` pairs that may be reached.
    pub hosts: Option<Vec<Box<str>>>,
    /// The furthest that secrets may go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Most attempts that may follow the first one of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

/// The approvers that a rule asks, and the time to answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ask {
    /// The kinds of approvers whose answer counts.
    pub by: Vec<Approver>,
    /// The time that an approval waits for an answer.
    pub expires: Ttl,
    /// The number of times that the question is repeated after that time, before it counts as denied.
    #[serde(skip_serializing_if = "is_none")]
    pub again: u32,
}

/// Checks whether the question is never repeated. A file without the key keeps the digest from before the key existed.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none(again: &u32) -> bool {
    *again == 0
}

/// One rule, with its conditions and limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// The rule's name in decisions and in the log.
    pub id: RuleId,
    /// The ruling for requests that match.
    pub decision: Ruling,
    /// The rule's reason, for callers and approvers.
    pub reason: Box<str>,
    /// The conditions under which it matches.
    pub when: When,
    /// The limits of what it permits.
    pub limit: Limit,
    /// The approvers that it asks; `Some` for `approve`, and only there.
    pub ask: Option<Ask>,
    /// The line at which it begins in its file.
    #[serde(skip)]
    pub line: usize,
    #[serde(skip)]
    pub(super) examples: Vec<Example>,
}

/// A request in a rule's example: the rule states whether it matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Example {
    pub(super) line: usize,
    pub(super) matches: bool,
    pub(super) request: Request,
}

/// A whole rule file in normal form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct File {
    /// The file's name in messages.
    #[serde(skip)]
    pub name: Box<str>,
    /// The rules, in the order of the file.
    pub rules: Vec<Rule>,
}
