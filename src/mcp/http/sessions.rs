//! Sessions of hosts of the older era, which begin with `initialize`: their owners, and their number.
//!
//! A session is only a queue for the host's notices: every request in it must prove its sender again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::Stream;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};

use super::HttpError;
use crate::task_revisions::Announcing;
use provost_auth::peer::process_of_ours;
use provost_base::AgentId;
use provost_base::limits::{MCP_SESSION_S_MAX, MCP_SESSIONS_MAX};
use provost_client::Client;
use provost_domain::ProcessMark;

/// The library's store of sessions, with transports that answer `initialize` with members that the library does not know.
#[derive(Default)]
pub(super) struct Manager(LocalSessionManager);

impl SessionManager for Manager {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = Announcing<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.0.create_session().await?;
        Ok((id, Announcing(transport)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.0.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.0.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.0.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.0.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.resume(id, last_event_id).await
    }
}

const HEADER: &str = "mcp-session-id";

/// The sessions that hosts have begun, up to a bound.
pub(super) struct Sessions {
    manager: Arc<Manager>,
    known: Arc<Mutex<HashMap<Box<str>, Session>>>,
}

struct Session {
    agent: AgentId,
    heard: Instant,
    /// The process of the last request, if known.
    process: Option<ProcessMark>,
    /// The client of the last request.
    client: Client,
}

/// The interval between checks whether a session still exists.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Sessions {
    /// Makes an empty set of sessions.
    pub(super) fn new() -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(Duration::from_secs(MCP_SESSION_S_MAX));
        let mut manager = Manager::default();
        manager.0.session_config = config;
        Self { manager: Arc::new(manager), known: Arc::default() }
    }

    pub(super) fn manager(&self) -> Arc<Manager> {
        Arc::clone(&self.manager)
    }

    /// Admits a request to the session that it names; for another agent the session does not exist.
    pub(super) fn enter(
        &self,
        headers: &HeaderMap,
        agent: &AgentId,
        process: Option<ProcessMark>,
    ) -> Result<Option<Arc<str>>, HttpError> {
        let Some(id) = headers.get(HEADER) else { return Ok(None) };
        let mut known = self.known();
        let named = id.to_str().ok().and_then(|id| known.get_key_value(id)).map(|(id, _)| id.clone());
        let session = named.as_ref().and_then(|id| known.get_mut(id)).filter(|it| it.agent == *agent);
        let unknown =
            || HttpError::new(StatusCode::NOT_FOUND, "there is no such session; begin with initialize");
        let session = session.ok_or_else(unknown)?;
        (session.heard, session.process) = (Instant::now(), process);
        Ok(named.map(Arc::from))
    }

    /// Remembers the client of the latest request in a session.
    pub(super) fn speaks(&self, session: &str, client: &Client) {
        if let Some(session) = self.known().get_mut(session) {
            session.client = client.clone();
        }
    }

    /// Remembers the session that an answer has begun, and ends the longest silent one if there are too many. When
    /// the session ends, `client` releases what was taken in it.
    pub(super) async fn begun<B>(
        &self,
        answer: &Response<B>,
        agent: AgentId,
        process: Option<ProcessMark>,
        client: Client,
    ) {
        let Some(id) = answer.headers().get(HEADER).and_then(|id| id.to_str().ok()) else { return };
        let there: Vec<_> = self.manager.0.sessions.read().await.keys().cloned().collect();
        let too_many = {
            let mut known = self.known();
            known.retain(|id, _| there.iter().any(|it| **it == **id));
            if !known.contains_key(id) {
                known.insert(
                    id.into(),
                    Session { agent, heard: Instant::now(), process, client: client.clone() },
                );
                let (manager, known, id) = (self.manager(), Arc::clone(&self.known), Arc::from(id));
                tokio::spawn(look_on(manager, known, id, client));
            }
            let oldest = known.iter().min_by_key(|(_, it)| it.heard).map(|(id, _)| id.clone());
            oldest.filter(|_| known.len() > MCP_SESSIONS_MAX).inspect(|id| {
                known.remove(id);
            })
        };
        let Some(oldest) = too_many else { return };
        tracing::info!(door = "mcp", "as many sessions as there may be; the one silent for longest is ended");
        if let Err(err) = self.manager.close_session(&Arc::from(&*oldest)).await {
            tracing::debug!(door = "mcp", %err, "the session had ended");
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Box<str>, Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a session to end, by its host's request, its silence, the end of its last token, or the end of its last process,
/// and then releases what was taken in it. A session whose process has ended stays for a further one, without any holds.
async fn look_on(
    manager: Arc<Manager>,
    known: Arc<Mutex<HashMap<Box<str>, Session>>>,
    id: Arc<str>,
    client: Client,
) {
    let client = client.in_session(Arc::clone(&id));
    let mut gone = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let is_there = manager.has_session(&id).await.unwrap_or(false);
        let (process, shut_out) = {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let session = known.get(&*id);
            (session.and_then(|it| it.process), session.is_some_and(|it| it.client.is_shut_out()))
        };
        if shut_out && is_there {
            tracing::info!(door = "mcp", "a session ends, since its name is not its host's any more");
            known.lock().unwrap_or_else(PoisonError::into_inner).remove(&*id);
            if let Err(err) = manager.close_session(&id).await {
                tracing::debug!(door = "mcp", %err, "the session had ended");
            }
            continue;
        }
        let ended = process.filter(|it| gone != Some(*it) && process_of_ours(it.pid) != Some(*it));
        if is_there && ended.is_none() {
            continue;
        }
        gone = ended.or(gone);
        match client.end_session().await {
            Ok(ended) if ended.given_back > 0 => {
                tracing::info!(
                    door = "mcp",
                    count = ended.given_back,
                    "what a session had taken is given back"
                );
            }
            Ok(_) => {}
            Err(err) => tracing::warn!(door = "mcp", %err, "what a session had taken is not given back"),
        }
        if !is_there {
            return;
        }
    }
}
