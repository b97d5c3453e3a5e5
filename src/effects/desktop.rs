//! Notices on the desktop: approvals that wait, with buttons to answer them, and tasks that have ended.
//!
//! An observer, which carries out no effect: it follows the events and notifies the person, if there is a session bus
//! with a notification service. If the service is missing or hangs, nothing waits and nothing fails. The number of notices in a
//! minute has a bound; the last of them sums up the rest.
//!
//! A click answers as the person, for exactly what was shown. The bus proves little: every process of the user may
//! speak on it. So buttons have unguessable names, and the journal marks an answer as `desktop`. The host of an agent that asks
//! for permission to use a tool is such a process itself, so that a click there only denies, unless the user says otherwise.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use notify_rust::{Notification, NotificationHandle, NotificationResponse, Timeout, Urgency};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::desktop_options::{DesktopParts, TaskNotices};
use super::engine_handle::EngineHandle;
use super::result::clip;
use provost_base::{ApprovalId, TaskId, visible};
use provost_domain::command::{AnswerApproval, Command, Status};
use provost_domain::view::{AllPasskeys, Waiting, WaitingOne};
use provost_domain::{
    Answer, Approver, Event, EventKind, Facts, Parked, PermissionEvent, Principal, Verdict,
};

/// How long the notification service may take for one call.
const BUS_TIME_MAX: Duration = Duration::from_secs(2);
/// How long the last finding about the service is trusted.
const KNOWN_FOR: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);
/// How long notices are collected before a summary is shown.
const GATHER: Duration = Duration::from_millis(500);
/// The pause after an answer with an unknown name. A process that guesses at the names of buttons cannot
/// guess faster than this.
const GUESS_PAUSE: Duration = Duration::from_millis(50);
/// How many bytes of a text from elsewhere are shown.
const SHOWN_BYTES_MAX: usize = 240;
/// How many approvals may have notices at the same time.
const OPEN_MAX: usize = 64;
/// How many questions of hosts are shown at once although the minute is full: they wait for seconds only.
const URGENT_OPEN_MAX: usize = 3;
/// The verb of a host's question, as events name it.
const PERMISSION: &str = "AskPermission";

/// The subject of a notice.
enum DesktopNotice {
    Approval(ApprovalId),
    /// An approval whose asker waits for seconds only.
    Urgent(ApprovalId),
    Task(TaskId, Status, Option<&'static str>),
}

/// The observer of the events.
pub(super) struct Desktop {
    handle: EngineHandle,
    parts: DesktopParts,
    service: Service,
    shown: VecDeque<Instant>,
    open: HashMap<ApprovalId, CancellationToken>,
    urgent: HashSet<ApprovalId>,
    backlog: (u32, u32),
    sum_up_at: Option<Instant>,
}

/// The last finding about the notification service.
#[derive(Default)]
struct Service {
    known: Option<(Instant, Option<bool>)>,
    asking: Option<JoinHandle<notify_rust::error::Result<Vec<String>>>>,
}

impl Service {
    /// Checks whether the service offers buttons; `None` if there is no service. Asks one question at a time: a service that never
    /// answers costs one thread, and delays at most one notice in each [`KNOWN_FOR`].
    async fn has_buttons(&mut self) -> Option<bool> {
        if let Some((at, known)) = self.known
            && at.elapsed() < KNOWN_FOR
        {
            return known;
        }
        let asking =
            self.asking.get_or_insert_with(|| tokio::task::spawn_blocking(notify_rust::get_capabilities));
        let found = match timeout(BUS_TIME_MAX, &mut *asking).await {
            Err(_) => None,
            Ok(answer) => {
                self.asking = None;
                let found = answer.ok().and_then(Result::ok);
                found.map(|offers| offers.iter().any(|it| it == "actions"))
            }
        };
        if found.is_none() && self.known.is_none_or(|(_, known)| known.is_some()) {
            tracing::info!("no notification service answers on the session bus; there are no notices");
        }
        self.known = Some((Instant::now(), found));
        found
    }
}

impl Desktop {
    pub(super) fn new(handle: EngineHandle, parts: DesktopParts) -> Self {
        let (service, shown, open) = (Service::default(), VecDeque::new(), HashMap::new());
        Self { handle, parts, service, shown, open, urgent: HashSet::new(), backlog: (0, 0), sum_up_at: None }
    }

