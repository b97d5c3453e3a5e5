//! Follows a daemon: live while its stream of events is open, stale when it breaks, and live again when the daemon is back.
//!
//! A daemon that comes back writes its entry among those of its user, and that is heard of; so a daemon that has gone is not
//! asked again and again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::inputs::{Input, News};
use provost_client::daemons::Repository;
use provost_client::views::became;
use provost_client::{Client, ClientError};

/// Pauses before a stream that broke is opened again by itself. A daemon that runs has closed it for a reason that passes.
const PAUSES_MS: [u64; 3] = [200, 1_000, 5_000];

/// A daemon that is followed.
pub(super) struct Follow {
    pub number: usize,
    pub repository: Repository,
    pub client: Client,
    /// Told when daemons have come or gone.
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

    /// Follows it until it breaks: why, and whether it was live.
    async fn once(&self) -> (ClientError, bool) {
        let about = match self.client.about().await {
            Ok(about) => about,
            Err(err) => return (err, false),
        };
        // Before what is shown is asked for: an event between is told twice, and never missed.
        let mut events = match self.client.event_stream(about.journal_seq).await {
            Ok(events) => events,
            Err(err) => return (err, false),
        };
        // A phone that reads the picture of it opens the one elsewhere alone.
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

/// The approval that an event ends, who has ended it, and how.
fn answered(event: &Value) -> Option<(u64, String, String)> {
    let (kind, about) = event.get("kind")?.as_object()?.iter().next()?;
    if !matches!(kind.as_str(), "approval_answered" | "approval_expired") {
        return None;
    }
    let approval = about.get("approval")?.as_u64()?;
    let (_, who, what) = became(event, approval, None)?;
    Some((approval, who, what))
}
