//! Carries out the effect `SendNotice`: notices to addresses elsewhere.
//!
//! ```text
//!   [owed] --its turn--> sent --2xx--> settled
//!     ^                    |  \--410, or three days over--> given up, which the journal tells
//!     +------ a wait ------+---- no answer, 429, 5xx: all of the address wait; another status: this one waits
//! ```
//! Each address has a task of its own, which has one connection at a time: an address that is slow, or dead, delays only
//! itself. The store keeps the notices that are owed, so that a daemon that was killed sends them after its next start, under the same
//! ids. Waits begin again then. An answer only decides whether a notice is still owed: no answer approves anything.

mod chat;
mod notice_text;
mod ntfy;
mod push;
mod queue;
mod webhook;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::desktop_options::PageAddress;
use super::engine_handle::{EngineHandle, now};
use notice_text::NoticeText;
use provost_base::limits::{NOTICE_KEPT_MS, NOTICE_WAITS_MS};
use provost_base::{EffectId, Json, Secret, Timestamp, WebAddress, clipped};
use provost_domain::command::{Record, RemovePush};
use provost_domain::view::{OnePush, OwedNotice, OwedNoticeOut};
use provost_domain::{NoticeAbout, NoticeKind, OutgoingNotice, PushSubscription, push_id};
use provost_egress::{Outward, OutwardAnswer, post, system_resolver};
use provost_vault::{Delivery, Vault};
pub use push::{Agreed, NO_SUBJECT, PushSending, Recipient, ServerKey, seal, seal_with};
use push::{Unsent, send};
use queue::Queue;
pub use webhook::signatures as webhook_signatures;

/// The kind of service behind an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoticeService {
    /// A program that takes Standard Webhooks.
    Webhook,
    /// ntfy.
    Ntfy,
    /// An incoming webhook of Slack.
    Slack,
    /// A webhook of Discord.
    Discord,
    /// An incoming webhook of Mattermost.
    Mattermost,
}

/// The place where an address is written.
#[derive(Clone)]
pub enum NoticeUrl {
    /// In the configuration, as text.
    Written(WebAddress),
    /// In the secret with this name.
    Secret(String),
}

/// An address that gets notices, as the configuration has it.
#[derive(Clone)]
pub struct NoticeAddress {
    /// The kind of service.
    pub service: NoticeService,
    /// The URL, or where it is written.
    pub url: NoticeUrl,
    /// The IP address to connect to instead of the one that the name resolves to.
    pub at: Option<IpAddr>,
    /// The authority that issued the certificate, as PEM, if it is not a public one.
    pub authority: Option<String>,
    /// Names of secrets: signing keys, the newest first, or one token that is sent.
    pub keys: Vec<String>,
    /// The base of links, without a slash at the end; `None` for the page of this daemon, if it is open.
    pub link: Option<String>,
}

/// Notices, as the configuration has them.
#[derive(Clone, Default)]
pub struct NoticeSettings {
    /// The addresses by name.
    pub addresses: BTreeMap<Box<str>, Arc<NoticeAddress>>,
    /// Messages to browsers.
    pub push: PushSending,
    /// The name of the repository, for people.
    pub repository: Box<str>,
}

/// The parts of the daemon that notices need.
pub struct NoticeParts {
    /// The settings, as the configuration has them now.
    pub settings: watch::Receiver<Arc<NoticeSettings>>,
    /// The store of the keys.
    pub vault: Vault,
    /// The address of the page, without a slash at the end, where it is open.
    pub page: PageAddress,
}

/// The outcome of the last attempt at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The time of the attempt.
    pub at: Timestamp,
    /// Whether a notice was delivered.
    pub delivered: bool,
    /// The address's answer in words, or why there was none.
    pub says: String,
}

/// All addresses. Clones share everything.
#[derive(Clone)]
pub struct Notices(Arc<Inner>);

struct Inner {
    handle: EngineHandle,
    parts: NoticeParts,
    ways: Mutex<HashMap<Box<str>, mpsc::UnboundedSender<EffectId>>>,
    last: Mutex<BTreeMap<Box<str>, Attempt>>,
}

/// The destination of a notice.
enum Target {
    /// To an address of the configuration.
    Address(Arc<NoticeAddress>),
    /// To a browser.
    Browser(Arc<PushSubscription>),
}

impl Target {
    /// Checks whether the target is a program, which also gets notices about past events.
    fn is_program(&self) -> bool {
        matches!(self, Target::Address(it) if it.service == NoticeService::Webhook)
    }
}

