//! `provost adapter run`: keeps a section about the other agents current in the file from which a host reads its
//! instructions.
//!
//! Each host has its own process. It announces the agent and sends heartbeats for it, follows the log, and writes the
//! section when the facts in it have changed. At its end it removes the section. `render` makes the section's text,
//! `section` finds its place in the file, and `file` writes the file.

mod file;
mod host;
mod render;
mod section;

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior};

use super::cli_error::{DONE, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out, session, up};
use file::{Alone, Done, FileError, HostFile, Mark};
use host::AgentHost;
use provost_api::wire;
use provost_base::AgentId;
use provost_base::limits::EVENT_PAGE_MAX;
use provost_client::{Client, ClientError};
use provost_system::Signals;
use render::Facts;

/// The time that one request waits for new events, in milliseconds.
const WAIT_MS: u64 = 20_000;

/// Changes within this time are written together.
const SETTLE: Duration = Duration::from_millis(100);

/// Interval between two checks for edits of the file.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest time between two heartbeats.
const BEAT_MAX: Duration = Duration::from_secs(20);

/// The wait before the adapter asks a lost daemon again: the first one, and the longest.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// The time that the adapter waits for the daemon at its end.
const LEAVE_WAIT_MAX: Duration = Duration::from_secs(2);

/// After this many requests without an answer the section says that it may be out of date.
const STALE_AFTER: u32 = 4;

/// `provost adapter`.
#[derive(Subcommand, Debug)]
pub(super) enum Adapters {
    /// Run the adapter of a host, which keeps a section about the other agents current in CLAUDE.md, AGENTS.md or
    /// Cursor's rules; end with Ctrl-C
    #[command(
        after_help = "Examples:\n  provost adapter run claude\n  provost adapter run cursor --agent cursor-2\n  provost adapter run agents-md --file docs/AGENTS.md --once\n  provost adapter run codex --remove"
    )]
    Run(Adapt),
}

/// `provost adapter run`.
#[derive(Args, Debug)]
pub(super) struct Adapt {
    /// The host whose file has the section
    host: AgentHost,
    /// Speak as this agent; by default as PROVOST_AGENT, WIT_SESSION or CLAUDE_SESSION_ID says, else as
    /// claude-code-1, cursor-1, codex-1 or agent-1
    #[arg(long, visible_alias = "as", value_name = "AGENT")]
    agent: Option<AgentId>,
    /// The role that the agent asks for; lead for claude, otherwise worker
    #[arg(long, value_enum)]
    role: Option<Part>,
    /// A file of the repository instead of the host's own
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Write the section and leave it there, without announcing an agent
    #[arg(long)]
    once: bool,
    /// Remove the section, and end
    #[arg(long, conflicts_with = "once")]
    remove: bool,
}

/// The role of an agent.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Part {
    /// The agent decides, if no other agent does
    Lead,
    /// The agent is specialised in one kind of work
    Specialist,
    /// The agent does the open work
    Worker,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Part::Lead => "lead",
            Part::Specialist => "specialist",
            Part::Worker => "worker",
        }
    }
}

pub(super) fn adapter(here: &RepoContext, asked: Adapters) -> Result<u8, CliError> {
    let Adapters::Run(asked) = asked;
    let agent = name(here, &asked)?;
    here.places.create()?;
    let locks = here.places.state.join("adapt");
    let file = HostFile::find(here, asked.host, asked.file.as_deref(), &locks)?;
    let _alone = Alone::with(&file, &locks)?;
    if asked.remove {
        let done = file.take_out().map_err(|err| err.error(&file.shown))?;
        return told(here, &file, done, None).map(|()| DONE);
    }
    up::start_if_absent(here, true)?;
    wait_for(async {
        let client = here.daemon(Some(agent.clone())).await?;
        let role = asked.role.map_or(asked.host.role(), Part::word);
        let mut adapter = Adapter {
            here,
            client,
            agent,
            host: asked.host,
            role,
            file: file.into(),
            mark: None,
            announced: false,
            facts: None,
            beat_at: Instant::now(),
            grief: None,
        };
        if !asked.once {
            // The first session of this host gets the adapter's name.
            let _note = session::note_adapter(&here.places, asked.host.word(), &adapter.agent);
            return adapter.keep().await;
        }
        adapter.look().await?;
        let done = adapter.write().await.map_err(|err| err.error(&adapter.file.shown))?;
        told(here, &adapter.file, done, Some(&adapter.agent)).map(|()| DONE)
    })
}

