//! Speaks the Agent Client Protocol with an agent in its jail: one session, a turn for the task's goal, and a turn for the words
//! that callers say to the agent meanwhile.
//!
//! ACP v1, "Prompt turn". The daemon is the client. It offers neither files nor terminals, so that the agent can act only in its
//! jail; it sets the mode in which the agent asks; and the rules judge each permission request. The
//! agent is hostile: its lines, its whole output, the handshake and the number of open requests have bounds.

mod elicitation;
mod keeping;
mod modes;
mod permissions;
mod steering;
mod turn;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

pub use elicitation::Asker;
pub use permissions::{Judge, Verdict};

use self::modes::Modes;
use self::steering::Steering;
use self::turn::{Prompt, Turn};
use self::wire::{Answer, Wire};
use super::conversation::{Spoke, Untold};
use super::kept_sessions::SessionLease;
use super::result::clip;
use super::worker::Workers;
use provost_base::TaskId;
use provost_base::limits::{ACP_HANDSHAKE_MS_MAX, ACP_SESSION_ID_MAX, ACP_SESSION_PAGES_MAX};
use provost_domain::{AgentSession, Task};
use provost_jail::{AcpSession, LiveOutput, OurEnd, OutputBoard, Profile};

/// The name of an agent in the errors of its runs.
pub(super) const WHOSE: &str = "ACP agent";
/// The version of the protocol that the daemon speaks.
const VERSION: u64 = 1;
/// The code of the error by which an agent requires a sign-in. ACP v1, "Error codes".
const SIGN_IN: i64 = -32_000;
/// How long an agent may take to close its session.
const CLOSING: Duration = Duration::from_secs(1);

/// The first words of the prompt when a run begins again. The agent may not have had its task yet.
const RESUMED: &str = "Your process ended in the middle of your work, and was begun again in the same session. Go on where you \
    were. The task is:\n\n";

/// The parts of the daemon that an agent reaches while it works.
#[derive(Clone)]
pub(super) struct Ways {
    /// Judges the agent's permission requests; without a judge they are denied.
    pub(super) judge: Option<Judge>,
    /// Puts the agent's questions to people; without an asker they are declined.
    pub(super) asker: Option<Asker>,
    /// Brings the agent the words that callers say to it.
    pub(super) steering: Steering,
    /// Keeps the turns of editors' sessions.
    pub(super) outputs: OutputBoard,
}

impl Ways {
    /// Makes the ways for the agent that works on a task.
    pub(super) fn of(workers: &Workers, task: &TaskId) -> Self {
        Self {
            judge: workers.judge.clone(),
            asker: workers.asker.clone(),
            steering: Steering::of(&workers.handle, task),
            outputs: workers.outputs.clone(),
        }
    }
}

/// The work that an agent is asked to do.
#[derive(Clone, Debug)]
pub(super) struct AcpRun {
    setup: AcpSession,
    goal: String,
    /// The folder in which the agent works, as the agent sees it.
    folder: String,
    /// The folder of the workspace; the agent may work in a copy of it.
    stands_for: String,
    model: Option<String>,
    task: Arc<Task>,
    /// The session to continue; `None` for a new one.
    goes_on: Option<String>,
    /// The first task of the session, if the session's home is kept.
    kept: Option<TaskId>,
}

impl AcpRun {
    /// The work of a task; `None` for a worker that is not spoken to in this protocol.
    pub(super) fn of(
        profile: &Profile,
        task: &Task,
        (folder, stands_for): (String, String),
        (model, session): (Option<&str>, Option<&SessionLease>),
    ) -> Option<Self> {
        let setup = profile.acp.clone()?;
        let (goal, model) = (task.order.goal.to_string(), model.map(str::to_owned));
        let resumed = task.talk.as_ref().and_then(|it| it.session.as_ref());
        let goal = if resumed.is_some() { format!("{RESUMED}{goal}") } else { goal };
        let earlier = resumed.or_else(|| task.order.continues.as_ref().and_then(|it| it.session.as_ref()));
        let (goes_on, kept) = (earlier.map(|it| it.id.to_string()), session.map(|it| it.of.clone()));
        Some(Self { setup, goal, folder, stands_for, model, task: Arc::new(task.clone()), goes_on, kept })
    }
}

