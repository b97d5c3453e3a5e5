//! The loop between an editor and its agent.
//!
//! ```text
//!   editor --lines--> editor_side --+--> outlet --> agent
//!                                   | questions, sessions; work: what is asked of the daemon
//!   editor <-- outlet <--+-- agent_side <--lines-- agent
//! ```
//! The loop waits only for the next event. It does not read more for a side that does not read than the bound allows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Child;
use tokio::task::{JoinError, JoinSet};

use super::judge::{self, Asker, Checked, Switching};
use super::lines::{Lines, Said};
use super::message::{self, Id};
use super::modes::OwnMode;
use super::outlet::Outlet;
use super::program::{self, Program};
use super::question::{INTERNAL, Question, Stage, Verdict};
use super::sessions::{Calls, Sessions};
use crate::cli_error::{DONE, FAILED};
use crate::{CliError, out};
use provost_base::AgentId;
use provost_base::limits::{
    ACP_GARBAGE_LINES_MAX, ACP_PROXY_LINE_BYTES_MAX, ACP_PROXY_QUESTIONS_MAX, ACP_PROXY_UNREAD_BYTES_MAX,
    ACP_PROXY_WAITING_BYTES_MAX,
};

/// The most bytes that a side may have unread: the proxy's own answers, and one longest line of the other side.
const UNREAD_MAX: usize = ACP_PROXY_UNREAD_BYTES_MAX + 2 * ACP_PROXY_LINE_BYTES_MAX;
/// How long the proxy waits for the output of an ended agent: processes that it has started may keep it open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The most requests, answered in the editor's stead, whose ids are kept until the editor's own answer comes.
const LATE_MAX: usize = 8 * ACP_PROXY_QUESTIONS_MAX;
/// How long the proxy waits for an editor that does not read its last messages.
const LAST_READ: Duration = Duration::from_secs(2);

/// A request of the editor that the agent has not answered.
pub(super) struct Open {
    /// The request's id, as it is spelled.
    pub(super) id: Box<str>,
    pub(super) method: Box<str>,
    pub(super) session: Option<String>,
    /// The agent as which the session will speak that the request begins; `None` if it begins none.
    pub(super) begins: Option<Asker>,
}

/// Work that has ended.
pub(super) enum Done {
    /// A request that begins a session is ready to pass.
    Prepared(Vec<u8>),
    Checked(Id, Checked),
    Queue(Id, Option<Verdict>),
    /// The places that an allowed question writes were locked, or not; with the editor's answer, if the editor has allowed it.
    Taken(Id, Verdict, Option<Vec<u8>>),
    /// The places that the agent writes without asking were locked; otherwise the verdict has a sentence for the person.
    Written(String, Verdict),
    /// The rules have judged a mode that the editor sets.
    MayBeSwitched(Switch, Switching),
    /// The rules have judged a mode that the agent has set by itself.
    OwnMode(OwnMode, Switching),
    /// A person has answered about such a mode.
    OwnModeAnswered(OwnMode, Verdict),
    /// A session has released its locks, or a mode was recorded.
    Left,
}

/// A request of the editor to set a session's mode.
pub(super) struct Switch {
    pub(super) line: Vec<u8>,
    pub(super) session: Option<String>,
    pub(super) mode: String,
    /// The request's id, in the form for comparison and as it is spelled; `None` for a notification.
    pub(super) id: Option<(Id, Box<str>)>,
}

pub(super) struct Proxy {
    pub(super) to_editor: Outlet,
    pub(super) to_agent: Outlet,
    pub(super) sessions: Sessions,
    pub(super) calls: Calls,
    pub(super) open: HashMap<Id, Vec<Open>>,
    pub(super) open_count: usize,
    pub(super) questions: HashMap<Id, Question>,
    /// The ids of the proxy's own dialogs, with the question that each is about.
    pub(super) dialogs: HashMap<Id, Id>,
    pub(super) answered: Answered,
    /// Requests of the agent that the proxy has passed on and the editor has not answered, by id.
    pub(super) passed: HashMap<Id, usize>,
    pub(super) passed_count: usize,
    /// The options by which the editor sets modes.
    pub(super) mode_options: HashSet<String>,
    /// The proxy's own requests that the agent has not answered, with the session of each.
    pub(super) own_requests: HashMap<Id, String>,
    pub(super) work: JoinSet<Done>,
    /// Whether a request is being prepared for which the editor's next messages wait.
    pub(super) preparing: bool,
    /// The path of this program, for an agent that starts it.
    pub(super) program: PathBuf,
    garbage: usize,
}

