//! The same API without a connection, for a door of this process that knows its caller. It passes requests and
//! replies as values, which are never encoded as JSON.

use std::future::ready;
use std::sync::Arc;

use super::ties::Tied;
use super::{Own, Page};
use provost_api::{Reply, Request, wire};
use provost_base::Digest;
use provost_domain::Principal;

/// The API for callers within the daemon.
#[derive(Clone)]
pub struct InProcessApi(pub(super) Own);

/// A caller that a door of this process has verified, in place of the proof of a connection. It has no other source.
#[derive(Clone)]
pub struct VerifiedCaller {
    /// The agent as which the request is made, with its rights.
    pub who: Arc<Principal>,
    /// The digest of the token that the caller has shown, if any.
    pub token: Option<Digest>,
    /// The id of the calling process, if the door has determined it.
    pub process: Option<i32>,
}

impl Own {
    /// Returns the API for a door of this process.
    pub fn inside(&self) -> InProcessApi {
        InProcessApi(self.clone())
    }

    pub(super) fn age_ms(&self) -> Option<u64> {
        let age = self.0.provost.engine().stale()?;
        Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }
}

impl InProcessApi {
    /// Answers a request as over a connection, in the session that the door names.
    ///
    /// # Errors
    /// The status and the error that a connection would have returned.
    pub async fn ask(
        &self,
        who: &VerifiedCaller,
        session: Option<Arc<str>>,
        request: Request,
    ) -> Result<Reply, (u16, wire::ErrorBody)> {
        let which = request.which();
        // The holds of a session are released even if its host has lost its name.
        let answer = match which.row().outlives_proof {
            true => Ok(()),
            false => self.0.still(who).map(drop),
        };
        let answer = match answer {
            Ok(()) => {
                let tied = Tied::of_session(session);
                self.0.respond(who, (tied, None), Some(which), ready(Ok(request))).await
            }
            Err(fault) => Err(fault),
        };
        answer.map_err(|fault| (fault.status.as_u16(), fault.body))
    }

    /// Returns the greatest age of what an answer says, in milliseconds, if the database does not answer the daemon.
    pub fn age_ms(&self) -> Option<u64> {
        self.0.age_ms()
    }

    /// Lets pages at these origins ask for a passkey: the daemon serves them itself.
    pub fn serves_pages(&self, pages: Vec<Page>) {
        self.0.serves_pages(pages);
    }

    /// Returns whether an admitted caller may still use its name.
    pub fn lets_in(&self, who: &VerifiedCaller) -> bool {
        self.0.still(who).is_ok()
    }
}
