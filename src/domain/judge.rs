//! The core's requests to policy, and policy's answers.
//!
//! The rules themselves are in `policy`, which implements [`Judge`]. Limits travel with the decision as
//! [`Terms`], so that a permission never exists without its conditions.

use serde::{Deserialize, Serialize};

use super::{Command, Principal, ToolFacts};
pub use provost_base::Tier;
use provost_base::{AgentId, Digest, RepoPath, RuleId, Timestamp, Ttl};

/// The actions that are subject to policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Hand work to a worker.
    Delegate,
    /// Take a picture of the screen.
    Screenshot,
    /// Bring a worker's result into the repository.
    Apply,
    /// Use a tool of the agent's own host about which the host would ask its person.
    Permission,
    /// Answer another agent's approval, as an agent.
    Approve,
    /// Have a token made for oneself.
    Token,
}

impl Action {
    /// Returns the word in rules.
    pub fn name(self) -> &'static str {
        match self {
            Action::Delegate => "delegate",
            Action::Screenshot => "screenshot",
            Action::Apply => "apply",
            Action::Permission => "permission",
            Action::Approve => "approve",
            Action::Token => "token",
        }
    }
}

/// A worker's access to the repository whose files it changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Git {
    /// The worker may read the repository, and cannot change it.
    #[default]
    Read,
    /// The worker may write to it: commit, stage, move branches, hide.
    Write,
}

/// A worker's access to the network.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The worker has no network at all.
    #[default]
    None,
    /// The worker may connect to these ports of the host's loopback, and to nothing else.
    Ports(Vec<u16>),
    /// Listed `host:port` pairs through the daemon's proxy.
    Hosts(Vec<Box<str>>),
}

impl Network {
    /// Returns the word in rules: `none`, `ports`, `hosts`.
    pub fn name(&self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Ports(_) => "ports",
            Network::Hosts(_) => "hosts",
        }
    }
}

/// The reach of a worker's secrets. Ordered: later reaches further.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// The daemon adds them to requests; the worker never has them.
    Proxy,
    /// A file in the worker's private home.
    File,
    /// A variable of the worker.
    Env,
}

impl Credentials {
    /// Returns the word in rules: `proxy`, `file`, `env`.
    pub fn name(self) -> &'static str {
        match self {
            Credentials::Proxy => "proxy",
            Credentials::File => "file",
            Credentials::Env => "env",
        }
    }
}

/// A secret that a worker would be given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SecretUse {
    /// The name under which the vault keeps it.
    pub name: Box<str>,
    /// The way in which the worker would get it.
    pub by: Credentials,
}

/// The way in which a worker gets its tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerKind {
    /// A command in the configuration, started by the daemon in the jail.
    Cli,
    /// A process of its own that collects its tasks; no jail binds it.
    Polling,
}

/// A number of uses within a sliding window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Uses allowed; at least one.
    pub count: u32,
    /// The length of the window.
    pub per: Ttl,
}

/// The limits that come with a permission. `None` means that this rule sets no limit of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The weakest confinement that the worker may have.
    pub tier_min: Option<Tier>,
    /// The longest run; `None` leaves the worker's own limit.
    pub timeout: Option<Ttl>,
    /// The largest data segment of one process, in bytes.
    pub memory: Option<u64>,
    /// The highest number of processes at once in the jail.
    pub processes: Option<u32>,
    /// The number of this client's tasks that may be unfinished under this rule.
    pub concurrent: Option<u32>,
    /// The rate at which this client may use the rule.
    pub rate: Option<Rate>,
    /// `host:port` pairs that the proxy may connect to.
    pub hosts: Vec<Box<str>>,
    /// The furthest reach of secrets; `None` is no further than the proxy.
    pub credentials: Option<Credentials>,
    /// How many attempts may follow the first one; `None` leaves it to the worker's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

impl Terms {
    /// Returns the stricter limit of both in every respect.
    #[must_use]
    pub(super) fn within(&self, other: &Terms) -> Terms {
        fn least<T: Ord + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.into_iter().chain(b).min()
        }
        let rates = self.rate.into_iter().chain(other.rate);
        Terms {
            tier_min: self.tier_min.max(other.tier_min),
            timeout: least(self.timeout, other.timeout),
            memory: least(self.memory, other.memory),
            processes: least(self.processes, other.processes),
            concurrent: least(self.concurrent, other.concurrent),
            rate: rates.min_by_key(|it| u64::from(it.count) * 1_000_000 / u64::from(it.per.as_millis())),
            hosts: self.hosts.iter().filter(|host| other.hosts.contains(host)).cloned().collect(),
            credentials: self.credentials.zip(other.credentials).map(|(one, two)| one.min(two)),
            retries: least(self.retries, other.retries),
        }
    }
}