/// The outcome of one attempt.
enum Tried {
    /// The target has taken the notice.
    Delivered,
    /// The address wants no more notices, or the browser is gone.
    Gone,
    /// The address takes nothing now; it may say for how long.
    Down(Option<Duration>),
    /// The address does not take this notice now.
    Refused,
}

impl Notices {
    pub(super) fn new(handle: EngineHandle, parts: NoticeParts) -> Self {
        Self(Arc::new(Inner { handle, parts, ways: Mutex::default(), last: Mutex::default() }))
    }

    /// Queues a notice that is owed.
    pub(super) fn send(&self, effect: EffectId, to: &str) {
        let mut ways = lock(&self.0.ways);
        if let Some(way) = ways.get(to) {
            // The receiving task ends only when the daemon stops; then the notice stays owed.
            let _stopping = way.send(effect);
            return;
        }
        let (way, owed) = mpsc::unbounded_channel();
        let _first = way.send(effect);
        ways.insert(to.into(), way);
        self.0.handle.tracker.spawn(self.clone().serve(to.into(), owed));
    }

    /// Returns the outcome of the last attempt at each address since the daemon's start.
    pub fn last(&self) -> BTreeMap<Box<str>, Attempt> {
        lock(&self.0.last).clone()
    }

    /// Sends a sample to an address now, and returns its answer in words.
    ///
    /// # Errors
    /// The reason why the sample was not delivered, in words.
    pub async fn try_out(&self, name: &str) -> Result<String, String> {
        let target = self.target(name).await.ok_or_else(|| match push_id(name) {
            None => {
                format!(
                    "there is no address `{name}` in force: see `provost notify list` and [notify.{name}]"
                )
            }
            Some(id) => format!("there is no browser `{id}`: see `provost push list`"),
        })?;
        let at = self.0.handle.engine.now();
        let notice = OutgoingNotice {
            to: name.into(),
            kind: NoticeKind::Approval,
            event: Default::default(),
            at,
            about: NoticeAbout::Sample,
            words: Vec::new(),
            not_before: None,
        };
        let head = self.0.handle.engine.journal_head().await.map_err(|err| err.to_string())?;
        let notice = OutgoingNotice { event: head.seq, ..notice };
        let id = format!("sample_{}", uuid::Uuid::new_v4().simple());
        let (tried, says) = self.attempt(&target, (&notice, 0), &id).await;
        let delivered = matches!(tried, Tried::Delivered);
        self.note(name, delivered, &says);
        if delivered { Ok(says) } else { Err(says) }
    }

    /// Returns the public key that browsers subscribe with. Makes one if there is none.
    ///
    /// # Errors
    /// The reason why there is no key, in words.
    pub async fn push_key(&self) -> Result<String, String> {
        // This check comes before a browser is asked for anything: without a subject, no push service would take a message.
        self.0.parts.settings.borrow().push.subject.clone()?;
        let vault = self.0.parts.vault.clone();
        let made = tokio::task::spawn_blocking(move || ServerKey::made_in(&vault)).await;
        Ok(made.map_err(|_| "its key could not be read".to_owned())??.public())
    }

    /// Checks the parts of a browser's subscription: the address for its messages, and its keys.
    ///
    /// # Errors
    /// The reason why the browser cannot get messages, in words.
    pub fn check_push(&self, endpoint: &str, p256dh: &str, auth: &str) -> Result<(), String> {
        self.0.parts.settings.borrow().push.check(endpoint)?;
        Recipient::read(p256dh, auth).map(drop)
    }

    /// Returns the reason why no browser can get messages; `None` if browsers can.
    pub fn push_trouble(&self) -> Option<String> {
        let settings = self.0.parts.settings.borrow();
        settings.push.subject.as_ref().err().or(settings.push.authority.as_ref().err()).cloned()
    }

    async fn target(&self, name: &str) -> Option<Target> {
        let Some(id) = push_id(name) else {
            return self.0.parts.settings.borrow().addresses.get(name).cloned().map(Target::Address);
        };
        let known = self.0.handle.look_at(OnePush(id.into())).await.ok()?;
        known.map(Target::Browser)
    }

    /// Serves one address until the daemon stops.
    async fn serve(self, name: Box<str>, mut owed: mpsc::UnboundedReceiver<EffectId>) {
        let shutdown = self.0.handle.shutdown.clone();
        let mut settings = self.0.parts.settings.clone();
        let mut queue = Queue::default();
        loop {
            let due = queue.due();
            let turn = async move {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                next = owed.recv() => match next {
                    Some(effect) => queue.add(effect, Instant::now()),
                    None => return,
                },
                // An address whose entry was corrected is tried at once.
                Ok(()) = settings.changed() => queue.begin_again(Instant::now()),
                () = turn => tokio::select! {
                    biased;
                    // The attempt may break off in the middle: the notice stays owed, under its id.
                    () = shutdown.cancelled() => return,
                    () = self.take_turn(&name, &mut queue) => {}
                },
            }
        }
    }

