//! Follows the daemon of a repository: live while its stream of events is open.
//!
//! A daemon that has gone is not polled: when it comes back it writes its entry in the user's list, and the page is
//! told of that. A daemon that runs and does not answer is asked once, and the page waits for that answer.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::known::{Hub, Repo};
use super::log::{Change, HubMessage};
use crate::stream::without_content;
use provost_api::wire::{self, OWN_PAGE_ONLY};
use provost_base::limits::{DAEMON_ASKED_MS, HUB_AGE_EVERY_S, HUB_VIEW_MS};
use provost_client::{Age, Client, ClientError, EventReader};
use provost_domain::Event;
use provost_view::State;

/// The pauses before a broken stream is opened again. A running daemon has closed it for a passing reason.
const PAUSES_MS: [u64; 3] = [200, 1_000, 5_000];

/// Follows a daemon until the page ends.
pub(super) async fn follow(hub: Hub, repo: Arc<Repo>) {
    let mut tries = 0;
    loop {
        let ended = tokio::select! {
            () = hub.0.stop.cancelled() => return,
            ended = once(&hub, &repo) => ended,
        };
        if ended.was_live {
            tries = 0;
            hub.stands(&repo, State::Reconnecting);
        } else {
            hub.stands(&repo, repo.after(&ended.why));
        }
        // The daemon refuses until it starts again, and the page is told of a start.
        let is_apart =
            matches!(&ended.why, ClientError::Refused { fault, .. } if fault.error == OWN_PAGE_ONLY);
        let has_gone = is_apart || matches!(ended.why, ClientError::NotRunning(_) | ClientError::Version(_));
        let pause = PAUSES_MS.get(tries).filter(|_| !has_gone);
        let heard = tokio::select! {
            () = hub.0.stop.cancelled() => return,
            heard = heard(&repo, pause.copied()) => heard,
        };
        tries = if heard { 0 } else { tries + 1 };
    }
}

/// Waits until daemons have come or gone, but no longer than the pause; returns whether they have.
async fn heard(repo: &Repo, pause: Option<u64>) -> bool {
    let again = repo.again.notified();
    match pause {
        Some(pause) => timeout(Duration::from_millis(pause), again).await.is_ok(),
        None => {
            again.await;
            true
        }
    }
}

/// The reason why a daemon is no longer followed, and whether its stream was open.
struct Ended {
    why: ClientError,
    was_live: bool,
}

async fn once(hub: &Hub, repo: &Repo) -> Ended {
    let client = repo.way();
    let not_live = |why| Ended { why, was_live: false };
    let about = match answer(hub, repo, &client).await {
        Ok(about) => about,
        Err(why) => return not_live(why),
    };
    let opened = opened(hub, repo, &client, about.journal_seq);
    let mut events = match timeout(Duration::from_millis(HUB_VIEW_MS), opened).await {
        Ok(Ok(events)) => events,
        Ok(Err(why)) => return not_live(why),
        Err(_) => return not_live(ClientError::Slow),
    };
    hub.stands(repo, State::Live);
    let mut each = interval(Duration::from_secs(HUB_AGE_EVERY_S));
    each.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Ok(event) => {
                    changed(hub, repo, event);
                    continue;
                }
                Err(why) => return Ended { why, was_live: true },
            },
            () = repo.doubted.notified() => {}
            _ = each.tick() => if !hub.is_read() { continue },
        }
        let age = Age::default();
        if let Err(why) = answer(hub, repo, &client.clone().noting(age.clone())).await {
            return Ended { why, was_live: true };
        }
        hub.stands(repo, State::Live);
        hub.shows_of(repo, age.greatest());
    }
}

/// Asks the daemon for its identity. A slow daemon is shown as such, and the page waits for its answer.
async fn answer(hub: &Hub, repo: &Repo, client: &Client) -> Result<wire::About, ClientError> {
    let mut asked = std::pin::pin!(client.about());
    if let Ok(about) = timeout(Duration::from_millis(DAEMON_ASKED_MS), asked.as_mut()).await {
        return about;
    }
    hub.stands(repo, repo.after(&ClientError::Slow));
    loop {
        let again = match asked.as_mut().await {
            // The daemon has accepted the connection, and not answered yet.
            Err(ClientError::Slow) => client.about(),
            done => return done,
        };
        asked.set(again);
    }
}

/// Opens the stream of events after the last one that has come. If the journal is another one, the readers fetch everything again.
async fn opened(hub: &Hub, repo: &Repo, client: &Client, head: u64) -> Result<EventReader, ClientError> {
    let last = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner).head(&repo.id);
    if let Some(last) = last.filter(|it| *it <= head) {
        return client.event_stream(last).await;
    }
    let events = client.event_stream(head).await?;
    let mut log = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner);
    log.begin(&repo.id, head);
    // Without readers, the message is dropped.
    let _heard = hub.0.told.send(Arc::new(HubMessage::Gap(Arc::clone(&repo.id), head)));
    drop(log);
    Ok(events)
}

fn changed(hub: &Hub, repo: &Repo, mut event: Value) {
    let Some(seq) = event.get("seq").and_then(Value::as_u64) else { return };
    // The page over all repositories needs no times of events.
    event["at"] = json!(0);
    let data = match Event::from_json(&event.to_string()) {
        Ok(event) => without_content(&event),
        // An event of a newer version may be about anything.
        Err(_) => json!({ "kind": "unknown", "task": null, "approval": null }),
    };
    let change = Change { id: Arc::clone(&repo.id), seq, data };
    let mut log = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner);
    log.push(change.clone());
    // The lock is held, so that readers get changes in the order of the log.
    let _heard = hub.0.told.send(Arc::new(HubMessage::Change(change)));
}
