//! The sessions of an agent: the agent that each speaks as, its folder, and its waiting messages.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::judge::{Asker, Leaving};
use super::modes::ModeOf;
use provost_base::limits::{ACP_PROXY_CALLS_BYTES_MAX, ACP_PROXY_CALLS_MAX, ACP_PROXY_SESSIONS_MAX};
use provost_base::{AgentId, Digest, acp};

/// The most files of a session that may be written by a permission and were not written yet.
const GRANTED_MAX: usize = 256;
/// The most files of a session that are released at its end; the locks on further files end with the program.
const TAKEN_MAX: usize = 4_096;

pub(super) struct Session {
    pub(super) asker: Asker,
    /// The number of questions that are being judged; later messages wait for them.
    judged: usize,
    pub(super) waiting: VecDeque<Vec<u8>>,
    granted: HashSet<PathBuf>,
    /// Commands that may be run by a permission and were not run yet.
    may_run: HashSet<String>,
    /// The files that were locked for the session.
    taken: HashSet<PathBuf>,
    pub(super) mode: ModeOf,
}

pub(super) struct Sessions {
    /// The agent that was named for all sessions, if one was.
    named: Option<AgentId>,
    /// The agent for requests that belong to no session.
    own: AgentId,
    /// The folder in which this process was started.
    cwd: PathBuf,
    known: HashMap<String, Session>,
    /// The bytes of the messages that wait in all sessions.
    pub(super) waiting_bytes: usize,
    /// The number of questions that are being judged in all sessions.
    judged: usize,
}

/// The digits of the digest in a session's name. Agents choose ids, so a part of an id could be the name of another session.
const NAME_DIGITS: usize = 16;

/// Returns a name for a session that has no id yet.
pub(super) fn new_name() -> AgentId {
    named_by(uuid::Uuid::new_v4().as_bytes())
}

/// Returns the name of the session with this id; it is the same in each process that resumes the session.
pub(super) fn named_by(id: &[u8]) -> AgentId {
    let digest = Digest::of(id).to_string();
    let digits = digest.rsplit(':').next().unwrap_or_default();
    AgentId::parse(&format!("acp-{}", &digits[..NAME_DIGITS])).expect("a plain word")
}

impl Sessions {
    pub(super) fn new(named: Option<AgentId>, cwd: PathBuf) -> Self {
        let own = named.clone().unwrap_or_else(new_name);
        Self { named, own, cwd, known: HashMap::new(), waiting_bytes: 0, judged: 0 }
    }

    /// Returns the agent as which a session will speak that a request begins or resumes.
    pub(super) fn begun(&self, takes_up: Option<&str>, cwd: Option<&Path>) -> Asker {
        let known = takes_up.and_then(|it| self.known.get(it)).map(|it| it.asker.agent.clone());
        let by_id = || takes_up.map(|it| named_by(it.as_bytes()));
        let agent = self.named.clone().or(known).or_else(by_id).unwrap_or_else(new_name);
        Asker { agent, cwd: cwd.unwrap_or(&self.cwd).to_owned() }
    }

    /// Checks whether there is no room for another session.
    pub(super) fn is_full(&self) -> bool {
        self.known.len() >= ACP_PROXY_SESSIONS_MAX
    }

    /// Records the id of a session, once the agent has given it.
    pub(super) fn learn(&mut self, id: String, asker: Asker) {
        let is_full = self.is_full();
        match self.known.get_mut(&id) {
            Some(known) => known.asker = asker,
            None if is_full => {}
            None => drop(self.known.insert(id, Session::of(asker))),
        }
    }

    /// Returns the agent that a session speaks as; an unknown session speaks as this process.
    pub(super) fn asker(&self, id: Option<&str>) -> Asker {
        let known = id.and_then(|it| self.known.get(it)).map(|it| it.asker.clone());
        known.unwrap_or_else(|| Asker { agent: self.own.clone(), cwd: self.cwd.clone() })
    }

    /// Returns the session with this id. Makes an unknown session, while there is room.
    pub(super) fn get(&mut self, id: &str) -> Option<&mut Session> {
        if !self.known.contains_key(id) && !self.is_full() {
            let asker = self.asker(None);
            self.known.insert(id.to_owned(), Session::of(asker));
        }
        self.known.get_mut(id)
    }

    /// Counts a question of a session that is judged from now on; returns the session, if there is room for it.
    pub(super) fn judgement_begins(&mut self, id: &str) -> Option<&mut Session> {
        self.get(id)?;
        self.judged += 1;
        let session = self.known.get_mut(id)?;
        session.judged += 1;
        Some(session)
    }

    /// Counts a question of a session whose judgement has ended.
    pub(super) fn judgement_ends(&mut self, id: &str) {
        if let Some(session) = self.known.get_mut(id).filter(|it| it.judged > 0) {
            session.judged -= 1;
            self.judged -= 1;
        }
    }

    /// Returns the next waiting message of a session, if it no longer has to wait.
    pub(super) fn next_waiting(&mut self, id: &str) -> Option<Vec<u8>> {
        let line = self.known.get_mut(id).filter(|it| it.judged == 0)?.waiting.pop_front()?;
        self.waiting_bytes -= line.len();
        Some(line)
    }

