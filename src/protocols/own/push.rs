//! Browsers that get notices through their push services.
//!
//! ```text
//!   begin (the daemon's key) -> the browser subscribes -> offer (checked, kept for minutes) -> a passkey signs -> notices
//! ```
//! The digest of the offer is signed and stays in the journal, since a browser's address is its secret. A process
//! without the person's passkey can make offers, but no browser gets notices by them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;

use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use super::operate::{ask_daemon, order};
use super::passkeys::check_name;
use super::pending::Kind;
use super::{DaemonCommand, Own};
use provost_api::{endpoints, wire};
use provost_base::limits::{PUSH_OFFER_MS_MAX, PUSH_OFFERS_MAX, PUSH_SUBSCRIPTIONS_MAX};
use provost_base::{ApprovalId, Digest, Json, Timestamp, visible};
use provost_domain::command::{AddPush, RemovePush, SnoozePush};
use provost_domain::view::{AllPush, OwedNotices};
use provost_domain::{Principal, PushSubscription, push_address};

/// The number of digits of an address's digest that identify a browser.
const ID_DIGITS: usize = 8;

/// The daemon's knowledge of notices to browsers.
#[derive(Clone, Default)]
pub struct PushTold {
    /// The reason why no browser can get notices, if so.
    pub problem: Option<String>,
    /// The last attempt at each browser, by its name as an address for notices.
    pub last: BTreeMap<String, wire::NoticeAttempt>,
}

/// Returns that knowledge.
pub type TellPush = Box<dyn Fn() -> PushTold + Send + Sync>;

/// The offers that wait for their signature.
#[derive(Default)]
pub(super) struct Offers(Mutex<VecDeque<(Digest, Instant, PushSubscription)>>);

impl Offers {
    /// Stores an offer; the oldest is dropped if there are too many.
    fn put(&self, digest: Digest, offered: PushSubscription) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(it, at, _)| *it != digest && is_good(*at));
        while open.len() >= PUSH_OFFERS_MAX {
            open.pop_front();
        }
        open.push_back((digest, Instant::now(), offered));
    }

    /// Returns the offer with this digest, and removes it.
    fn take(&self, digest: &str) -> Option<PushSubscription> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, at, _)| is_good(*at));
        let at = open.iter().position(|(it, ..)| it.to_string() == digest)?;
        open.remove(at).map(|(.., offered)| offered)
    }
}

fn is_good(at: Instant) -> bool {
    at.elapsed() < Duration::from_millis(PUSH_OFFER_MS_MAX)
}

impl Own {
    async fn browsers(&self) -> Answered<Vec<Arc<PushSubscription>>> {
        let mut all = self.0.provost.view(AllPush).await.map_err(map::fault)?;
        all.sort_by_key(|it| it.added_at);
        Ok(all)
    }

    /// Returns the browser with this id, or with this name if only one browser has it.
    async fn browser(&self, named: &str) -> Answered<Arc<PushSubscription>> {
        let all = self.browsers().await?;
        if let Some(found) = all.iter().find(|it| *it.id == *named) {
            return Ok(found.clone());
        }
        let mut found = all.iter().filter(|it| *it.name == *named);
        match (found.next(), found.next()) {
            (Some(it), None) => Ok(it.clone()),
            (Some(_), Some(_)) => Err(OwnError::invalid("id: several browsers have this name; say the id")
                .hint("provost push list")),
            (None, _) => {
                let why = "no browser with this id or name gets messages";
                Err(OwnError::new(StatusCode::NOT_FOUND, "no_browser", why).hint("provost push list"))
            }
        }
    }

    /// Returns the daemon's public key for push services.
    async fn push_key(&self) -> Answered<String> {
        Ok(ask_daemon(self, DaemonCommand::PushKey).await?.message)
    }

    /// Subscribes the browser of an offer, for the person whose passkey has signed for it.
    pub(super) async fn subscribe_push(&self, who: &Principal, it: wire::SubscribePush) -> Answered<()> {
        let offered = self.0.offers.take(&it.offer).ok_or_else(|| {
            let why =
                "this offer was used, is older than five minutes, or was made before the daemon's start";
            OwnError::new(StatusCode::GONE, "offer_gone", why).hint("press the button again")
        })?;
        let subscription = PushSubscription { name: it.name.into(), ..offered };
        let (name, host) = (subscription.name.clone(), subscription.host().to_owned());
        self.submit(who, AddPush { subscription }).await?;
        tracing::warn!(%name, host, "a browser is told from now on; not you? provost push list");
        Ok(())
    }
}