/// Carries out the whole conversation, and then closes the agent's input.
pub(super) async fn converse(
    ours: OurEnd,
    run: AcpRun,
    live: LiveOutput,
    ways: Ways,
) -> Result<Spoke, Untold> {
    keeping::keep(&ways.outputs, &run.task, &live);
    let mut wire = Wire::new(ours, live);
    let session = match timeout(Duration::from_millis(ACP_HANDSHAKE_MS_MAX), begin(&mut wire, &run)).await {
        Ok(session) => session?,
        Err(_) => return Err(untold(format!(": no session within {}s", ACP_HANDSHAKE_MS_MAX / 1000))),
    };
    ways.steering.begun(session.record(&run)).await?;
    talk(&mut wire, (&run, &session), &ways).await?;
    if session.can.close {
        let close = wire.ask("session/close", json!({ "sessionId": session.id }));
        // The agent is ended in any case.
        let _closed = timeout(CLOSING, close).await;
    }
    Ok(Spoke::Acp)
}

/// Turn after turn, until nothing waits that was said to the agent. The last turn's end is that of the conversation.
async fn talk(wire: &mut Wire, (run, session): (&AcpRun, &Session), ways: &Ways) -> Result<(), Untold> {
    let mut prompt = Prompt::goal(&run.goal);
    loop {
        let turn = Turn { wire: &mut *wire, run, session, ways };
        let ended = turn.carry_out(&prompt).await?;
        let sayings = ways.steering.take().await;
        if sayings.is_empty() {
            return ended;
        }
        prompt = Prompt::sayings(sayings);
    }
}

/// A session that has begun.
#[derive(Debug)]
struct Session {
    id: String,
    /// The mode that was set, and its option; `None` if the agent has none.
    mode: Option<modes::Chosen>,
    can: Can,
}

/// The operations on sessions that an agent offers.
#[derive(Debug)]
struct Can {
    load: bool,
    resume: bool,
    list: bool,
    close: bool,
}

impl Session {
    /// As it is put on record.
    fn record(&self, run: &AcpRun) -> AgentSession {
        AgentSession {
            id: self.id.as_str().into(),
            folder: run.folder.as_str().into(),
            loads: self.can.load,
            resumes: self.can.resume,
            lists: self.can.list,
            closes: self.can.close,
            kept: run.kept.clone(),
        }
    }
}

async fn begin(wire: &mut Wire, run: &AcpRun) -> Result<Session, Untold> {
    let hello = wire.ask("initialize", hello()).await?.map_err(|it| it.untold("initialize"))?;
    match hello["protocolVersion"].as_u64() {
        Some(VERSION) => {}
        Some(other) => {
            return Err(untold(format!(": it speaks version {other} of ACP; the daemon speaks {VERSION}")));
        }
        None => return Err(untold(": what it answers to initialize is not ACP")),
    }
    let offers = |at: &str| {
        let it = hello["agentCapabilities"].pointer(at);
        it.is_some_and(|it| !it.is_null() && *it != Value::Bool(false))
    };
    let can = Can {
        load: offers("/loadSession"),
        resume: offers("/sessionCapabilities/resume"),
        list: offers("/sessionCapabilities/list"),
        close: offers("/sessionCapabilities/close"),
    };
    let made = open(wire, &hello, run, &can).await?;
    if run.goes_on.is_some() {
        // What was said in earlier runs is in their output.
        wire.forget_updates();
    }
    let Some(id) = run.goes_on.clone().or_else(|| made["sessionId"].as_str().map(str::to_owned)) else {
        return Err(untold(": it has begun a session without an id"));
    };
    if id.is_empty() || id.len() > ACP_SESSION_ID_MAX {
        return Err(untold(format!(": its session's id has not 1 to {ACP_SESSION_ID_MAX} bytes")));
    }
    let modes = Modes::of(&made);
    let mode = modes.asking(run.setup.mode.as_deref()).map_err(untold)?;
    if let Some(mode) = &mode {
        wire.ask(mode.method(), mode.params(&id)).await?.map_err(|it| it.untold(mode.method()))?;
    }
    if let Some((option, model)) = modes.model(run.model.as_deref()) {
        let params = json!({ "sessionId": id, "configId": option, "value": model });
        wire.ask("session/set_config_option", params)
            .await?
            .map_err(|it| it.untold("session/set_config_option"))?;
    }
    wire.expect_session(&id);
    Ok(Session { id, mode, can })
}

