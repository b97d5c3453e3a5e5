//! Tells hosts that a resource has changed. It reads the daemon's log, so that no change is lost while no host is
//! connected.

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

/// How long a request for new events waits.
const WAIT_MS: u64 = 30_000;

/// The pause before a daemon that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The resources whose changes a host of the older era wants to be told, while it is connected.
#[derive(Clone, Default)]
pub(super) struct Wanted(Arc<Mutex<Option<BTreeSet<ResourceUri>>>>);

impl Wanted {
    /// Adds a resource; the first one starts the notices.
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

    /// Adds a resource; returns whether it is the first.
    fn insert(&self, place: ResourceUri) -> Result<bool, ErrorData> {
        let mut wanted = self.places();
        let is_first = wanted.is_none();
        let places = wanted.get_or_insert_default();
        if places.len() >= MCP_SUBSCRIPTIONS_MAX && !places.contains(&place) {
            let most = format!("a host can subscribe to {MCP_SUBSCRIPTIONS_MAX} resources; unsubscribe one");
            return Err(ErrorData::invalid_params(most, None));
        }
        places.insert(place);
        Ok(is_first)
    }

    /// Removes a resource.
    pub(super) fn remove(&self, place: &ResourceUri) {
        if let Some(places) = self.places().as_mut() {
            places.remove(place);
        }
    }

    fn places(&self) -> MutexGuard<'_, Option<BTreeSet<ResourceUri>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends notices until the host has gone.
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
                // This era has no message for an end; the host's next request is refused with the reason.
                if let Over::Refused(error) = over {
                    tracing::warn!(%error, "a host gets no more notices");
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

/// The reason why a host gets no further notice.
pub(super) enum Over {
    /// The host has gone, or does not read its notices.
    Gone,
    /// The daemon no longer admits the host: its token has ended, or its name now belongs to another agent.
    Refused(ClientError),
}

impl Over {
    /// Encodes this as the answer to the request that subscribed.
    pub(super) fn answered(self) -> Result<(), ErrorData> {
        match self {
            Self::Gone => Ok(()),
            Self::Refused(error) => {
                Err(ErrorData::invalid_request(format!("the subscription has ended: {error}"), None))
            }
        }
    }
}

/// Returns whether the daemon refuses the caller itself, and not only this request.
pub(super) fn is_turned_away(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: 401 | 403, .. })
}

/// Returns the part of a subscription of a host of the newer era that names existing resources.
pub(super) fn accepted(wanted: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = wanted.resource_subscriptions.iter().flatten();
    let uris = uris.filter(|uri| names_a_place(uri)).take(MCP_SUBSCRIPTIONS_MAX);
    SubscriptionFilter::builder().resource_subscriptions(uris).build()
}

/// Returns whether an address names a resource, for any caller.
fn names_a_place(uri: &str) -> bool {
    let inbox = uri.strip_prefix("provost://inbox/").and_then(|agent| AgentId::parse(agent).ok());
    ResourceUri::of(uri, inbox.as_ref()).is_some()
}

/// Tells a host of the newer era about changes, until it cancels or has gone.
pub(super) async fn listen(client: &Client, subscription: &SubscriptionContext) -> Result<(), ErrorData> {
    let sink = subscription.sink();
    let tell = async |place: ResourceUri| sink.notify_resource_updated(place.to_string()).await.is_ok();
    tokio::select! {
        over = tell_of(client, subscription.accepted(), tell) => over.answered(),
        () = subscription.cancelled() => Ok(()),
    }
}

/// Tells about changes of the accepted resources, until the host has gone.
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
    // Changes between the answer to the host and this moment are in no later event.
    for place in &places {
        if !tell(place.clone()).await {
            return Over::Gone;
        }
    }
    follow(client, from, || places.clone(), tell).await
}

/// Returns the number of the newest event in the log.
async fn newest(client: &Client) -> Result<u64, ClientError> {
    let query = wire::EventsQuery { limit: Some(0), ..wire::EventsQuery::default() };
    Ok(client.events(&query).await?.next)
}

/// Tells about each resource that has changed since `from`, until the host has gone or is no longer admitted.
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
                // When the daemon comes back, it continues with the same log.
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

/// Returns whether an event concerns a resource.
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
        // The event names the receiver of a message in various members, so every agent is told. An agent that is
        // told too often only reads its inbox once more.
        ResourceUri::Inbox(agent) => {
            name == "published"
                || (name == "mail_queued" && about["to"] == agent.as_str())
                || name == "stakes_met"
        }
    }
}