    /// Checks whether a message has to wait for the judgement of an earlier message of its session.
    pub(super) fn is_held_up(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|it| it.judged > 0 || !it.waiting.is_empty())
    }

    /// Checks whether messages of any session have to wait.
    pub(super) fn are_held_up(&self) -> bool {
        self.judged > 0
    }

    /// Ends a session; returns the agent whose locks have to be released. If other sessions or another program may have
    /// the same name, only the locks of this session are released.
    pub(super) fn end(&mut self, id: &str) -> Option<(Asker, Leaving)> {
        let ended = self.known.remove(id)?;
        self.judged -= ended.judged;
        self.waiting_bytes -= ended.waiting.iter().map(Vec::len).sum::<usize>();
        let others = || self.known.values().filter(|it| it.asker.agent == ended.asker.agent);
        if self.named.is_none() && others().next().is_none() {
            return Some((ended.asker, Leaving::All));
        }
        let is_its_alone = |it: &&PathBuf| !others().any(|other| other.taken.contains(*it));
        let files = ended.taken.iter().filter(is_its_alone).cloned().collect();
        Some((ended.asker, Leaving::Files(files)))
    }

    /// Returns all agents that may hold something, each once, with the locks that each releases when this process ends.
    pub(super) fn all(&self) -> Vec<(Asker, Leaving)> {
        let own = Asker { agent: self.own.clone(), cwd: self.cwd.clone() };
        let mut seen = HashSet::new();
        let all = self.known.values().map(|it| it.asker.clone()).chain([own]);
        let all = all.filter(|it| seen.insert((it.agent.clone(), it.cwd.clone())));
        let what = || if self.named.is_some() { Leaving::OfProcess } else { Leaving::All };
        all.map(|it| (it, what())).collect()
    }
}

impl Session {
    fn of(asker: Asker) -> Self {
        Self {
            asker,
            judged: 0,
            waiting: VecDeque::new(),
            granted: HashSet::new(),
            may_run: HashSet::new(),
            taken: HashSet::new(),
            mode: ModeOf::default(),
        }
    }

    /// Records files that a tool may write: the write itself needs no further question.
    pub(super) fn grant(&mut self, paths: Vec<PathBuf>) {
        if self.granted.len() < GRANTED_MAX {
            self.granted.extend(paths);
        }
    }

    /// Checks whether a file may be written by a grant, which is used up.
    pub(super) fn uses_grant(&mut self, path: &Path) -> bool {
        let path = self.asker.cwd.join(path);
        self.granted.remove(&path)
    }

    /// Records a command that may be run: the editor may run it without a further question.
    pub(super) fn grant_command(&mut self, line: String) {
        if self.may_run.len() < GRANTED_MAX {
            self.may_run.insert(line);
        }
    }

    /// Checks whether a command may be run by a grant, which is used up.
    pub(super) fn uses_command(&mut self, line: &str) -> bool {
        self.may_run.remove(line)
    }

    /// Records files that were locked for the session, and are released with it.
    pub(super) fn takes(&mut self, paths: Vec<PathBuf>) {
        if self.taken.len() < TAKEN_MAX {
            self.taken.extend(paths);
        }
    }
}

/// The known facts of the latest tool calls: a permission request may have fewer of them than the updates before it.
#[derive(Default)]
pub(super) struct Calls {
    known: HashMap<(String, String), Call>,
    order: VecDeque<(String, String)>,
    bytes: usize,
}

#[derive(Default)]
struct Call {
    told: Value,
    /// The size of the updates about the call, in bytes.
    bytes: usize,
    /// Whether the places that the call writes were locked when it began, or a question about the call is open.
    settled: bool,
}

/// The progress of a call that an update reports.
pub(super) enum Noted {
    /// The call is being carried out.
    Runs(Value),
    /// The call was carried out, and the agent has neither asked about it nor reported its beginning.
    Done(Value),
    Other,
}

impl Calls {
    pub(super) fn get(&self, session: &str, call: &str) -> Option<&Value> {
        self.known.get(&(session.to_owned(), call.to_owned())).map(|it| &it.told)
    }

    /// Records that the agent asks about a call.
    pub(super) fn is_asked_about(&mut self, session: &str, call: &str) {
        self.entry(&(session.to_owned(), call.to_owned())).settled = true;
        self.keep_within_bounds();
    }

    /// Records an update of this size in bytes.
    pub(super) fn note(&mut self, session: &str, update: &Value, bytes: usize) -> Noted {
        let Some(id) = update["toolCallId"].as_str() else { return Noted::Other };
        let key = (session.to_owned(), id.to_owned());
        self.bytes += bytes;
        let call = self.entry(&key);
        acp::merge(&mut call.told, update);
        call.bytes += bytes;
        let noted = match update["status"].as_str() {
            Some("in_progress") => {
                call.settled |= acp::names_files(&call.told);
                Noted::Runs(call.told.clone())
            }
            Some("completed") if !call.settled => Noted::Done(call.told.clone()),
            _ => Noted::Other,
        };
        if matches!(update["status"].as_str(), Some("completed" | "failed" | "cancelled")) {
            self.forget(&key);
        }
        self.keep_within_bounds();
        noted
    }

    fn entry(&mut self, key: &(String, String)) -> &mut Call {
        if !self.known.contains_key(key) {
            self.order.push_back(key.clone());
        }
        self.known.entry(key.clone()).or_insert_with(|| Call { told: json!({}), ..Call::default() })
    }

    fn keep_within_bounds(&mut self) {
        while self.known.len() > ACP_PROXY_CALLS_MAX || self.bytes > ACP_PROXY_CALLS_BYTES_MAX {
            let Some(oldest) = self.order.front().cloned() else { break };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, key: &(String, String)) {
        if let Some(call) = self.known.remove(key) {
            self.bytes -= call.bytes;
            self.order.retain(|it| it != key);
        }
    }
}
