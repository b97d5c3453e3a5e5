//! The same API without a connection, for a door of this process that knows who asks. It hands over requests
//! and replies as values; they are never written as JSON.

use std::future::ready;
use std::sync::Arc;

use super::ties::Tied;
use super::{Own, Page};
use provost_api::{Reply, Request, wire};
use provost_base::Digest;
use provost_domain::Principal;

/// The API, asked from inside.
#[derive(Clone)]
pub struct InProcessApi(pub(super) Own);

/// Who asks, where a door has said it: it comes from nowhere else, and stands in for the proof of a connection.
#[derive(Clone)]
pub struct VerifiedCaller {
    /// The agent as which the request is made, with its rights.
    pub who: Arc<Principal>,
    /// The digest of the token that the caller has shown, if any.
    pub token: Option<Digest>,
    /// The process that asks, by its number, where the door has found it out.
    pub process: Option<i32>,
}

impl Own {
    /// A way in for a door of this process.
    pub fn inside(&self) -> InProcessApi {
        InProcessApi(self.clone())
    }
}

impl InProcessApi {
    /// Answers a request as it would be answered over a connection, in the session that the door names.
    ///
    /// # Errors
    /// The status and the fault that a connection would have brought.
    pub async fn ask(
        &self,
        who: &VerifiedCaller,
        session: Option<Arc<str>>,
        request: Request,
    ) -> Result<Reply, (u16, wire::ErrorBody)> {
        let which = request.which();
        // What a session has taken is given back, also where its host has lost its name.
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

    /// From now on pages at these origins may ask for a passkey: the daemon serves them itself.
    pub fn serves_pages(&self, pages: Vec<Page>) {
        self.0.serves_pages(pages);
    }

    /// Whether the caller who was let in may still go by that name.
    pub fn lets_in(&self, who: &VerifiedCaller) -> bool {
        self.0.still(who).is_ok()
    }
}