/// Begins a session, or takes up the one that the run goes on with; what the agent answers.
async fn open(wire: &mut Wire, hello: &Value, run: &AcpRun, can: &Can) -> Result<Value, Untold> {
    let mut asked = json!({ "cwd": run.folder, "mcpServers": [] });
    let method = match &run.goes_on {
        None => "session/new",
        Some(_) if !can.load && !can.resume => {
            return Err(untold(
                ": it cannot go on with a session: it offers neither session/resume nor session/load",
            ));
        }
        Some(id) => {
            asked["sessionId"] = json!(id);
            if can.resume { "session/resume" } else { "session/load" }
        }
    };
    let made = match wire.ask(method, asked.clone()).await? {
        Answer::Err(error) if error.code == SIGN_IN => {
            sign_in(wire, hello, run).await?;
            wire.ask(method, asked).await?
        }
        answer => answer,
    };
    match (made, &run.goes_on) {
        (Answer::Err(_), Some(id)) if can.list && is_forgotten(wire, &run.folder, id).await? => {
            Err(untold(": it does not have the session any more, by its own list"))
        }
        (made, _) => made.map_err(|it| it.untold(method)),
    }
}

/// Checks whether an agent that could not continue a session lists its sessions, without this one. The list has pages.
async fn is_forgotten(wire: &mut Wire, folder: &str, id: &str) -> Result<bool, Untold> {
    let mut cursor = Value::Null;
    for _ in 0..ACP_SESSION_PAGES_MAX {
        let mut params = json!({ "cwd": folder });
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let Ok(mut page) = wire.ask("session/list", params).await? else { return Ok(false) };
        let Some(sessions) = page["sessions"].as_array() else { return Ok(false) };
        if sessions.iter().any(|it| it["sessionId"] == id) {
            return Ok(false);
        }
        cursor = page["nextCursor"].take();
        if cursor.is_null() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn hello() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false,
            "elicitation": { "form": {} } },
        "clientInfo": { "name": "provost", "title": "Provost", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// Signs in by the way that its entry names, or by a key that the agent has in its environment: neither needs a person.
async fn sign_in(wire: &mut Wire, hello: &Value, run: &AcpRun) -> Result<(), Untold> {
    let methods = hello["authMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Methods of the type `terminal` need a person at a terminal.
    let is_own = |it: &&Value| it.get("type").and_then(Value::as_str).is_none_or(|it| it == "agent");
    let ids: Vec<&str> = methods.iter().filter(is_own).filter_map(|it| it["id"].as_str()).collect();
    let is_by_key = |it: &&&str| it.contains("api-key") || it.contains("api_key") || it.contains("apikey");
    let chosen = match run.setup.sign_in.as_deref() {
        Some(named) => ids.iter().find(|it| **it == named),
        None => ids.iter().find(is_by_key),
    };
    let Some(chosen) = chosen else {
        let named = match ids.is_empty() {
            true => "none that works without a person".to_owned(),
            false => ids.iter().map(|it| clip(it, 64)).collect::<Vec<_>>().join(", "),
        };
        return Err(untold(format!(
            ": it wants to be signed in; its ways are: {named}. Set `acp_sign_in` in its entry, or give it its key"
        )));
    };
    let done = wire.ask("authenticate", json!({ "methodId": chosen })).await?;
    done.map(drop).map_err(|it| it.untold("authenticate"))
}

/// Returns the reason why the run has no answer.
fn untold(why: impl AsRef<str>) -> Untold {
    Untold::new(WHOSE, why.as_ref())
}