/// The requests that were answered in the editor's stead; the editor's answers to them are dropped.
#[derive(Default)]
pub(super) struct Answered {
    known: HashSet<Id>,
    order: VecDeque<Id>,
}

impl Answered {
    pub(super) fn insert(&mut self, id: Id) {
        if self.known.insert(id.clone()) {
            self.order.push_back(id);
        }
        while self.known.len() > LATE_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.known.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.known.contains(id)
    }

    pub(super) fn remove(&mut self, id: &Id) -> bool {
        let was = self.known.remove(id);
        if was {
            self.order.retain(|it| it != id);
        }
        was
    }
}

/// Why the loop has ended.
enum Ended {
    /// The editor has gone, or a signal asks for the end.
    ByEditor,
    ByAgent,
}

/// Serves the editor at standard input and output until it or the agent ends; returns the exit code.
///
/// # Errors
/// When the agent cannot be started.
pub(super) async fn serve(
    program: &Program,
    ours: PathBuf,
    named: Option<AgentId>,
    cwd: PathBuf,
) -> Result<u8, CliError> {
    let signals = provost_system::Signals::catch();
    let signals = signals.map_err(|err| CliError::of("signals cannot be caught").because(err))?;
    let mut child = program.start()?;
    // The process group is read now, since it cannot be read after the process has ended.
    let group = child.id();
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(CliError::of("the agent's input and output are not to be had"));
    };
    let mut proxy = Proxy {
        to_editor: Outlet::new(tokio::io::stdout()),
        to_agent: Outlet::new(to),
        sessions: Sessions::new(named, cwd),
        calls: Calls::default(),
        open: HashMap::new(),
        open_count: 0,
        questions: HashMap::new(),
        dialogs: HashMap::new(),
        answered: Answered::default(),
        passed: HashMap::new(),
        passed_count: 0,
        mode_options: HashSet::new(),
        own_requests: HashMap::new(),
        work: JoinSet::new(),
        preparing: false,
        program: ours,
        garbage: 0,
    };
    let (editor, agent) = (Lines::new(tokio::io::stdin()), Lines::new(from));
    let ended = proxy.pass(editor, agent, &mut child, signals).await;
    Ok(proxy.end(ended, child, group).await)
}

