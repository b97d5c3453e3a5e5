//! The properties that rules examine, from a real caller or from a table of examples.

use std::borrow::Cow;

use super::command_form::Commanded;
use super::glob::is_normal;
use provost_base::Timestamp;
use provost_base::normalised_path;
use provost_domain::{
    Action, Command, Credentials, Delegate, Door, Facts, Git, Network, Principal, Proof, Tier, ToolCall,
    ToolCommand, ToolFacts, WorkerKind,
};

/// A request in flat form, borrowed from its source.
#[derive(Clone, Debug)]
pub(super) struct Subject<'a> {
    pub(super) action: Action,
    pub(super) client: &'a str,
    pub(super) door: Door,
    pub(super) proof: Proof,
    pub(super) now: Timestamp,
    /// `Some` for delegations alone.
    pub(super) work: Option<Work<'a>>,
    /// `Some` for hosts' tools alone.
    pub(super) call: Option<HostCall<'a>>,
}

/// The properties of a call of a host's tool that rules examine.
#[derive(Clone, Debug)]
pub(super) struct HostCall<'a> {
    pub(super) tool: &'a str,
    pub(super) command: Option<ToolCommand>,
    pub(super) facts: Cow<'a, ToolFacts>,
}

impl HostCall<'_> {
    /// Returns the command that it would run.
    pub(super) fn command(&self) -> Option<Commanded<'_>> {
        let command = self.command.as_ref()?;
        Some(Commanded { command, inside: self.facts.inside })
    }
}

/// The paths that a request names.
#[derive(Clone, Copy, Debug)]
pub(super) enum NamedPaths<'a> {
    /// The one path of a delegation.
    One(&'a str),
    /// The paths of a call of a host's tool.
    OfCall(&'a ToolFacts),
}

/// The properties of a delegation that rules examine.
#[derive(Clone, Debug)]
pub(super) struct Work<'a> {
    pub(super) worker: &'a str,
    pub(super) kind: Option<WorkerKind>,
    pub(super) place: Option<WorkingDir<'a>>,
    /// The reason why the working directory is invalid under any rules.
    pub(super) refused: Option<Cow<'a, str>>,
    pub(super) tool: &'a str,
    pub(super) path: Option<Cow<'a, str>>,
    pub(super) command: Option<&'a str>,
    pub(super) max_bytes: Option<u64>,
    pub(super) timeout_s: Option<u64>,
    pub(super) network: Cow<'a, Network>,
    pub(super) git: Git,
    /// The furthest that any of the worker's secrets would go; `None` without secrets.
    pub(super) credentials: Option<Credentials>,
    pub(super) tier: Option<Tier>,
    pub(super) goal_bytes: u64,
    pub(super) depth: u32,
    pub(super) running: u32,
}

/// A working directory with its links resolved.
#[derive(Clone, Debug)]
pub(super) struct WorkingDir<'a> {
    /// The path below the root; empty for the root itself.
    pub(super) relative: Cow<'a, str>,
    pub(super) absolute: Cow<'a, str>,
}

impl WorkingDir<'_> {
    /// Returns the root that the relative path starts from.
    pub(super) fn root(&self) -> &str {
        let root = self.absolute.strip_suffix(&*self.relative).unwrap_or(&self.absolute);
        let root = root.trim_end_matches('/');
        if root.is_empty() { "/" } else { root }
    }
}

impl Subject<'static> {
    /// A request that is no delegation.
    pub(super) const WITHOUT_WORK: Self = Self {
        action: Action::Screenshot,
        client: "",
        door: Door::Own,
        proof: Proof::PeerUid,
        now: Timestamp(0),
        work: None,
        call: None,
    };
}

impl<'a> Subject<'a> {
    /// Returns the subject of a command; `None` for verbs that policy does not judge.
    pub(super) fn of(who: &'a Principal, command: &'a Command, facts: &'a Facts) -> Option<Self> {
        let (action, work) = (command.action()?, command.work().map(|verb| Work::of(verb, facts)));
        let (client, door, proof) = (who.agent().as_str(), who.door(), who.proof());
        let call = match command {
            Command::AskPermission(verb) => Some(HostCall {
                tool: &verb.tool,
                command: ToolCall::read(&verb.tool, &verb.arguments.value()).command,
                // Without facts nothing about the call is known, and so nothing is certain.
                facts: facts.tool.as_deref().map_or_else(Cow::default, Cow::Borrowed),
            }),
            _ => None,
        };
        Some(Self { action, client, door, proof, now: facts.now, work, call })
    }

    /// Returns the tool's name.
    pub(super) fn tool(&self) -> Option<&str> {
        let of_work = self.work.as_ref().map(|it| it.tool);
        of_work.or_else(|| self.call.as_ref().map(|it| it.tool))
    }

    /// Returns the paths that the tool names.
    pub(super) fn paths(&self) -> Option<NamedPaths<'_>> {
        match (&self.work, &self.call) {
            (Some(work), _) => work.path.as_deref().map(NamedPaths::One),
            (None, Some(call)) => Some(NamedPaths::OfCall(&call.facts)),
            (None, None) => None,
        }
    }
}

impl<'a> Work<'a> {
    fn of(verb: &'a Delegate, facts: &'a Facts) -> Self {
        let place = facts.directory.as_ref().map(|it| WorkingDir {
            relative: Cow::Borrowed(it.relative.as_str()),
            absolute: Cow::Borrowed(&it.absolute),
        });
        Self {
            worker: verb.worker.as_str(),
            kind: facts.worker_kind,
            place,
            refused: facts.directory_refused.as_deref().map(Cow::Borrowed),
            tool: &verb.tool.name,
            path: verb.tool.path.as_deref().map(shortest),
            command: verb.tool.command.as_deref(),
            max_bytes: verb.tool.max_bytes,
            timeout_s: verb.tool.timeout_s,
            network: Cow::Borrowed(&facts.network),
            git: facts.git,
            credentials: facts.secrets.iter().map(|it| it.by).max(),
            tier: facts.tier,
            goal_bytes: verb.goal.len() as u64,
            depth: facts.depth,
            running: facts.running,
        }
    }
}

/// Returns a path in normal form. Doors normalise; a path that came another way is still judged by its target.
fn shortest(path: &str) -> Cow<'_, str> {
    if is_normal(path) { Cow::Borrowed(path) } else { Cow::Owned(normalised_path(path)) }
}