    async fn take_turn(&self, name: &str, queue: &mut Queue) {
        let Some(effect) = queue.next(Instant::now()) else { return };
        // If the daemon stops, the core cannot say whether the notice is owed: then it stays so.
        let Ok(found) = self.0.handle.look_at(OwedNotice(effect)).await else {
            return queue.put_off(effect, Instant::now());
        };
        let Some(found) = found else { return queue.remove(effect) };
        let Some(target) = self.target(name).await else {
            return self
                .give_up(queue, effect, &found, "the address is not in the configuration any more")
                .await;
        };
        if queue.is_gone() {
            return self.give_up(queue, effect, &found, GONE).await;
        }
        if self.0.handle.engine.now().since_ms(found.notice.at) > NOTICE_KEPT_MS {
            return self.give_up(queue, effect, &found, "it could not be delivered for three days").await;
        }
        if found.is_past && !target.is_program() {
            // No person is called to a question that does not wait any more.
            return self.settle(queue, effect).await;
        }
        let early_ms = found.notice.not_before.map_or(0, |it| it.since_ms(self.0.handle.engine.now()));
        if early_ms > 0 {
            return queue.put_off_for(effect, Instant::now() + Duration::from_millis(early_ms));
        }
        let id = format!("evt_{}_{}", found.daemon, found.notice.event);
        let (tried, says) = self.attempt(&target, (&found.notice, found.waiting), &id).await;
        self.note(name, matches!(tried, Tried::Delivered), &says);
        let now = Instant::now();
        match tried {
            Tried::Delivered => {
                queue.answers();
                self.settle(queue, effect).await;
            }
            Tried::Gone => self.gone(queue, &target, name, says).await,
            Tried::Down(wait) => {
                tracing::warn!(address = name, effect = %effect, "a notice was not delivered: {says}");
                queue.is_down(effect, wait, now);
            }
            Tried::Refused => {
                tracing::warn!(address = name, effect = %effect, "a notice was not taken: {says}");
                queue.answers();
                queue.put_off(effect, now);
            }
        }
    }

    /// Ends an address that wants no more notices; a browser is forgotten, with all notices for it.
    async fn gone(&self, queue: &mut Queue, target: &Target, name: &str, says: String) {
        match target {
            Target::Address(_) => {
                tracing::warn!(
                    address = name,
                    "{says}; it gets no more notices until the configuration is read again"
                );
                queue.is_gone_now(Instant::now());
            }
            Target::Browser(browser) => {
                tracing::warn!(address = name, "{says}; it gets no more notices");
                let verb = RemovePush { id: browser.id.clone(), why: says.into() };
                // A person may have removed the browser in the meantime.
                let _removed = self.0.handle.tell(verb).await;
                queue.begin_again(Instant::now());
            }
        }
    }

    async fn settle(&self, queue: &mut Queue, effect: EffectId) {
        self.0.handle.settle(effect).await;
        queue.remove(effect);
    }

    async fn give_up(&self, queue: &mut Queue, effect: EffectId, found: &OwedNoticeOut, why: &str) {
        let details = json!({ "effect": effect, "kind": found.notice.kind, "why": why });
        let (what, subject) = ("notice.given_up".into(), found.notice.to.clone());
        let record = Record { what, subject, details: Json::from_value(&details) };
        let _busy = self.0.handle.tell(record).await;
        self.settle(queue, effect).await;
    }

    fn note(&self, name: &str, delivered: bool, says: &str) {
        let attempt = Attempt { at: now(), delivered, says: says.to_owned() };
        lock(&self.0.last).insert(name.into(), attempt);
    }

    /// Sends a notice once, and returns the outcome, also in words.
    async fn attempt(
        &self,
        target: &Target,
        (notice, waiting): (&OutgoingNotice, usize),
        id: &str,
    ) -> (Tried, String) {
        let settings = self.0.parts.settings.borrow().clone();
        match target {
            Target::Address(it) => {
                judged(Some(it.service), self.request(it, &settings.repository, notice, id).await)
            }
            Target::Browser(it) => {
                let now = self.0.handle.engine.now();
                match send(it, &settings.push, &self.0.parts.vault, (notice, waiting, now)).await {
                    Ok(answer) => judged(None, Ok(answer)),
                    Err(Unsent::Later(why)) => judged(None, Err(why)),
                    Err(Unsent::Never(why)) => (Tried::Gone, why.to_owned()),
                }
            }
        }
    }

