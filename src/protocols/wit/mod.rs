//! The wit protocol: JSON-RPC over HTTP on a Unix socket in the work tree, for wit's command line, hooks and plugins.
//!
//! Proof is the peer: a process of this user that is not jailed. It acts as the session that it names, unless that
//! name is reserved. Promises: the door keeps to wit's documents to the letter; every answer is JSON; no data of a
//! peer is held beyond its bounds or waited for beyond its time. The daemon decides the place and the owner of the
//! socket.
#![forbid(unsafe_code)]

mod http;
mod map;
mod methods;
mod params;
mod request;
mod rows;
mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::FrontDoor;
use provost_auth::Rejected;
use provost_auth::line::Line;
use provost_auth::names::Names;
use provost_auth::peer::PeerId;
use provost_base::limits::LOOPBACK_SPARE_MAX;
use provost_service::{Base, Checkouts, Provost};
use provost_transport::Stream;
use provost_transport::accept::Guard;
use provost_transport::http::{Room, converse};
use provost_transport::write_timeout::WriteTimeout;

/// How long a peer may take to send a request's head; also how long a connection may be silent. wit's own daemon allows about as much.
const HEAD_TIME_MAX: Duration = Duration::from_secs(12);

/// How long a client may leave an answer unread.
const READ_TIME_MAX: Duration = Duration::from_secs(10);

/// The door that serves wit's clients in one work tree. Clones share everything.
#[derive(Clone)]
pub struct Wit(Arc<WitInner>, Arc<Line>);

struct WitInner {
    provost: Provost,
    names: Arc<Names>,
    uid: u32,
    room: Room,
    /// The checkout in which its clients work, if that is not the daemon's own.
    base: Option<Base>,
}

impl Wit {
    /// Makes a door for the processes of the user `uid`; `names` tells which names are free.
    pub fn new(provost: Provost, names: Arc<Names>, uid: u32) -> Self {
        let parts = WitInner { provost, names, uid, room: Room::new(http::BODIES), base: None };
        Self(Arc::new(parts), Arc::default())
    }

    /// Returns the same door for a socket in another checkout, whose files its requests concern.
    #[must_use]
    pub fn at(&self, base: Base) -> Self {
        let WitInner { provost, names, uid, room, .. } = &*self.0;
        let (provost, names) = (provost.clone(), names.clone());
        let parts = WitInner { provost, names, uid: *uid, room: room.clone(), base: Some(base) };
        Self(Arc::new(parts), Arc::default())
    }

    /// Returns the directories in which absolute paths of its requests are understood.
    fn checkouts(&self) -> Checkouts {
        self.0.provost.checkouts(self.0.base.as_ref())
    }

    async fn converse(mut self, mut stream: Stream, guard: Guard) {
        let proven = PeerId::of(&stream).and_then(|peer| {
            peer.check_same_user(self.0.uid)?;
            peer.check_not_jailed()?;
            peer.check_seen()?;
            Ok(peer)
        });
        let turned_away = match proven {
            Ok(peer) => {
                self.1 = Arc::new(peer.line().clone());
                stream.proven();
                guard.is_process(peer.pid);
                (!guard.makes_room(LOOPBACK_SPARE_MAX)).then_some("its process has too many")
            }
            Err(Rejected::Busy) => Some(Rejected::Busy.cause()),
            Err(Rejected::Unseen) => Some(provost_auth::UNSEEN),
            Err(rejected) => {
                tracing::warn!(door = "wit", cause = rejected.cause(), "connection refused");
                return;
            }
        };
        let patient = WriteTimeout::new(stream, READ_TIME_MAX);
        if let Some(cause) = turned_away {
            tracing::warn!(door = "wit", cause, "connection turned away");
            let service = hyper::service::service_fn(move |_| std::future::ready(http::turned_away(cause)));
            return converse("wit", patient, HEAD_TIME_MAX, &guard, service).await;
        }
        let busy = guard.clone();
        let service = hyper::service::service_fn(move |request| {
            // A connection with a request in progress, or with a wait for a lock, is not closed to make room; an idle one is.
            let (wit, busy) = (self.clone(), busy.busy());
            async move {
                let answer = http::serve(wit, request).await;
                drop(busy);
                answer
            }
        });
        converse("wit", patient, HEAD_TIME_MAX, &guard, service).await;
    }
}

impl FrontDoor for Wit {
    fn name(&self) -> &'static str {
        "wit"
    }

    fn serve(&self, stream: Stream, guard: Guard) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(self.clone().converse(stream, guard))
    }
}
