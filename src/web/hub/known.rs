//! The repositories whose daemons have been found, and the state of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

use super::log::{HubMessage, Log};
use crate::WebError;
use provost_api::wire::OWN_PAGE_ONLY;
use provost_base::limits::{HUB_AGE_STEP_MS, HUB_QUEUE_MAX};
use provost_base::{AgentId, Timestamp, visible};
use provost_client::daemons::{Found, Repository};
use provost_client::{Client, ClientError};
use provost_transport::sse::Readers;
use provost_view::{APART, Lead, RepositoryOverview, Shown, State};

/// Returns the time of this machine.
pub(super) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The whole state of the page over all repositories. Clones share it.
#[derive(Clone)]
pub(super) struct Hub(pub(super) Arc<Inner>);

pub(super) struct Inner {
    repositories: Mutex<BTreeMap<String, Arc<Repo>>>,
    pub(super) log: Mutex<Log>,
    pub(super) told: broadcast::Sender<Arc<HubMessage>>,
    pub(super) readers: Readers,
    pub(super) stop: CancellationToken,
    /// The id of this process, which differs from that of any other.
    pub(super) identity: String,
}

/// A repository, and the client for its daemon.
pub(super) struct Repo {
    pub(super) id: Arc<str>,
    pub(super) repository: Repository,
    pub(super) lead: Lead,
    client: Mutex<Client>,
    /// Signalled when daemons have come or gone.
    pub(super) again: Notify,
    /// Signalled when a request was not answered in time.
    pub(super) doubted: Notify,
    standing: Mutex<Standing>,
}