impl Handles<endpoints::Push> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<wire::Push> {
        let PushTold { problem, last } = (self.0.push)();
        let owed = self.0.provost.view(OwedNotices).await.map_err(map::fault)?;
        let row = |it: &Arc<PushSubscription>| {
            let address = push_address(&it.id);
            let owed = owed.iter().find(|it| it.to == address);
            wire::PushBrowser {
                id: it.id.to_string(),
                name: visible(&it.name),
                host: visible(it.host()),
                origin: it.origin.to_string(),
                added_at: it.added_at.rfc3339(),
                owed: owed.map_or(0, |it| it.count),
                owed_since: owed.map(|it| it.since.rfc3339()),
                last: last.get(&*address).cloned(),
            }
        };
        let browsers = self.browsers().await?.iter().map(row).collect();
        Ok(wire::Push { browsers, most: PUSH_SUBSCRIPTIONS_MAX, problem })
    }
}

impl Handles<endpoints::BeginPush> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::PushKey> {
        self.0.pending.count((call.process, None), Kind::Challenge)?;
        Ok(wire::PushKey { key: self.push_key().await? })
    }
}

impl Handles<endpoints::OfferPush> for Own {
    async fn handle(&self, call: &Call, body: wire::OfferPush) -> Answered<wire::PushOffered> {
        self.0.pending.count((call.process, None), Kind::Challenge)?;
        if !self.pages().iter().any(|it| it.origin == body.origin) {
            return Err(OwnError::invalid("origin: no page of this daemon is there"));
        }
        let keys = (body.p256dh.as_str().into(), body.auth.as_str().into());
        let check = DaemonCommand::CheckPush { endpoint: body.endpoint.as_str().into(), keys };
        ask_daemon(self, check).await?;
        if self.push_key().await? != body.key {
            let why = "the browser was subscribed with another key than the daemon's present one";
            return Err(OwnError::new(StatusCode::CONFLICT, "other_key", why).hint("press the button again"));
        }
        let text = Json::from_value(&serde_json::json!({
            "auth": body.auth, "endpoint": body.endpoint, "key": body.key, "origin": body.origin, "p256dh": body.p256dh,
        }));
        let digest = Digest::of(text.as_str().as_bytes());
        let id: String = Digest::of(body.endpoint.as_bytes()).to_string().chars().take(ID_DIGITS).collect();
        let offered = PushSubscription {
            id: id.into(),
            name: Box::default(),
            endpoint: body.endpoint.into(),
            p256dh: body.p256dh.into(),
            auth: body.auth.into(),
            origin: body.origin.into(),
            server_key: body.key.into(),
            added_at: Timestamp::default(),
        };
        self.0.offers.put(digest, offered);
        Ok(wire::PushOffered { offer: digest.to_string(), good_ms: PUSH_OFFER_MS_MAX })
    }
}

impl Handles<endpoints::RemovePush> for Own {
    async fn handle(&self, call: &Call, body: wire::RemovePush) -> Answered<wire::PushGone> {
        if !call.who.is_person() {
            let why = "only a person ends it, in a terminal that is not below an agent, or with a passkey";
            return Err(OwnError::new(StatusCode::FORBIDDEN, "out_of_scope", why)
                .hint("do it in a terminal of your own, or on the page"));
        }
        let found = self.browser(&body.id).await?;
        let verb = RemovePush { id: found.id.clone(), why: "a person has removed it".into() };
        self.submit(&call.who, verb).await?;
        Ok(wire::PushGone { id: found.id.to_string(), name: visible(&found.name) })
    }
}

impl Handles<endpoints::SnoozePush> for Own {
    async fn handle(&self, call: &Call, body: wire::SnoozePush) -> Answered<wire::PushSnoozed> {
        self.0.pending.count((call.process, None), Kind::Challenge)?;
        // Digests are compared, so that the duration reveals nothing about an address.
        let named = Digest::of(body.endpoint.as_bytes());
        let all = self.browsers().await?;
        let found = all.iter().find(|it| Digest::of(it.endpoint.as_bytes()) == named).ok_or_else(|| {
            OwnError::new(StatusCode::NOT_FOUND, "no_browser", "no browser with this address is told")
        })?;
        let verb = SnoozePush { id: found.id.clone(), approval: ApprovalId(body.approval) };
        let done = self.submit(self.0.provost.system(), verb).await?;
        Ok(wire::PushSnoozed { until: done.until.rfc3339() })
    }
}

impl Handles<endpoints::TestPush> for Own {
    async fn handle(&self, call: &Call, body: wire::TestPush) -> Answered<wire::PushTested> {
        let found = self.browser(&body.id).await?;
        let done = order(self, &call.who, DaemonCommand::TestNotice(found.address().into())).await?;
        Ok(wire::PushTested { id: found.id.to_string(), name: visible(&found.name), says: done.message })
    }
}

/// Checks the arguments for the signature of an offer.
pub(super) fn check(it: &wire::SubscribePush) -> Answered<()> {
    check_name(&it.name)
}