impl Proxy {
    async fn pass(
        &mut self,
        mut editor: Lines<tokio::io::Stdin>,
        mut agent: Lines<tokio::process::ChildStdout>,
        child: &mut Child,
        mut signals: provost_system::Signals,
    ) -> Ended {
        let mut until = None;
        loop {
            if self.to_editor.is_shut() {
                return Ended::ByEditor;
            }
            let reads_editor = !self.preparing
                && self.to_agent.has_room(ACP_PROXY_UNREAD_BYTES_MAX)
                && self.to_editor.has_room(UNREAD_MAX);
            let reads_agent = self.to_editor.has_room(ACP_PROXY_UNREAD_BYTES_MAX)
                && self.to_agent.has_room(UNREAD_MAX)
                && self.sessions.waiting_bytes < ACP_PROXY_WAITING_BYTES_MAX;
            let last_words = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                said = editor.next(), if reads_editor => match said {
                    Ok(Said::Line(line)) => self.editor_says(line),
                    Ok(Said::TooLong(outline)) => self.too_long_of_editor(outline),
                    Ok(Said::End) | Err(_) => return Ended::ByEditor,
                },
                said = agent.next(), if reads_agent => match said {
                    Ok(Said::Line(line)) => self.agent_says(line),
                    Ok(Said::TooLong(outline)) => self.too_long_of_agent(outline),
                    Ok(Said::End) | Err(_) => return Ended::ByAgent,
                },
                () = self.to_editor.moves() => {}
                () = self.to_agent.moves() => {}
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.done(done),
                    Err(error) => self.broken(&error),
                },
                _status = child.wait(), if until.is_none() => {
                    until = Some(tokio::time::Instant::now() + LAST_WORDS);
                }
                () = last_words => return Ended::ByAgent,
                _signal = signals.next() => return Ended::ByEditor,
            }
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Prepared(line) => {
                self.preparing = false;
                self.to_agent.send(line);
            }
            Done::Checked(id, checked) => self.checked(id, checked),
            Done::Queue(id, verdict) => self.answered_in_queue(&id, verdict),
            Done::Taken(id, verdict, answer) => self.taken(&id, &verdict, answer),
            Done::Written(session, verdict) => self.written(&session, &verdict),
            Done::MayBeSwitched(switch, Switching::Settled(verdict)) => {
                self.preparing = false;
                self.switched(switch, &verdict);
            }
            // No rule applies: the choice of the editor's person counts.
            Done::MayBeSwitched(switch, Switching::Unruled) => {
                self.preparing = false;
                self.switched(switch, &Verdict::Allowed);
            }
            Done::OwnMode(own, said) => self.judged_mode(own, said),
            Done::OwnModeAnswered(own, verdict) => self.answered_mode(&own, &verdict),
            // If a rule wants approval, the person has given it by choosing the mode in the editor.
            Done::MayBeSwitched(switch, Switching::Queued(queued)) => {
                self.preparing = false;
                self.switched(switch, &Verdict::Allowed);
                self.work.spawn(async move {
                    judge::take_back(*queued).await;
                    Done::Left
                });
            }
            Done::Left => {}
        }
    }

    /// Handles work that was aborted or has panicked: the question of a panicked task is not left open.
    fn broken(&mut self, error: &JoinError) {
        if error.is_cancelled() {
            return;
        }
        self.preparing = false;
        let id =
            self.questions.iter().find(|(_, it)| it.work.as_ref().is_some_and(|it| it.id() == error.id()));
        let Some((id, stage)) = id.map(|(id, it)| (id.clone(), it.stage)) else { return };
        let why = "Provost could not work out what this does".to_owned();
        match stage {
            Stage::Judged => self.checked(id, Checked::Denied(why)),
            Stage::Taking => self.taken(&id, &Verdict::Denied(why), None),
            Stage::Shown => {}
        }
    }

    /// Reports on standard error a message that is not passed on, up to a number of reports.
    pub(super) fn complain(&mut self, text: &str) {
        self.garbage += 1;
        match self.garbage {
            said if said < ACP_GARBAGE_LINES_MAX => {
                out::note(format!("provost: {}", out::one_line(text, 300)))
            }
            ACP_GARBAGE_LINES_MAX => out::note("provost: what else is not passed on is not said any more"),
            _ => {}
        }
    }

    /// Ends the agent, answers the open requests, and releases the locks of the sessions.
    async fn end(mut self, ended: Ended, mut child: Child, group: Option<u32>) -> u8 {
        self.work.abort_all();
        let by_editor = matches!(ended, Ended::ByEditor);
        if by_editor {
            for session in self.prompted() {
                let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
                self.to_agent.send(message::line(&cancel));
            }
        }
        let askers = self.sessions.all();
        let Self { to_agent, to_editor, open, work, .. } = self;
        // The agent's input ends; an agent that does not read it gets a signal.
        let closing = tokio::spawn(async move {
            let _unread = tokio::time::timeout(LAST_READ, to_agent.close()).await;
        });
        let status = program::end(&mut child, group).await;
        closing.abort();
        drop(work);
        if !by_editor {
            let (why, data) = (program::told(status), ended_data(status));
            for open in open.into_values().flatten() {
                to_editor.send(message::failure(&open.id, INTERNAL, &why, &data));
            }
            out::note(format!("provost: {why}"));
        }
        let mut leaving = JoinSet::new();
        askers.into_iter().for_each(|(it, what)| drop(leaving.spawn(judge::leave(it, what))));
        let _unread = tokio::time::timeout(LAST_READ, to_editor.close()).await;
        while leaving.join_next().await.is_some() {}
        if by_editor { DONE } else { FAILED }
    }

    /// Returns the sessions in which a turn is under way.
    fn prompted(&self) -> Vec<String> {
        let prompts = self.open.values().flatten().filter(|it| &*it.method == "session/prompt");
        prompts.filter_map(|it| it.session.clone()).collect()
    }
}

fn ended_data(status: Option<std::process::ExitStatus>) -> Value {
    json!({ "provost": "agent-ended", "exitCode": status.and_then(|it| it.code()) })
}
