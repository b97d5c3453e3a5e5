//! Tells hosts that a resource has changed. It reads the daemon's log, so that no change is lost
//! while no host listens.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use serde_json::Value;

use super::resources::ResourceUri;
use provost_api::wire;
use provost_base::AgentId;
use provost_base::limits::MCP_SUBSCRIPTIONS_MAX;
use provost_client::{Client, ClientError};

/// How long one question for news waits.
const WAIT_MS: u64 = 30_000;

/// How long to wait for a daemon that does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// What one host of the older era wants to be told of, for as long as it is there.
#[derive(Clone, Default)]
pub(super) struct Wanted(Arc<Mutex<Option<BTreeSet<ResourceUri>>>>);

impl Wanted {
    /// Wants one more; the first begins to listen.
    pub(super) async fn add(
        &self,
        place: ResourceUri,
        client: Client,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        // From here on no change is missed: the host gets those that happen after this answer.
        let from = newest(&client).await.map_err(unavailable)?;
        if self.insert(place)? {
            tokio::spawn(self.clone().tell(client, from, peer));
        }
        Ok(())
    }

    /// Whether this is the first.
    fn insert(&self, place: ResourceUri) -> Result<bool, ErrorData> {
        let mut wanted = self.places();
        let is_first = wanted.is_none();
        let places = wanted.get_or_insert_default();
        if places.len() >= MCP_SUBSCRIPTIONS_MAX && !places.contains(&place) {
            let most = format!("one host is told of {MCP_SUBSCRIPTIONS_MAX} resources; unsubscribe one");
            return Err(ErrorData::invalid_params(most, None));
        }
        places.insert(place);
        Ok(is_first)
    }

    /// Does not want it any more.
    pub(super) fn remove(&self, place: &ResourceUri) {
        if let Some(places) = self.places().as_mut() {
            places.remove(place);
        }
    }

    fn places(&self) -> MutexGuard<'_, Option<BTreeSet<ResourceUri>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the host has gone.
    async fn tell(self, client: Client, from: u64, peer: Peer<RoleServer>) {
        let tell = async |place: ResourceUri| {
            let changed = ResourceUpdatedNotificationParam::new(place.to_string());
            peer.notify_resource_updated(changed).await.is_ok()
        };
        let gone = async {
            while !peer.is_transport_closed() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            over = follow(&client, from, || self.places().clone().unwrap_or_default(), tell) => {
                // This era has no word for an end; whatever the host asks next is refused with the reason.
                if let Over::Refused(error) = over {
                    tracing::warn!(%error, "a host is told of nothing more");
                    *self.places() = None;
                }
            }
            () = gone => {}
        }
    }
}

fn unavailable(err: ClientError) -> ErrorData {
    ErrorData::internal_error(err.to_string(), None)
}

/// Why a host gets no further notice.
pub(super) enum Over {
    /// The host has gone, or does not read what it is sent.
    Gone,
    /// The daemon lets it in no longer: its token has ended, or its name belongs to another agent by now.
    Refused(ClientError),
}

impl Over {
    /// In the protocol's words, as the answer to the request that has asked to be told.
    pub(super) fn answered(self) -> Result<(), ErrorData> {
        match self {
            Self::Gone => Ok(()),
            Self::Refused(error) => {
                Err(ErrorData::invalid_request(format!("the subscription has ended: {error}"), None))
            }
        }
    }
}

/// Whether a caller is turned away, as whom it speaks, and not only this question.
pub(super) fn is_turned_away(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: 401 | 403, .. })
}

/// The part of what a host of the newer era wants to be told of that there is.
pub(super) fn accepted(wanted: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = wanted.resource_subscriptions.iter().flatten();
    let uris = uris.filter(|uri| names_a_place(uri)).take(MCP_SUBSCRIPTIONS_MAX);
    SubscriptionFilter::builder().resource_subscriptions(uris).build()
}

/// Whether an address names a resource at all, for any caller.
fn names_a_place(uri: &str) -> bool {
    let inbox = uri.strip_prefix("provost://inbox/").and_then(|agent| AgentId::parse(agent).ok());
    ResourceUri::of(uri, inbox.as_ref()).is_some()
}

/// Tells a host of the newer era, until it has enough or has gone.
pub(super) async fn listen(client: &Client, subscription: &SubscriptionContext) -> Result<(), ErrorData> {
    let sink = subscription.sink();
    let tell = async |place: ResourceUri| sink.notify_resource_updated(place.to_string()).await.is_ok();
    tokio::select! {
        over = tell_of(client, subscription.accepted(), tell) => over.answered(),
        () = subscription.cancelled() => Ok(()),
    }
}

/// Tells of the resources that were agreed on, until the host has gone.
pub(super) async fn tell_of<Telling: Future<Output = bool>>(
    client: &Client,
    accepted: &SubscriptionFilter,
    tell: impl Fn(ResourceUri) -> Telling,
) -> Over {
    let uris = accepted.resource_subscriptions.iter().flatten();
    let places: BTreeSet<ResourceUri> = uris.filter_map(|uri| ResourceUri::of(uri, client.agent())).collect();
    let from = loop {
        match newest(client).await {
            Ok(from) => break from,
            Err(error) if is_turned_away(&error) => return Over::Refused(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    };
    // What has changed since the host was told that it is listened to for it, and before this, is in no news.
    for place in &places {
        if !tell(place.clone()).await {
            return Over::Gone;
        }
    }
    follow(client, from, || places.clone(), tell).await
}

/// The number of the newest event in the log.
async fn newest(client: &Client) -> Result<u64, ClientError> {
    let query = wire::EventsQuery { limit: Some(0), ..wire::EventsQuery::default() };
    Ok(client.events(&query).await?.next)
}

/// Tells of each place that has changed since `from`, until the host has gone or is not let in any more.
async fn follow<Telling: Future<Output = bool>>(
    client: &Client,
    mut from: u64,
    wanted: impl Fn() -> BTreeSet<ResourceUri>,
    tell: impl Fn(ResourceUri) -> Telling,
) -> Over {
    loop {
        let query = wire::EventsQuery { after: Some(from), wait_ms: Some(WAIT_MS), limit: None };
        let news = match client.events(&query).await {
            Ok(news) => news,
            Err(error) if is_turned_away(&error) => return Over::Refused(error),
            Err(_) => {
                // A daemon that comes back goes on with the same log.
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        from = news.next;
        for place in wanted() {
            let changed = news.events.iter().any(|event| concerns(event, &place));
            if changed && !tell(place).await {
                return Over::Gone;
            }
        }
    }
}

/// Whether an entry of the log is about a place.
fn concerns(event: &Value, place: &ResourceUri) -> bool {
    let kind = &event["kind"];
    let entry = kind.as_object().and_then(|it| it.iter().next());
    let (name, about) = match entry {
        Some((name, about)) => (name.as_str(), about),
        None => (kind.as_str().unwrap_or_default(), &Value::Null),
    };
    match place {
        ResourceUri::Tasks => name.starts_with("task_") || !about["task"].is_null(),
        ResourceUri::Task(id) => about["task"] == id.as_str(),
        ResourceUri::Approvals => name.starts_with("approval_") || name == "grant_failed",
        ResourceUri::Locks => name.starts_with("lock_"),
        // The event names the recipient of a message in different members, so every agent is told. An agent
        // that is told too often only looks once more.
        ResourceUri::Inbox(agent) => {
            name == "published"
                || (name == "mail_queued" && about["to"] == agent.as_str())
                || name == "stakes_met"
        }
    }
}
