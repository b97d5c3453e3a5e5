//! Requests as people write them: in a rule's examples, in test tables, on the command line.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::file::{
    ACTIONS, Action, CREDENTIALS, DOORS, GITS, KINDS, NETS, Net, PROOFS, RULINGS, Ruling, TIERS,
};
use super::reader::{Notes, Problems, Section, choice, words};
use super::subject::{HostCall, Subject, Work, WorkingDir};
use super::units::size;
use provost_base::{RuleId, Timestamp, normalised_path};
use provost_domain::{
    Command, Credentials, Door, Facts, Git, Network, Principal, Proof, Tier, ToolCall, ToolFacts, ToolPath,
    WorkerKind, is_machinery, is_of_processes, runs_later, takes_patch,
};

/// The assumed root of the repository if a request does not say.
const ROOT: &str = "/workspace";

/// The keys of a request in TOML.
pub(super) const REQUEST_KEYS: &[&str] = &[
    "action",
    "client",
    "door",
    "proof",
    "worker",
    "worker_kind",
    "tier",
    "network",
    "hosts",
    "git",
    "credentials",
    "root",
    "cwd",
    "tool",
    "path",
    "command",
    "max_bytes",
    "timeout_secs",
    "goal_bytes",
    "depth",
    "running",
    "now",
];

/// A request without the evidence and the verb of a real one. Each key has a default: a delegation by `agent` to
/// the confined worker `worker` in the root, without network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// The kind of request.
    pub action: Action,
    /// The name of the calling agent.
    pub client: Box<str>,
    /// The door through which the caller came in.
    pub door: Door,
    /// The proof of the caller's name.
    pub proof: Proof,
    /// The worker that would do the work.
    pub worker: Box<str>,
    /// The way that worker gets its tasks; unknown if absent.
    pub worker_kind: Option<WorkerKind>,
    /// The confinement it would get. `None`: `ns` for a worker that the daemon starts, nothing for others.
    pub tier: Option<Tier>,
    /// The network that the worker asks for.
    pub network: Net,
    /// The hosts that the worker wants to reach, if its network is `hosts`.
    pub hosts: Vec<Box<str>>,
    /// The worker's access to the repository.
    pub git: Git,
    /// The furthest that any of the worker's secrets would go.
    pub credentials: Option<Credentials>,
    /// The repository's root. If it is absent, an absolute working directory is the root.
    pub root: Option<Box<str>>,
    /// The working directory; the root if absent. One outside the root is denied as `sandbox`.
    pub cwd: Option<Box<str>>,
    /// DevIt's `task.action`, or the name of a host's tool.
    pub tool: Box<str>,
    /// DevIt's `task.path`, or the one file that a host's tool would touch.
    pub path: Option<Box<str>>,
    /// DevIt's `task.command`, or the line that a host's tool would run.
    pub command: Option<Box<str>>,
    /// DevIt's `task.max_bytes`.
    pub max_bytes: Option<u64>,
    /// DevIt's `task.timeout_secs`.
    pub timeout_secs: Option<u64>,
    /// The length of the goal, in bytes.
    pub goal_bytes: u64,
    /// The number of delegations above this one.
    pub depth: u32,
    /// The number of the caller's unfinished tasks.
    pub running: u32,
    /// The time, in milliseconds since the epoch; in TOML as RFC 3339.
    pub now: Timestamp,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            action: Action::Delegate,
            client: "agent".into(),
            door: Door::Devit,
            proof: Proof::SharedKey,
            worker: "worker".into(),
            worker_kind: Some(WorkerKind::Cli),
            tier: None,
            network: Net::None,
            hosts: Vec::new(),
            git: Git::Read,
            credentials: None,
            root: None,
            cwd: None,
            tool: "devit_delegate".into(),
            path: None,
            command: None,
            max_bytes: None,
            timeout_secs: None,
            goal_bytes: 0,
            depth: 0,
            running: 0,
            now: Timestamp::default(),
        }
    }
}

impl Request {
    /// Returns the request that a command amounts to, so that it can be judged again; `None` for verbs that policy does not judge.
    pub fn of(who: &Principal, command: &Command, facts: &Facts) -> Option<Self> {
        let subject = Subject::of(who, command, facts)?;
        let mut request = Request {
            action: subject.action,
            client: subject.client.into(),
            door: subject.door,
            proof: subject.proof,
            now: subject.now,
            ..Request::default()
        };
        if let (Some(call), Command::AskPermission(verb)) = (&subject.call, command) {
            request.tool = call.tool.into();
            request.cwd = verb.folder.clone();
            request.command = call.command.as_ref().map(|it| it.text.as_str().into());
            let sure = call.facts.paths.iter().find(|it| it.sure);
            request.path = sure.and_then(|it| it.at.first().cloned());
        }
        let Some(work) = subject.work else { return Some(request) };
        request.worker = work.worker.into();
        request.worker_kind = work.kind;
        request.tier = work.tier;
        request.tool = work.tool.into();
        request.path = work.path.map(|it| it.into());
        request.command = work.command.map(Into::into);
        (request.max_bytes, request.timeout_secs) = (work.max_bytes, work.timeout_s);
        request.goal_bytes = work.goal_bytes;
        (request.depth, request.running) = (work.depth, work.running);
        request.network = Net::of(&work.network);
        if let Network::Hosts(hosts) = &*work.network {
            request.hosts = hosts.clone();
        }
        (request.git, request.credentials) = (work.git, work.credentials);
        if let Some(place) = work.place {
            request.root = Some(place.root().into());
            request.cwd = Some(place.relative.into());
        }
        Some(request)
    }

