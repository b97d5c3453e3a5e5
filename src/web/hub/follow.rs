//! Follows the daemon of a repository: live while its stream of events is open.
//!
//! One that has gone is not asked again and again: a daemon that comes back writes its entry among those of its user, which is
//! heard of. One that is there and does not answer is asked once, and the answer to that is waited for.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::known::{Hub, Repo};
use super::log::{Change, Told};
use crate::stream::without_content;
use provost_api::wire::{self, OWN_PAGE_ONLY};
use provost_base::limits::{DAEMON_ASKED_MS, HUB_VIEW_MS};
use provost_client::{Client, ClientError, EventReader};
use provost_domain::Event;
use provost_view::State;

/// Pauses before a stream that broke is opened again by itself. A daemon that runs has closed it for a reason that passes.
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
        // It says so until it starts again, which is heard of.
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

/// Waits until daemons have come or gone, and no longer than the pause; whether they have.
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

/// Why a daemon is not followed any more, and whether it was.
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
    loop {
        tokio::select! {
            event = events.next() => match event {
                Ok(event) => changed(hub, repo, event),
                Err(why) => return Ended { why, was_live: true },
            },
            () = repo.doubted.notified() => match answer(hub, repo, &client).await {
                Ok(_) => hub.stands(repo, State::Live),
                Err(why) => return Ended { why, was_live: true },
            },
        }
    }
}

/// Has the daemon say what it is. One that is slow is told of as such, and its answer is waited for.
async fn answer(hub: &Hub, repo: &Repo, client: &Client) -> Result<wire::About, ClientError> {
    let mut asked = std::pin::pin!(client.about());
    if let Ok(about) = timeout(Duration::from_millis(DAEMON_ASKED_MS), asked.as_mut()).await {
        return about;
    }
    hub.stands(repo, repo.after(&ClientError::Slow));
    loop {
        let again = match asked.as_mut().await {
            // It took the connection, and has not answered yet.
            Err(ClientError::Slow) => client.about(),
            done => return done,
        };
        asked.set(again);
    }
}

/// The stream of events, behind the last one that has come. Where the journal is another one, its readers ask for everything.
async fn opened(hub: &Hub, repo: &Repo, client: &Client, head: u64) -> Result<EventReader, ClientError> {
    let last = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner).head(&repo.id);
    if let Some(last) = last.filter(|it| *it <= head) {
        return client.event_stream(last).await;
    }
    let events = client.event_stream(head).await?;
    let mut log = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner);
    log.begin(&repo.id, head);
    // One that reads nothing hears of nothing.
    let _heard = hub.0.told.send(Arc::new(Told::Gap(Arc::clone(&repo.id), head)));
    drop(log);
    Ok(events)
}

fn changed(hub: &Hub, repo: &Repo, mut event: Value) {
    let Some(seq) = event.get("seq").and_then(Value::as_u64) else { return };
    // Its time is in words there, and is not needed here.
    event["at"] = json!(0);
    let data = match Event::from_json(&event.to_string()) {
        Ok(event) => without_content(&event),
        // One of a newer version: it may be about anything.
        Err(_) => json!({ "kind": "unknown", "task": null, "approval": null }),
    };
    let change = Change { id: Arc::clone(&repo.id), seq, data };
    let mut log = hub.0.log.lock().unwrap_or_else(PoisonError::into_inner);
    log.push(change.clone());
    // While nothing else is added, so that readers get them in the order in which they are kept.
    let _heard = hub.0.told.send(Arc::new(Told::Change(change)));
}
