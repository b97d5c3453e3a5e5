//! Follows a daemon: live while its stream of events is open, stale when it breaks, and live again when the daemon is back.
//!
//! A daemon that comes back writes its entry among those of its user, and the screen is notified of that; so it does
//! not poll a daemon that has gone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::inputs::{Input, News};
use provost_client::daemons::Repository;
use provost_client::views::became;
use provost_client::{Client, ClientError};

/// The pauses before a broken stream is opened again. A daemon that runs has closed it for a passing reason.
const PAUSES_MS: [u64; 3] = [200, 1_000, 5_000];

/// The task that follows one daemon.
pub(super) struct Follow {
    pub number: usize,
    pub repository: Repository,
    pub client: Client,
    /// Notified when daemons have come or gone.
    pub again: Arc<Notify>,
    pub news: mpsc::Sender<Input>,
}

impl Follow {
    /// Follows the daemon until the screen ends.
    pub(super) async fn run(self) {
        let mut tries = 0;
        loop {
            let (err, was_live) = self.once().await;
            if was_live {
                tries = 0;
            }
            if self.tell(self.stale(&err)).await.is_err() {
                return;
            }
            let has_gone = matches!(err, ClientError::NotRunning(_));
            match PAUSES_MS.get(tries).filter(|_| !has_gone) {
                Some(pause) => {
                    tries += 1;
                    let _earlier = timeout(Duration::from_millis(*pause), self.again.notified()).await;
                }
                None => {
                    self.again.notified().await;
                    tries = 0;
                }
            }
        }
    }

    async fn tell(&self, news: News) -> Result<(), ()> {
        self.news.send(Input::News(news)).await.map_err(|_| ())
    }

    /// Follows the daemon until its stream breaks; returns the reason, and whether the daemon was live.
    async fn once(&self) -> (ClientError, bool) {
        let about = match self.client.about().await {
            Ok(about) => about,
            Err(err) => return (err, false),
        };
        // The stream is opened before the lists are asked for: an event in between is told twice, and never missed.
        let mut events = match self.client.event_stream(about.journal_seq).await {
            Ok(events) => events,
            Err(err) => return (err, false),
        };
        // A phone that reads the picture of the address can open only a public one.
        let page = about.doors.iter().find(|it| it.door == "web").map(|it| it.address.clone());
        let page = about.public.first().cloned().or(page);
        let live = News::Live { repository: self.number, page };
        if self.tell(live).await.is_err() {
            return (ClientError::Broken("the screen has ended".into()), true);
        }
        loop {
            let changed = match events.next().await {
                Ok(event) => News::Changed { repository: self.number, answered: answered(&event) },
                Err(err) => return (err, true),
            };
            if self.tell(changed).await.is_err() {
                return (ClientError::Broken("the screen has ended".into()), true);
            }
        }
    }

    fn stale(&self, err: &ClientError) -> News {
        let run = &self.repository.program;
        let (why, next) = match err {
            ClientError::NotRunning(_) => ("no daemon runs".to_owned(), format!("{run} up")),
            ClientError::Version(_) => (err.to_string(), format!("{run} down, then {run} up")),
            ClientError::Foreign { .. } => (err.to_string(), format!("{run} doctor")),
            ClientError::Broken(_) => ("its daemon has gone".to_owned(), format!("{run} up")),
            _ => (err.to_string(), format!("{run} status")),
        };
        News::Stale { repository: self.number, why, next }
    }
}

/// Returns the approval that an event ends, who has ended it, and the outcome in words.
fn answered(event: &Value) -> Option<(u64, String, String)> {
    let (kind, about) = event.get("kind")?.as_object()?.iter().next()?;
    if !matches!(kind.as_str(), "approval_answered" | "approval_expired") {
        return None;
    }
    let approval = about.get("approval")?.as_u64()?;
    let (_, who, what) = became(event, approval, None)?;
    Some((approval, who, what))
}
