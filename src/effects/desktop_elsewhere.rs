//! Notices on the desktop of systems without a session bus: macOS and Windows show them by a command of their own.
//!
//! They lead to the approval and have no button that answers: the daemon could not tell who has pressed it. Where there is no such
//! command, or it fails, the log says so, and nothing waits and nothing else fails.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout};

use super::desktop_command::DesktopSystem;
use super::desktop_options::{DesktopParts, TaskNotices};
use super::engine_handle::EngineHandle;
use provost_base::{ApprovalId, clipped, visible};
use provost_domain::command::{Command as Verb, Status};
use provost_domain::view::WaitingOne;
use provost_domain::{Event, EventKind};

const MINUTE: Duration = Duration::from_secs(60);
/// How long the command may take to show one notice.
const SHOWN_WITHIN: Duration = Duration::from_secs(15);
/// How long a command is not tried again after a failure.
const BROKEN_FOR: Duration = Duration::from_secs(10 * 60);
/// How many bytes of a text from elsewhere are shown; no notice of these systems shows more.
const SHOWN_BYTES_MAX: usize = 200;

/// The observer of the events.
pub(super) struct Desktop {
    handle: EngineHandle,
    parts: DesktopParts,
    shown: VecDeque<Instant>,
    /// The number of notices that the bound for one minute left out.
    left_out: u32,
    broken_until: Option<Instant>,
}

/// The texts of a notice.
struct Shown {
    title: String,
    text: String,
    path: String,
}

impl Desktop {
    pub(super) fn new(handle: EngineHandle, parts: DesktopParts) -> Self {
        Self { handle, parts, shown: VecDeque::new(), left_out: 0, broken_until: None }
    }

    /// Follows the events until the daemon stops.
    pub(super) async fn look_on(mut self) {
        let Some(system) = DesktopSystem::here() else {
            let os = std::env::consts::OS;
            return tracing::info!(
                "provost knows no command that shows notices on {os}; there are none on its desktop"
            );
        };
        let mut events = self.handle.engine.subscribe_beside_posts();
        let shutdown = self.handle.shutdown.clone();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                event = events.recv() => match event {
                    Ok(event) => if let Some(news) = self.news(&event).await {
                        self.tell(system, news).await;
                    },
                    // An approval whose event was missed is in the list of approvals.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    async fn news(&self, event: &Event) -> Option<Shown> {
        match &event.kind {
            EventKind::ApprovalAsked { approval, .. } | EventKind::ApprovalAskedAgain { approval, .. } => {
                self.question(*approval).await
            }
            EventKind::TaskFinished { task, status, failure, .. } => {
                let wanted = match self.parts.options.borrow().tasks {
                    TaskNotices::All => *status != Status::Cancelled,
                    TaskNotices::Failed => *status == Status::Failed,
                    TaskNotices::None => false,
                };
                let reason = failure.as_ref().map(|it| format!(", {}", it.reason())).unwrap_or_default();
                wanted.then(|| Shown {
                    title: format!("Provost: a task {}", status.as_str()),
                    text: format!("{}{reason}", line(task.as_str())),
                    path: "/tasks".into(),
                })
            }
            _ => None,
        }
    }

    async fn question(&self, approval: ApprovalId) -> Option<Shown> {
        let parked = self.handle.engine.view(WaitingOne(approval)).await.ok()??;
        let what = match &parked.command {
            Verb::Delegate(order) => format!("a task for {}", line(order.worker.as_str())),
            other => other.name().to_owned(),
        };
        let digest: String = parked.shown.to_string().chars().take(6).collect();
        Some(Shown {
            title: format!("Provost: approval {approval} is wanted"),
            text: format!(
                "{} wants {what}; rule {}, digest {digest}. Look: provost approval list",
                line(parked.who.agent().as_str()),
                parked.rule
            ),
            path: format!("/a/{approval}?d={digest}"),
        })
    }

    /// Shows the notice while there is room in this minute; the next notice that is shown says how many were left out.
    async fn tell(&mut self, system: DesktopSystem, news: Shown) {
        let options = *self.parts.options.borrow();
        let now = Instant::now();
        if !options.enabled || self.broken_until.is_some_and(|until| now < until) {
            return;
        }
        self.shown.retain(|at| at.elapsed() < MINUTE);
        if self.shown.len() >= options.per_minute as usize {
            self.left_out += 1;
            return;
        }
        self.shown.push_back(now);
        let more = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            more => format!(" ({more} more before it; see `provost`)"),
        };
        let link = (self.parts.page)().map(|base| format!("{base}{}", news.path));
        let text = format!("{}{more}", news.text);
        self.broken_until = match show(system, &news.title, &text, link.as_deref()).await {
            Ok(()) => None,
            Err(why) => {
                tracing::warn!(
                    "a notice was not shown on the desktop: {why}; the next attempt is in ten minutes"
                );
                Some(now + BROKEN_FOR)
            }
        };
    }
}

/// Runs the command of the system.
async fn show(system: DesktopSystem, title: &str, text: &str, link: Option<&str>) -> Result<(), String> {
    let folder = std::env::var("SystemRoot").unwrap_or_default();
    let command = system.command(&folder, title, text, link);
    let mut process = Command::new(&command.program);
    process.args(&command.args).envs(command.variables).kill_on_drop(true);
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = match timeout(SHOWN_WITHIN, process.output()).await {
        Ok(output) => output.map_err(|err| format!("{} was not started: {err}", command.program))?,
        Err(_) => return Err(format!("{} did not end within {} s", command.program, SHOWN_WITHIN.as_secs())),
    };
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(format!("{} has failed: {}", command.program, line(&String::from_utf8_lossy(&output.stderr))))
        }
    }
}

/// Returns a text from elsewhere on one line, cut, without hidden signs.
fn line(text: &str) -> String {
    let text: String = text.trim().chars().map(|it| if it.is_whitespace() { ' ' } else { it }).collect();
    clipped(&visible(&text), SHOWN_BYTES_MAX)
}