/// A kind of approver that a rule can name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// A person at a terminal or at the desktop, or a passkey.
    Human,
    /// A person with a passkey, and no other approver.
    Passkey,
    /// A person with a passkey, and, once a passkey is enrolled, no other approver that the rule names; until then
    /// a person at a terminal or at the desktop as well.
    PasskeyIfEnrolled,
    /// The person at the host of the asking agent, by a dialog that this host shows.
    Host,
    /// An agent that holds a key of its own with the approver's role (`client:approver`).
    Agent(AgentId),
}

impl Approver {
    /// Returns the narrower of two approvers, if one contains the other: a passkey is a person, too.
    pub fn narrower<'a>(&'a self, other: &'a Approver) -> Option<&'a Approver> {
        use Approver::{Human, Passkey, PasskeyIfEnrolled};
        match (self, other) {
            _ if self == other => Some(self),
            (Human, Passkey | PasskeyIfEnrolled) | (PasskeyIfEnrolled, Passkey) => Some(other),
            (Passkey | PasskeyIfEnrolled, Human) | (Passkey, PasskeyIfEnrolled) => Some(self),
            _ => None,
        }
    }

    /// Checks whether this approver includes the other one.
    pub fn covers(&self, other: &Approver) -> bool {
        self.narrower(other) == Some(other)
    }
}

/// Policy's decision about one command.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Go on, within these terms.
    Allow {
        /// The rule that gave the reason and limits.
        rule: RuleId,
        /// Limits, intersected over all rules that allow.
        terms: Terms,
    },
    /// The request waits for an approver.
    NeedApproval {
        /// The rule that asks.
        rule: RuleId,
        /// The reason, for the approver.
        reason: Box<str>,
        /// Limits of the command once granted.
        terms: Terms,
        /// The time in which an answer counts.
        wait: Ttl,
        /// The number of times that the question is asked again after that time, before it counts as denied.
        again: u32,
        /// The kinds of approvers whose answer counts.
        by: Vec<Approver>,
    },
    /// The request is refused.
    Deny {
        /// The rule that denies; `no-rule` when nothing matched.
        rule: RuleId,
        /// The reason, for the caller.
        reason: Box<str>,
    },
}

/// A directory as it was when the command came in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Directory {
    /// The path relative to the repository root, links resolved.
    pub relative: RepoPath,
    /// The absolute path, links resolved.
    pub absolute: Box<str>,
    /// The device number, by which the directory is recognised again.
    pub dev: u64,
    /// The inode number, by which the directory is recognised again.
    pub ino: u64,
}

/// The facts found about a command before it was judged. Services and the core fill them in; the effect that
/// carries the command out checks them again.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// When the command came in.
    pub now: Timestamp,
    /// The worker's working directory; `None` if it has none.
    pub directory: Option<Directory>,
    /// The reason why the working directory was refused, if it was.
    pub directory_refused: Option<Box<str>>,
    /// The reason why no run can have the work tree that the task asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_tree_refused: Option<Box<str>>,
    /// The reason why no run can go on with the session that the task asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continue_refused: Option<Box<str>>,
    /// The commit of the workspace, if the task may go to another host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Box<str>>,
    /// The reason why another host has no commit to work on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_refused: Option<Box<str>>,
    /// The way in which the worker gets its tasks; filled by the core from [`super::Settings`].
    pub worker_kind: Option<WorkerKind>,
    /// The network that the worker's profile asks for; filled by the core.
    pub network: Network,
    /// The worker's access to the repository; filled by the core.
    pub git: Git,
    /// The secrets it would be given; filled by the core.
    pub secrets: Vec<SecretUse>,
    /// The confinement the worker would get; filled by the core. `None` for a polling worker.
    pub tier: Option<Tier>,
    /// The digest of the worker's executable and of the way it is started; filled by the service.
    pub program: Option<Digest>,
    /// Unfinished tasks this client has asked for; filled by the core.
    pub running: u32,
    /// The number of delegations above this one; filled by the core.
    pub depth: u32,
    /// The paths and commands that a call of a host's tool names; filled by the service. `None` for everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<ToolFacts>>,
}

/// The policy that the core consults. A trait, so that `domain` need not know the rule file.
pub trait Judge: Send {
    /// Judges a command. The same inputs give the same decision.
    fn decide(&self, who: &Principal, command: &Command, facts: &Facts) -> Decision;

    /// Returns the digest of the rules in force, which every decision in the log carries.
    fn version(&self) -> Digest;
}