    /// Makes the request for an address, and sends it.
    async fn request(
        &self,
        address: &Arc<NoticeAddress>,
        repository: &str,
        notice: &OutgoingNotice,
        id: &str,
    ) -> Result<OutwardAnswer, String> {
        let base = address.link.clone().or_else(|| (self.0.parts.page)());
        let told = NoticeText::of(notice, repository, base.as_deref());
        let (vault, from) = (self.0.parts.vault.clone(), address.clone());
        let read = tokio::task::spawn_blocking(move || secrets(&vault, &from)).await;
        let (to, keys) = read.map_err(|_| "its secrets could not be read".to_owned())??;
        let (headers, body) = match address.service {
            NoticeService::Webhook => webhook::request(notice, &told, (id, now()), &keys)?,
            NoticeService::Ntfy => ntfy::request(notice, &told, keys.first()),
            NoticeService::Slack => chat::slack(&told),
            NoticeService::Discord => chat::discord(&told),
            NoticeService::Mattermost => chat::mattermost(&told),
        };
        let headers = headers.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let outward = Outward { to, at: address.at, authority: address.authority.clone(), headers, body };
        post(outward, system_resolver()).await
    }
}

/// The reason for giving up the notices of an address.
const GONE: &str = "the address has answered 410: it wants no more notices";

/// The headers and the body.
type Request = (Vec<(&'static str, String)>, Vec<u8>);

/// Returns the URL of the address, and its keys. Blocks.
fn secrets(vault: &Vault, address: &NoticeAddress) -> Result<(WebAddress, Vec<Secret>), String> {
    let get = |name: &String| {
        let found = vault.get(name).map_err(|why| why.to_string())?;
        match found.delivery {
            Delivery::Daemon => Ok(found.value),
            _ => Err(format!(
                "the secret `{name}` is for workers; store one for notices: provost secret add NAME --daemon"
            )),
        }
    };
    let to = match &address.url {
        NoticeUrl::Written(url) => url.clone(),
        NoticeUrl::Secret(name) => {
            let value = get(name)?;
            let text = std::str::from_utf8(value.expose()).unwrap_or_default().trim();
            WebAddress::parse(text).map_err(|why| format!("the address in the secret `{name}` {why}"))?
        }
    };
    Ok((to, address.keys.iter().map(get).collect::<Result<_, String>>()?))
}

/// Returns the meaning of an answer, also in words. `service` is `None` for a browser.
fn judged(service: Option<NoticeService>, answer: Result<OutwardAnswer, String>) -> (Tried, String) {
    let OutwardAnswer { status, retry_after_s, text } = match answer {
        Ok(answer) => answer,
        Err(why) => return (Tried::Down(None), why),
    };
    let said = match text.is_empty() {
        true => String::new(),
        false => format!(": {}", clipped(&text.replace(['\n', '\t'], " "), SAID_BYTES_MAX)),
    };
    let most = NOTICE_WAITS_MS.last().copied().unwrap_or_default();
    let wait = retry_after_s.map(|it| Duration::from_millis(it.saturating_mul(1_000).min(most)));
    match status {
        200..=299 => (Tried::Delivered, format!("it has taken the notice (status {status}{said})")),
        404 | 410 if service.is_none() => {
            (Tried::Gone, format!("its push service knows this browser no more (status {status}{said})"))
        }
        410 => (Tried::Gone, format!("it wants no more notices (status 410{said})")),
        300..=399 => {
            let hint = "provost follows no redirect; write the address that it leads to";
            (Tried::Refused, format!("it leads elsewhere (status {status}); {hint}"))
        }
        429 => (Tried::Down(wait), format!("it wants fewer notices at a time (status 429{said})")),
        500.. => (Tried::Down(wait), format!("it is out of order (status {status}{said})")),
        401 | 403 if service.is_none() => {
            let hint =
                "does `subject` in [push] name a mail address or page of yours, and is the clock right?";
            (Tried::Refused, format!("it does not take the notice (status {status}{said}); {hint}"))
        }
        400 | 401 | 403 if service == Some(NoticeService::Webhook) => {
            let hint = "is the key the one that it knows, and its clock right?";
            (Tried::Refused, format!("it does not take the notice (status {status}{said}); {hint}"))
        }
        _ => (Tried::Refused, format!("it does not take the notice (status {status}{said})")),
    }
}

/// How much of an answer is quoted, in bytes.
const SAID_BYTES_MAX: usize = 300;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Inserting leaves a map valid at every moment.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