    /// Returns the request as the rules examine it.
    pub(super) fn subject(&self) -> Subject<'_> {
        let place = self.place();
        let refused = place.as_ref().err().map(|why| Cow::Owned(why.clone()));
        let kind = self.worker_kind;
        let own_tier = (kind == Some(WorkerKind::Cli)).then_some(Tier::Ns);
        let work = Work {
            worker: &self.worker,
            kind,
            place: place.ok(),
            refused,
            tool: &self.tool,
            path: self.path.as_deref().map(|path| Cow::Owned(normalised_path(path))),
            command: self.command.as_deref(),
            max_bytes: self.max_bytes,
            timeout_s: self.timeout_secs,
            network: Cow::Owned(match self.network {
                Net::None => Network::None,
                Net::Ports => Network::Ports(Vec::new()),
                Net::Hosts => Network::Hosts(self.hosts.clone()),
            }),
            git: self.git,
            credentials: self.credentials,
            tier: self.tier.or(own_tier),
            goal_bytes: self.goal_bytes,
            depth: self.depth,
            running: self.running,
        };
        Subject {
            action: self.action,
            client: &self.client,
            door: self.door,
            proof: self.proof,
            now: self.now,
            work: (self.action == Action::Delegate).then_some(work),
            call: (self.action == Action::Permission).then(|| self.call()),
        }
    }

    /// Returns some delegation, with every property that one may have.
    pub(super) fn any_work() -> Self {
        Self {
            path: Some("src".into()),
            command: Some("true".into()),
            max_bytes: Some(1),
            timeout_secs: Some(1),
            ..Self::default()
        }
    }

    /// Returns some call of a host's tool, with every property that one may have.
    pub(super) fn any_call() -> Self {
        Self {
            action: Action::Permission,
            tool: "Bash".into(),
            path: Some("src".into()),
            command: Some("true".into()),
            ..Self::default()
        }
    }

    /// Returns the call of a host's tool that the request describes. A text cannot describe links.
    fn call(&self) -> HostCall<'_> {
        let (root, folder) = self.ends();
        let call = ToolCall::read(&self.tool, &self.arguments());
        let found = |path: &String| {
            let spelled: Box<str> = normalised_path(path).into();
            let absolute = if spelled.starts_with('/') {
                spelled.to_string()
            } else {
                normalised_path(&format!("{folder}/{path}"))
            };
            let below = absolute.strip_prefix(root.trim_end_matches('/'));
            let below = below
                .filter(|it| it.is_empty() || it.starts_with('/'))
                .map(|it| it.trim_start_matches('/').to_owned());
            let runs_later =
                call.writes && runs_later(below.as_deref().unwrap_or(&absolute), below.is_some());
            let anywhere = is_of_processes(path) || is_of_processes(&absolute);
            let sure = call.complete && !is_machinery(&absolute) && !runs_later && !anywhere;
            let at = below.into_iter().chain([absolute]).map(Into::into).collect();
            ToolPath { at, spelled, sure, anywhere }
        };
        let paths = call.paths.iter().map(found).collect();
        let inside = self.place().is_ok();
        let facts = ToolFacts { inside, paths, complete: call.complete, open: call.open, more: call.more };
        HostCall { tool: &self.tool, command: call.command, facts: Cow::Owned(facts) }
    }

    /// Returns the arguments with which a host would call such a tool.
    fn arguments(&self) -> Value {
        let mut arguments = json!({});
        if let Some(command) = &self.command {
            arguments["command"] = (**command).into();
        }
        if let Some(path) = &self.path {
            arguments["file_path"] = (**path).into();
            if takes_patch(&self.tool) {
                arguments["patch"] =
                    format!("*** Begin Patch\n*** Update File: {path}\n*** End Patch").into();
            }
        }
        arguments
    }

    /// Returns the root, and the absolute working directory.
    fn ends(&self) -> (String, String) {
        let cwd = self.cwd.as_deref().unwrap_or(".");
        let default = if cwd.starts_with('/') { cwd } else { ROOT };
        let root = normalised_path(self.root.as_deref().unwrap_or(default));
        let whole = if cwd.starts_with('/') { cwd.to_owned() } else { format!("{root}/{cwd}") };
        (root, normalised_path(&whole))
    }

    fn place(&self) -> Result<WorkingDir<'static>, String> {
        let (root, absolute) = self.ends();
        let below = absolute.strip_prefix(root.trim_end_matches('/'));
        let inside = below.filter(|below| below.is_empty() || below.starts_with('/'));
        match inside {
            Some(below) => Ok(WorkingDir {
                relative: Cow::Owned(below.trim_start_matches('/').to_owned()),
                absolute: Cow::Owned(absolute),
            }),
            None => Err(format!("{absolute} is outside the repository {root}")),
        }
    }

    pub(super) fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>) -> Self {
        let d = Request::default();
        let kind = from.text(notes, "worker_kind", |text| choice(KINDS, text)).or(d.worker_kind);
        Request {
            action: from.text(notes, "action", |text| choice(ACTIONS, text)).unwrap_or(d.action),
            client: from.text(notes, "client", words).unwrap_or(d.client),
            door: from.text(notes, "door", |text| choice(DOORS, text)).unwrap_or(d.door),
            proof: from.text(notes, "proof", |text| choice(PROOFS, text)).unwrap_or(d.proof),
            worker: from.text(notes, "worker", words).unwrap_or(d.worker),
            worker_kind: kind,
            tier: from.text(notes, "tier", |text| choice(TIERS, text)),
            network: from.text(notes, "network", |text| choice(NETS, text)).unwrap_or(d.network),
            hosts: from.texts(notes, "hosts", words).unwrap_or_default(),
            git: from.text(notes, "git", |text| choice(GITS, text)).unwrap_or_default(),
            credentials: from.text(notes, "credentials", |text| choice(CREDENTIALS, text)),
            root: from.text(notes, "root", absolute),
            cwd: from.text(notes, "cwd", words),
            tool: from.text(notes, "tool", words).unwrap_or(d.tool),
            path: from.text(notes, "path", |text| Ok(text.into())),
            command: from.text(notes, "command", |text| Ok(text.into())),
            max_bytes: from.amount(notes, "max_bytes", size),
            timeout_secs: from.number(notes, "timeout_secs"),
            goal_bytes: from.amount(notes, "goal_bytes", size).unwrap_or_default(),
            depth: from.small(notes, "depth").unwrap_or_default(),
            running: from.small(notes, "running").unwrap_or_default(),
            now: from.text(notes, "now", moment).unwrap_or_default(),
        }
    }
}