/// Returns the agent's name. It stands in commands that people copy, so it must be a plain one.
fn name(here: &RepoContext, asked: &Adapt) -> Result<AgentId, CliError> {
    let agent = match IdentityArgs::named_plainly(here, asked.agent.clone())? {
        Some(agent) => agent,
        None => AgentId::parse(asked.host.agent()).expect("a constant that is a valid id"),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    if agent.as_str().chars().all(plain) && !agent.as_str().starts_with('-') {
        return Ok(agent);
    }
    Err(CliError::of(format!("{} is no name for an adapter's agent", out::one_line(agent.as_str(), 200)))
        .because("it stands in commands that agents copy")
        .next("use letters, digits and . _ : / - with --agent")
        .with_code(USAGE))
}

/// Reports the result of writing the file.
fn told(here: &RepoContext, file: &HostFile, done: Done, agent: Option<&AgentId>) -> Result<(), CliError> {
    let word = match done {
        Done::Written if agent.is_some() => "written",
        Done::Written | Done::Removed => "removed",
        Done::Unchanged => "unchanged",
    };
    let shown = file.shown.display().to_string();
    if here.json {
        let agent = agent.map(AgentId::as_str);
        return out::json_line(&json!({ "file": shown, "section": word, "agent": agent }));
    }
    out::line(out::one_line(&format!("section {word}: {shown}"), 4_200))
}

/// The reason why the adapter stops following.
enum Lost {
    /// A signal has asked the adapter to end.
    Stopped,
    /// The daemon does not answer, or refuses.
    Daemon(ClientError),
    /// Standard output is closed.
    Output(CliError),
}

impl From<ClientError> for Lost {
    fn from(err: ClientError) -> Self {
        Lost::Daemon(err)
    }
}

/// Waits for a future, or for a signal. The future must be safe to cancel.
async fn unless_stopped<T>(
    signals: &mut Signals,
    it: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, Lost> {
    tokio::select! {
        done = it => Ok(done?),
        _signal = signals.next() => Err(Lost::Stopped),
    }
}

struct Adapter<'a> {
    here: &'a RepoContext,
    client: Client,
    agent: AgentId,
    host: AgentHost,
    role: &'static str,
    file: Arc<HostFile>,
    /// The file, as the adapter has written it.
    mark: Option<Mark>,
    /// Whether the adapter has announced the agent; it then withdraws the announcement at its end.
    announced: bool,
    facts: Option<Facts>,
    /// The moment at which the next heartbeat is due.
    beat_at: Instant,
    /// The last message about a file that cannot be written.
    grief: Option<String>,
}

impl Adapter<'_> {
    /// Asks the daemon for the facts.
    async fn look(&mut self) -> Result<(), ClientError> {
        let about = self.client.about().await?;
        let door = about.doors.into_iter().find(|it| it.door == "agent_protocol").map(|it| it.address);
        let at_work = self.client.at_work().await?;
        // The daemon calls an agent by a longer name where one of another host has its name.
        let agent = self.client.who_am_i().await?.agent;
        let names_shells = self.host.names_shells();
        self.facts = Some(Facts { agent, names_shells, at_work, door, current: true });
        Ok(())
    }

    /// Runs blocking work on the file.
    async fn with_file(
        &mut self,
        what: impl FnOnce(&HostFile) -> Result<Done, FileError> + Send + 'static,
    ) -> Result<Done, FileError> {
        let file = Arc::clone(&self.file);
        let done = tokio::task::spawn_blocking(move || (what(&file), file.mark())).await;
        let (done, mark) = done.map_err(|err| FileError::Broken(std::io::Error::other(err)))?;
        self.mark = mark;
        done
    }

    /// Writes the known facts into the file. Must not be cancelled.
    async fn write(&mut self) -> Result<Done, FileError> {
        let Some(facts) = &self.facts else { return Ok(Done::Unchanged) };
        let body = render::section(facts);
        self.with_file(move |file| file.put(&body)).await
    }

    /// Does the same, and reports the result. It reports a file that cannot be written once, and tries again when the
    /// file has changed.
    async fn rewrite(&mut self) -> Result<(), Lost> {
        match self.write().await {
            Ok(done) => {
                self.grief = None;
                if done == Done::Unchanged {
                    return Ok(());
                }
                told(self.here, &self.file, done, Some(&self.agent)).map_err(Lost::Output)
            }
            Err(err) => {
                let grief = err.error(&self.file.shown).text();
                if self.grief.as_ref() != Some(&grief) {
                    out::note(&grief);
                }
                self.grief = Some(grief);
                Ok(())
            }
        }
    }

    /// Keeps the section current until a signal ends the adapter.
    async fn keep(&mut self) -> Result<u8, CliError> {
        let caught = |err| CliError::of("signals cannot be caught").because(err);
        let mut signals = Signals::catch().map_err(caught)?;
        // A first failure is reported at once.
        self.look().await?;
        self.write().await.map_err(|err| err.error(&self.file.shown))?;
        let keeps =
            format!("keeping {} current for {}; end with Ctrl-C", self.file.shown.display(), self.agent);
        out::note(out::one_line(&keeps, 4_400));
        let ended = self.follow(&mut signals).await;
        let left = self.with_file(HostFile::take_out).await.map_err(|err| err.error(&self.file.shown));
        self.leave().await;
        ended?;
        told(self.here, &self.file, left?, None).map(|()| DONE)
    }

    /// Follows the daemon, and reconnects after a loss, until a signal or a permanent error.
    async fn follow(&mut self, signals: &mut Signals) -> Result<(), CliError> {
        let mut failures = 0;
        loop {
            match self.follow_once(signals, &mut failures).await {
                Lost::Stopped => return Ok(()),
                Lost::Output(error) => return Err(error),
                Lost::Daemon(err) if is_final(&err) => return Err(err.into()),
                Lost::Daemon(_) => failures += 1,
            }
            if failures == STALE_AFTER {
                out::note("the daemon does not answer; it is asked again until it does");
                self.facts.iter_mut().for_each(|it| it.current = false);
                if let Err(Lost::Output(error)) = self.rewrite().await {
                    return Err(error);
                }
            }
            let pause = BACK_OFF.0.saturating_mul(1 << failures.min(10)).min(BACK_OFF.1);
            tokio::select! {
                _signal = signals.next() => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Does the same until the daemon is lost. `failures` returns to zero when the daemon answers.
    async fn follow_once(&mut self, signals: &mut Signals, failures: &mut u32) -> Lost {
        let client = self.client.clone();
        // The position in the log is read first: a change in the meantime is then seen twice, and never missed.
        let mut from = match unless_stopped(signals, client.about()).await {
            Ok(about) => about.journal_seq,
            Err(lost) => return lost,
        };
        loop {
            let turn = async {
                unless_stopped(signals, self.look()).await?;
                if self.facts.as_ref().is_some_and(|it| it.at_work.me.is_none()) {
                    unless_stopped(signals, self.join()).await?;
                    unless_stopped(signals, self.look()).await?;
                }
                *failures = 0;
                self.rewrite().await?;
                self.news(signals, from).await
            };
            match turn.await {
                Ok(next) => from = next,
                Err(lost) => return lost,
            }
        }
    }

    /// Waits for an event that may change the section; returns the position behind it in the log.
    async fn news(&mut self, signals: &mut Signals, mut from: u64) -> Result<u64, Lost> {
        let client = self.client.clone();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let query =
                wire::EventsQuery { after: Some(from), limit: Some(EVENT_PAGE_MAX), wait_ms: Some(WAIT_MS) };
            let mut page = pin!(client.events(&query));
            let page = loop {
                tokio::select! {
                    _signal = signals.next() => return Err(Lost::Stopped),
                    page = &mut page => break page?,
                    () = tokio::time::sleep_until(self.beat_at) => {
                        unless_stopped(signals, self.beat()).await?;
                        // Some facts, such as a lock's time, end without an event.
                        return Ok(from);
                    }
                    _ = look.tick() => if self.file.mark() != self.mark {
                        self.rewrite().await?;
                    },
                }
            };
            from = page.next;
            if page.events.iter().any(may_be_told) {
                let settled = async {
                    tokio::time::sleep(SETTLE).await;
                    Ok(())
                };
                unless_stopped(signals, settled).await?;
                return Ok(from);
            }
        }
    }

    /// Sends a heartbeat; announces the agent if the daemon no longer knows it.
    async fn beat(&mut self) -> Result<(), ClientError> {
        self.beat_at = Instant::now() + self.patience();
        match self.client.beat_crew().await {
            Err(ClientError::Refused { fault, .. }) if fault.error == "not_in_crew" => self.join().await,
            done => done.map(drop),
        }
    }

    /// Returns the time between two heartbeats: two of them may be lost.
    fn patience(&self) -> Duration {
        let patience = self.facts.as_ref().map(|it| Duration::from_millis(it.at_work.patience_ms) / 3);
        patience.unwrap_or(BEAT_MAX).min(BEAT_MAX)
    }

    /// Joins the crew.
    async fn join(&mut self) -> Result<(), ClientError> {
        let request = wire::JoinCrew {
            tool: self.host.tool().into(),
            role: Some(self.role.into()),
            capabilities: self.host.capabilities().iter().map(|it| (*it).to_owned()).collect(),
        };
        self.client.join_crew(&request).await?;
        self.beat_at = Instant::now() + self.patience();
        self.announced = true;
        Ok(())
    }

    /// Withdraws the announcement if the adapter made it. An agent that holds files is still at work: it keeps them
    /// until it releases them, or falls silent.
    async fn leave(&self) {
        if !self.announced {
            return;
        }
        let request = wire::LeaveCrew { only_if_idle: true };
        // If the daemon has gone, it will miss the agent's heartbeats.
        let _unheard = tokio::time::timeout(LEAVE_WAIT_MAX, self.client.leave_crew(&request)).await;
    }
}

/// Checks whether a repeated request would get the same answer.
fn is_final(err: &ClientError) -> bool {
    match err {
        ClientError::Foreign { .. } | ClientError::Version(_) => true,
        ClientError::Refused { status, .. } => matches!(status, 400..=403),
        ClientError::NotRunning(_) | ClientError::Ended(_) | ClientError::Slow | ClientError::Broken(_) => {
            false
        }
    }
}

/// Checks whether an event may change the section. Heartbeats, the most frequent events, do not.
fn may_be_told(event: &Value) -> bool {
    event["kind"]["crew"] != "member_beat"
}
