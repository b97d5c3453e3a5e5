//! Carries requests out: a handler for each endpoint of the table, and the one function that calls them all.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;

use super::in_process::VerifiedCaller;
use super::map::{self, OwnError};
use super::ties::Tied;
use super::{Own, not_ones_own};
use crate::proven::while_proven;
use provost_api::{Endpoint, Reply, Request, Which, endpoints, for_each_endpoint};
use provost_auth::names::HoldsFor;
use provost_auth::peer::PeerId;
use provost_base::limits::OWN_WAIT_MS_MAX;
use provost_domain::{Answer, JudgedVerb, Principal, Verb};

pub(super) type Answered<T> = Result<T, OwnError>;

/// The context of a request.
pub(super) struct Call {
    /// The caller, whose proof was checked.
    pub(super) who: Principal,
    /// The process or session whose end releases what the call takes.
    pub(super) tied: Tied,
    /// The process at the other end of the connection; `None` if a door of this process calls.
    pub(super) peer: Option<Arc<PeerId>>,
    /// The id of the calling process, if known.
    pub(super) process: Option<i32>,
}

/// Carries out requests to one endpoint. A row of the table without an implementation does not compile.
pub(super) trait Handles<E: Endpoint> {
    /// Carries out a request of a known caller, and returns the members of the reply.
    fn handle(&self, call: &Call, asked: E::Asked) -> impl Future<Output = Answered<E::Answer>> + Send;
}

macro_rules! carry_out {
    ($($(#[$doc:meta])+ $method:ident $path:literal $name:ident $Kind:ident($($Asked:ident)?) -> $Answer:ty,
        tools $tools:tt, commands $commands:tt $(, $flag:ident)*;)+) => {
        impl Own {
            /// Carries out a request. Each branch is boxed, so that a caller holds the state of its own endpoint, not of the largest one.
            async fn carry_out(&self, call: &Call, request: Request) -> Answered<Reply> {
                match request { $(
                    Request::$Kind(asked) => {
                        let answer = Box::pin(Handles::<endpoints::$Kind>::handle(self, call, *asked)).await?;
                        Ok(Reply::$Kind(Box::new(answer)))
                    }
                )+ }
            }
        }
    };
}

for_each_endpoint!(carry_out);

impl Own {
    /// Answers a request to this endpoint, or to a path without one, for a caller whose proof was checked. The
    /// proof is checked again now and then while the request waits, and once more before the answer.
    pub(super) async fn respond(
        &self,
        known: &VerifiedCaller,
        (tied, peer): (Tied, Option<Arc<PeerId>>),
        which: Option<Which>,
        request: impl Future<Output = Answered<Request>>,
    ) -> Answered<Reply> {
        let asker = peer.clone();
        let call = Call { who: Principal::clone(&known.who), tied, peer, process: known.process };
        let row = which.map(Which::row);
        let work = async {
            let large = row.is_some_and(|row| row.carries_files);
            let _turn = if large { self.0.large.acquire().await.ok() } else { None };
            self.carry_out(&call, request.await?).await
        };
        if row.is_some_and(|row| row.changes_proof || row.outlives_proof) {
            return work.await.map_err(|fault| self.naming_speaker(fault, &known.who, asker.as_deref()));
        }
        let answered = while_proven(work, &self.0.names, || self.still(known)).await?;
        answered.map_err(|fault| self.naming_speaker(fault, &known.who, asker.as_deref()))
    }

    /// Checks whether an admitted caller may still use its name.
    pub(super) fn still(&self, known: &VerifiedCaller) -> Result<HoldsFor, OwnError> {
        let still = self.0.names.still(&known.who, known.token.as_ref());
        still.map_err(|why| not_ones_own(why, known.who.agent(), None))
    }

    pub(super) async fn submit<V: Verb>(&self, who: &Principal, verb: V) -> Answered<V::Reply> {
        self.0.provost.submit(who, verb).await.map_err(map::fault)
    }

    /// Submits a verb that policy must judge, for a caller that does not wait for an approval.
    pub(super) async fn submit_judged<V: JudgedVerb>(&self, who: &Principal, verb: V) -> Answered<V::Reply> {
        match self.0.provost.submit_judged(who, verb).await.map_err(map::fault)? {
            Answer::Done(reply) => Ok(reply),
            Answer::Parked(id) => {
                Err(OwnError::new(StatusCode::ACCEPTED, "awaiting", format!("waits for approval {id}")))
            }
            Answer::Denied(denial) => {
                let message = format!("denied by rule {}: {}", denial.rule, denial.reason);
                Err(OwnError::new(StatusCode::FORBIDDEN, "denied", message))
            }
        }
    }
}

/// Returns how long a request may wait, within the bound.
pub(super) fn patience(wait_ms: Option<u64>) -> Duration {
    Duration::from_millis(wait_ms.unwrap_or(0).min(OWN_WAIT_MS_MAX))
}
