//! The wit protocol: JSON-RPC over HTTP on a Unix socket in the work tree, for wit's command line, hooks and plugins.
//!
//! Proof is the peer: a process of this user that is not jailed. It acts as the session that it names, unless that
//! name is reserved. Promises: what wit documents holds to the letter; nothing that a peer sends is answered with
//! anything but JSON, held beyond its bounds, or waited for beyond its time. Leaves where the socket lies, and
//! whose it is there, to the daemon.
#![forbid(unsafe_code)]

mod asked;
mod http;
mod map;
mod methods;
mod params;
mod rows;
mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::FrontDoor;
use crate::auth::keys::KeyRing;
use crate::auth::peer::PeerId;
use crate::service::{Base, Provost};
use crate::transport::Stream;
use crate::transport::accept::Guard;
use crate::transport::http::{Room, converse};
use crate::transport::patient::Patient;

/// How long a request's head may take; also how long a connection may be silent. wit's own daemon takes about as long.
const HEAD_TIME_MAX: Duration = Duration::from_secs(12);

/// How long a client may leave an answer unread.
const READ_TIME_MAX: Duration = Duration::from_secs(10);

/// The door.
#[derive(Clone)]
pub struct Wit(Arc<Parts>);

struct Parts {
    provost: Provost,
    keys: Arc<KeyRing>,
    uid: u32,
    room: Room,
    /// Where its clients work, if that is not the daemon's own checkout.
    base: Option<Base>,
}

impl Wit {
    /// A door for the processes of the user `uid`; `keys` tells which names are reserved.
    pub fn new(provost: Provost, keys: Arc<KeyRing>, uid: u32) -> Self {
        Self(Arc::new(Parts { provost, keys, uid, room: Room::new(http::BODIES), base: None }))
    }

    /// The same for a socket in another checkout, whose files its requests are about.
    #[must_use]
    pub fn at(&self, base: Base) -> Self {
        let Parts { provost, keys, uid, room, .. } = &*self.0;
        let (provost, keys) = (provost.clone(), keys.clone());
        Self(Arc::new(Parts { provost, keys, uid: *uid, room: room.clone(), base: Some(base) }))
    }

    async fn converse(self, mut stream: Stream, guard: Guard) {
        let proven = PeerId::of(&stream).and_then(|peer| {
            peer.check_same_user(self.0.uid)?;
            peer.check_not_jailed()
        });
        if let Err(rejected) = proven {
            tracing::warn!(door = "wit", cause = rejected.cause(), "connection refused");
            return;
        }
        stream.proven();
        guard.proven();
        let service = hyper::service::service_fn(move |request| http::serve(self.clone(), request));
        let patient = Patient::new(stream, READ_TIME_MAX);
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