fn absolute(text: &str) -> Result<Box<str>, String> {
    if text.starts_with('/') { Ok(text.into()) } else { Err(format!("`{text}` must begin with `/`")) }
}

fn moment(text: &str) -> Result<Timestamp, String> {
    let wrong = |_| format!("`{text}` is not a moment; write it like \"2026-05-04T12:00:00Z\"");
    let read = chrono::DateTime::parse_from_rfc3339(text).map_err(wrong)?;
    Ok(Timestamp(read.timestamp_millis()))
}

/// One line of a test table: a request and the expected answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The name of the line in reports.
    pub name: Box<str>,
    /// Its line in the file, from 1.
    pub line: usize,
    /// The request that is judged.
    pub request: Request,
    /// The ruling that the rules must give.
    pub expect: Ruling,
    /// The rule that must decide; `None` if any rule may.
    pub rule: Option<RuleId>,
}

impl Case {
    /// Reads a table of `[[case]]` entries: the keys of a request, `expect`, and optionally `rule` and
    /// `name`.
    ///
    /// # Errors
    /// All mistakes in the file.
    pub fn parse(text: &str, name: &str) -> Result<Vec<Self>, Problems> {
        let mut notes = Notes::new(name, text);
        let table = notes.toml();
        let mut cases = Vec::new();
        if let Some(table) = &table {
            let top = Section::new(&mut notes, table.get_ref(), 0, "", &["case"]);
            let keys = [&["name", "expect", "rule"], REQUEST_KEYS].concat();
            for section in top.sections(&mut notes, "case", &keys) {
                cases.extend(Self::read(&mut notes, &section));
            }
            if !top.has("case") {
                notes.add(0, "there is no `[[case]]` in this file");
            }
        }
        notes.finish(cases)
    }

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>) -> Option<Self> {
        let line = notes.line(from.at());
        let request = Request::read(notes, from);
        let name = from.text(notes, "name", words).unwrap_or_else(|| format!("line {line}").into());
        let rule = from.text(notes, "rule", |text| RuleId::parse(text).map_err(|e| e.to_string()));
        if !from.has("expect") {
            from.wrong(notes, "expect", "is missing; say allow, approve or deny");
        }
        let expect = from.text(notes, "expect", |text| choice(RULINGS, text))?;
        Some(Self { name, line, request, expect, rule })
    }
}

impl Net {
    pub(super) fn of(network: &Network) -> Self {
        match network {
            Network::None => Net::None,
            Network::Ports(_) => Net::Ports,
            Network::Hosts(_) => Net::Hosts,
        }
    }
}