    /// Follows the events until the daemon stops.
    pub(super) async fn look_on(mut self) {
        let mut events = self.handle.engine.subscribe_beside_posts();
        let shutdown = self.handle.shutdown.clone();
        self.catch_up().await;
        loop {
            let sum_up_at = self.sum_up_at;
            let sum_up = async move {
                match sum_up_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return self.open.values().for_each(CancellationToken::cancel),
                event = events.recv() => match event {
                    Ok(event) => self.hear(&event).await,
                    Err(RecvError::Lagged(_)) => self.catch_up().await,
                    Err(RecvError::Closed) => return,
                },
                () = sum_up => self.sum_up().await,
            }
        }
    }

    /// Shows approvals from before the start, and those whose events were missed.
    async fn catch_up(&mut self) {
        let Ok(waiting) = self.handle.engine.view(Waiting).await else { return };
        self.open.retain(|id, close| {
            let waits = waiting.iter().any(|it| it.id == *id);
            if !waits {
                close.cancel();
            }
            waits
        });
        self.urgent.retain(|id| self.open.contains_key(id));
        for parked in waiting {
            if !self.open.contains_key(&parked.id) {
                self.tell(approval(parked.id, parked.command.name())).await;
            }
        }
    }

    async fn hear(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ApprovalAsked { approval: id, verb, .. } => self.tell(approval(*id, verb)).await,
            EventKind::ApprovalAskedAgain { approval, .. } => {
                let Ok(Some(parked)) = self.handle.engine.view(WaitingOne(*approval)).await else { return };
                self.close(*approval);
                self.tell(self::approval(*approval, parked.command.name())).await;
            }
            EventKind::ApprovalAnswered { approval, .. }
            | EventKind::ApprovalExpired { approval }
            | EventKind::Permission(PermissionEvent::PermissionWithdrawn { approval, .. }) => {
                self.close(*approval);
            }
            EventKind::TaskFinished { task, status, failure, .. } => {
                self.close_withdrawn().await;
                let reason = failure.as_ref().map(|it| it.reason());
                let wanted = match self.parts.options.borrow().tasks {
                    TaskNotices::All => *status != Status::Cancelled,
                    TaskNotices::Failed => *status == Status::Failed,
                    TaskNotices::None => false,
                };
                if wanted {
                    self.tell(DesktopNotice::Task(task.clone(), *status, reason)).await;
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, approval: ApprovalId) {
        self.urgent.remove(&approval);
        if let Some(close) = self.open.remove(&approval) {
            close.cancel();
        }
    }

    /// Closes the question of a task that was taken back, which has no event of its own.
    async fn close_withdrawn(&mut self) {
        let open: Vec<_> = self.open.keys().copied().collect();
        for approval in open {
            if matches!(self.handle.engine.view(WaitingOne(approval)).await, Ok(None)) {
                self.close(approval);
            }
        }
    }

    /// Shows the notice at once while there is room in this minute; counts it for the summary otherwise.
    async fn tell(&mut self, news: DesktopNotice) {
        let options = *self.parts.options.borrow();
        if !options.enabled {
            return;
        }
        let Some(buttons) = self.service.has_buttons().await else { return };
        let most = options.per_minute as usize;
        self.shown.retain(|at| at.elapsed() < MINUTE);
        let has_room = self.shown.len() + 1 < most && self.sum_up_at.is_none();
        let is_urgent = matches!(news, DesktopNotice::Urgent(_)) && self.urgent.len() < URGENT_OPEN_MAX;
        if (has_room || is_urgent) && self.open.len() < OPEN_MAX {
            self.shown.push_back(Instant::now());
            return self.show(news, buttons && options.answer).await;
        }
        match news {
            DesktopNotice::Approval(_) | DesktopNotice::Urgent(_) => self.backlog.0 += 1,
            DesktopNotice::Task(..) => self.backlog.1 += 1,
        }
        let free_at = match self.shown.front() {
            Some(first) if self.shown.len() >= most => *first + MINUTE,
            _ => Instant::now() + GATHER,
        };
        self.sum_up_at.get_or_insert(free_at);
    }

    async fn sum_up(&mut self) {
        self.sum_up_at = None;
        let (approvals, tasks) = std::mem::take(&mut self.backlog);
        if self.service.has_buttons().await.is_none() {
            return;
        }
        self.shown.push_back(Instant::now());
        let body = format!("{approvals} more approvals asked for, {tasks} more tasks ended; see `provost`");
        let mut notice = Notification::new();
        notice.appname("provost").summary("Provost: more has happened").body(&body);
        self.handle.tracker.spawn(async move { drop(put_up(notice).await) });
    }

    async fn show(&mut self, news: DesktopNotice, buttons: bool) {
        match news {
            DesktopNotice::Task(task, status, reason) => {
                self.handle.tracker.spawn(task_ended(self.handle.clone(), task, status, reason));
            }
            DesktopNotice::Approval(approval) | DesktopNotice::Urgent(approval) => {
                let Ok(Some(parked)) = self.handle.engine.view(WaitingOne(approval)).await else { return };
                let close = CancellationToken::new();
                self.open.insert(approval, close.clone());
                let is_permission = matches!(parked.command, Command::AskPermission(_));
                if is_permission {
                    self.urgent.insert(approval);
                }
                let may_allow = !is_permission || self.parts.options.borrow().answer_permissions;
                let is_enrolled = self.handle.engine.view(AllPasskeys).await.is_ok_and(|it| it.enrolled);
                let asks_people = parked.by.iter().any(|by| match by {
                    Approver::Human => true,
                    Approver::PasskeyIfEnrolled => !is_enrolled,
                    _ => false,
                });
                let question = Question {
                    handle: self.handle.clone(),
                    person: self.parts.person.clone(),
                    parked,
                    buttons: buttons && asks_people,
                    may_allow,
                };
                self.handle.tracker.spawn(question.put(close));
            }
        }
    }
}

/// One approval that is shown on the desktop.
struct Question {
    handle: EngineHandle,
    person: Principal,
    parked: Arc<Parked>,
    buttons: bool,
    /// Whether one of the buttons approves.
    may_allow: bool,
}

/// Returns the notice of an approval.
fn approval(id: ApprovalId, verb: &str) -> DesktopNotice {
    match verb == PERMISSION {
        true => DesktopNotice::Urgent(id),
        false => DesktopNotice::Approval(id),
    }
}

impl Question {
    /// Shows the notice until the approval is answered anywhere, or the notice is closed.
    async fn put(self, close: CancellationToken) {
        let secret = uuid::Uuid::new_v4().simple().to_string();
        let (yes, no) = (format!("approve-{secret}"), format!("deny-{secret}"));
        let mut notice = Notification::new();
        notice.appname("provost").summary(&format!("Provost: approval {} is wanted", self.parked.id));
        notice.body(&facts(&self.parked)).urgency(Urgency::Normal).timeout(Timeout::Never);
        if self.buttons && self.may_allow {
            notice.action(&yes, "Approve");
        }
        if self.buttons {
            notice.action(&no, "Deny");
        }
        let Some(notification) = put_up(notice).await else { return };
        let notification = Arc::new(notification);
        loop {
            match first_response(&notification, &close).await {
                Some(NotificationResponse::Action(key)) if key == yes && self.may_allow => {
                    self.answer(Verdict::Granted).await;
                    break;
                }
                Some(NotificationResponse::Action(key)) if key == no => {
                    self.answer(Verdict::Denied).await;
                    break;
                }
                // The person has closed it, and can still answer elsewhere.
                Some(NotificationResponse::Closed(_)) => return,
                // A click beside the buttons, or a guess at their names.
                Some(_) => tokio::time::sleep(GUESS_PAUSE).await,
                None => break,
            }
        }
        // A notice of a service that hangs stays.
        let _late = timeout(BUS_TIME_MAX, notification.close_async()).await;
    }

    async fn answer(&self, verdict: Verdict) {
        let shown = Some(self.parked.shown);
        let verb = AnswerApproval { approval: self.parked.id, verdict, note: None, shown, signed: None };
        // The person has seen the notice close, and does not click a second time: the answer must not be lost.
        let ask = || self.handle.engine.submit_judged(&self.person, verb.clone(), Facts::default());
        match self.handle.persist(ask).await {
            Ok(Answer::Done(_)) => {
                tracing::info!(approval = %verb.approval, ?verdict, "answered on the desktop");
            }
            Ok(Answer::Parked(_) | Answer::Denied(_)) => {}
            Err(refusal) => tracing::warn!(approval = %verb.approval, %refusal, "a click came to nothing"),
        }
    }
}

/// Returns the person's first response to a notice; `None` when the daemon closes the notice, or no response can come.
async fn first_response(
    notification: &Arc<NotificationHandle>,
    close: &CancellationToken,
) -> Option<NotificationResponse> {
    let (clicked, click) = oneshot::channel();
    let listener = notification.clone();
    let listening = tokio::spawn(async move {
        let heard = |response: &NotificationResponse| {
            // The receiver may have stopped waiting.
            let _ = clicked.send(response.clone());
        };
        listener.wait_for_action_async(heard).await;
    });
    let response = tokio::select! {
        () = close.cancelled() => None,
        response = click => response.ok(),
    };
    listening.abort();
    response
}

/// Shows a notice; `None` when the service does not take it in time.
async fn put_up(notice: Notification) -> Option<NotificationHandle> {
    match timeout(BUS_TIME_MAX, notice.show_async()).await {
        Ok(Ok(notification)) => Some(notification),
        Ok(Err(err)) => {
            tracing::debug!(%err, "a notice was not shown");
            None
        }
        Err(_) => None,
    }
}

async fn task_ended(handle: EngineHandle, task: TaskId, status: Status, reason: Option<&'static str>) {
    let id = task.clone();
    let found = handle.engine.read(move |reader| reader.task(&id)).await.ok().flatten();
    let worker = found.as_ref().map_or("a worker", |it| it.order.worker.as_str());
    let reason = reason.map(|it| format!(", {it}")).unwrap_or_default();
    let mut body = format!("{} of {}{reason}", shown(task.as_str()), shown(worker));
    if let Some(task) = &found {
        body += &format!("\nIt was to: {}", shown(&task.order.goal));
    }
    let mut notice = Notification::new();
    notice.appname("provost").summary(&format!("Provost: a task {}", status.as_str())).body(&body);
    drop(put_up(notice).await);
}

/// Returns the text of a question: our words and the daemon's facts first, the asker's words last and quoted.
fn facts(parked: &Parked) -> String {
    let (who, rule, reason) = (parked.who.agent(), &parked.rule, &parked.reason);
    let what = match &parked.command {
        Command::Delegate(order) => format!("a task for {}", shown(order.worker.as_str())),
        Command::TakeScreenshot(_) => "a picture of the screen".to_owned(),
        Command::AskPermission(verb) => {
            format!("to use {} of its host {}", shown(&verb.tool), shown(&verb.host))
        }
        other => other.name().to_owned(),
    };
    let mut text = format!(
        "{} wants {what}\nRule {}: {}\nTool: {}",
        shown(who.as_str()),
        shown(rule.as_str()),
        shown(reason),
        shown(&parked.tool())
    );
    if let Command::AskPermission(verb) = &parked.command {
        let seconds = verb.wait.as_seconds();
        text += &format!("\nAllow: provost approve {} within {seconds} s; then its host asks.", parked.id);
        text += &format!("\nWith: «{}»", shown(&verb.arguments.value().to_string()));
    }
    if let Command::Delegate(order) = &parked.command {
        if let Some(command) = order.command() {
            text += &format!("\nInstead of its own program: «{}»", shown(&command.join(" ")));
        }
        text += &format!("\nIt says: «{}»", shown(&order.goal));
    }
    text
}

/// Returns a text from elsewhere on one line, cut, without hidden signs and without markup.
fn shown(text: &str) -> String {
    let in_line = |it: char| match it {
        '«' => '‹',
        '»' => '›',
        it if it.is_whitespace() => ' ',
        it => it,
    };
    let line = visible(&text.chars().map(in_line).collect::<String>());
    let cut = clip(&line, SHOWN_BYTES_MAX);
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("{}{more}", cut.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}