struct Standing {
    state: State,
    since: Timestamp,
    /// The time of the data that a live daemon shows, while the database does not answer the daemon.
    as_of: Option<Timestamp>,
    needs: Option<(Shown, Timestamp)>,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(super) fn new(stop: CancellationToken) -> Self {
        let (told, _) = broadcast::channel(HUB_QUEUE_MAX);
        let identity = format!("{} {}", std::process::id(), now().0);
        Self(Arc::new(Inner {
            repositories: Mutex::default(),
            log: Mutex::default(),
            told,
            readers: Readers::default(),
            stop,
            identity,
        }))
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Repo>> {
        lock(&self.0.repositories).get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Repo>> {
        lock(&self.0.repositories).values().cloned().collect()
    }

    /// Updates the repositories with the daemons that were found; a new repository is followed from now on.
    pub(super) fn take(&self, found: Vec<Found>) {
        for it in found {
            let client = Client::at(it.places.own_socket()).speaking_as(reader()).keeping_connections();
            let known = self.get(&it.places.hash);
            match known {
                Some(known) => *lock(&known.client) = client,
                None => self.add(it, client),
            }
        }
        self.all().iter().for_each(|it| it.again.notify_one());
    }

    fn add(&self, found: Found, client: Client) {
        let id = found.places.hash.clone();
        let lead = Lead { base: format!("/r/{id}"), program: found.repository.program.clone() };
        let standing = Standing { state: State::Connecting, since: now(), as_of: None, needs: None };
        let repo = Arc::new(Repo {
            id: id.as_str().into(),
            repository: found.repository,
            lead,
            client: Mutex::new(client),
            again: Notify::new(),
            doubted: Notify::new(),
            standing: Mutex::new(standing),
        });
        lock(&self.0.repositories).insert(id, Arc::clone(&repo));
        tokio::spawn(super::follow::follow(self.clone(), repo));
    }

    /// Sets the state of a repository, and tells all readers.
    pub(super) fn stands(&self, repo: &Repo, state: State) {
        {
            let mut standing = lock(&repo.standing);
            if standing.state == state {
                return;
            }
            if matches!(state, State::Apart(_)) {
                // These needs were read before the daemon's last start.
                standing.needs = None;
            }
            standing.state = state;
            standing.since = now();
            standing.as_of = None;
        }
        self.tell_standing(repo);
    }

    /// Sets how old what a daemon shows is, if its database does not answer it, and tells all readers.
    pub(super) fn shows_of(&self, repo: &Repo, age: Option<Duration>) {
        let ms = |age: Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let as_of = age.map(|it| Timestamp(now().0.saturating_sub(ms(it))));
        {
            let mut standing = lock(&repo.standing);
            let is_known = match (standing.as_of, as_of) {
                (Some(was), Some(is)) => was.0.abs_diff(is.0) < HUB_AGE_STEP_MS,
                (was, is) => was == is,
            };
            if is_known {
                return;
            }
            standing.as_of = as_of;
        }
        self.tell_standing(repo);
    }

    fn tell_standing(&self, repo: &Repo) {
        // Without readers, the message is dropped.
        let _heard = self.0.told.send(Arc::new(HubMessage::Standing(repo.as_told())));
    }

    /// Checks whether a page reads the stream.
    pub(super) fn is_read(&self) -> bool {
        self.0.told.receiver_count() > 0
    }
}

/// Returns the name as which this process reads: that of a page.
fn reader() -> Option<AgentId> {
    AgentId::parse(crate::READER).ok()
}

impl Repo {
    /// Returns the known state of the repository, for a view.
    pub(super) fn known(&self) -> RepositoryOverview {
        let standing = lock(&self.standing);
        RepositoryOverview {
            id: self.id.to_string(),
            name: self.repository.name.clone(),
            root: self.repository.root.clone(),
            lead: self.lead.clone(),
            state: standing.state.clone(),
            since: standing.since.rfc3339(),
            needs: standing.needs.clone().map(|(shown, at)| (shown, at.rfc3339())),
        }
    }

    /// Returns the state of the repository, for the stream.
    pub(super) fn as_told(&self) -> serde_json::Value {
        let known = self.known();
        serde_json::json!({
            "repository": known.id, "state": known.state.word().word, "since": known.since,
            "name": visible(&known.name), "as_of": lock(&self.standing).as_of.map(Timestamp::rfc3339),
        })
    }

    pub(super) fn keep(&self, needs: Shown) {
        lock(&self.standing).needs = Some((needs, now()));
    }

    /// Returns whether the daemon may answer.
    pub(super) fn may_answer(&self) -> bool {
        !matches!(lock(&self.standing).state, State::Stale(..) | State::Stopped(_) | State::Apart(_))
    }

    /// Returns the client for the daemon, in any state of the daemon.
    pub(super) fn way(&self) -> Client {
        lock(&self.client).clone()
    }

    /// Returns the client for the daemon, unless the daemon is known not to answer.
    ///
    /// # Errors
    /// The reason why it does not answer.
    pub(super) fn client(&self) -> Result<Client, WebError> {
        let (error, why, next) = match &lock(&self.standing).state {
            State::Stale(why, next) => ("stale", why.clone(), next.clone()),
            State::Stopped(next) => ("stopped", "no daemon runs".to_owned(), next.clone()),
            State::Apart(next) => {
                let err = self.fault(OWN_PAGE_ONLY, APART, next.clone());
                return Err(WebError { status: StatusCode::FORBIDDEN, ..err });
            }
            State::Connecting | State::Live | State::Reconnecting => return Ok(self.way()),
        };
        Err(self.fault(error, &why, next))
    }

    fn fault(&self, error: &str, why: &str, next: String) -> WebError {
        let message = format!("{}: {}", visible(&self.repository.name), visible(why));
        let mut err = WebError::new(StatusCode::SERVICE_UNAVAILABLE, error, message);
        err.body.hint = Some(visible(&next));
        err
    }

    /// Returns the daemon's answer if it comes in time. If it does not, the daemon is checked.
    ///
    /// # Errors
    /// The error of the work, or that the time was over.
    pub(super) async fn in_time<T>(
        &self,
        most: Duration,
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        match tokio::time::timeout(most, work).await {
            Ok(done) => done.map_err(|err| self.told(err)),
            Err(_) => {
                self.doubted.notify_one();
                let next = format!("{} status", self.repository.program);
                Err(self.fault("stale", "its daemon does not answer", next))
            }
        }
    }

    /// Returns an error in the form for the reader. After a connection error, the daemon is checked.
    pub(super) fn told(&self, mut err: WebError) -> WebError {
        if err.body.error == "unavailable" {
            self.doubted.notify_one();
            err.body.hint.get_or_insert_with(|| visible(&format!("{} status", self.repository.program)));
        }
        err
    }

    /// Returns the state of the repository after its daemon has failed to answer for this reason.
    pub(super) fn after(&self, err: &ClientError) -> State {
        let run = &self.repository.program;
        match err {
            ClientError::NotRunning(_) => State::Stopped(format!("{run} up")),
            ClientError::Version(_) => State::Stale(err.to_string(), format!("{run} down, then {run} up")),
            ClientError::Foreign { .. } => State::Stale(err.to_string(), format!("{run} doctor")),
            ClientError::Refused { fault, .. } if fault.error == OWN_PAGE_ONLY => {
                State::Apart(format!("{run} web open"))
            }
            ClientError::Slow => State::Stale("its daemon does not answer".into(), format!("{run} status")),
            _ => State::Stale(err.to_string(), format!("{run} status")),
        }
    }
}
