//! The same API without a connection, for a door of this process that has found out who asks.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use tower::Service as _;

use super::{Own, routes};
use crate::auth::names::Names;
use crate::base::Digest;
use crate::domain::Principal;

/// The API, asked from inside.
#[derive(Clone)]
pub struct Inside {
    router: Router,
    names: Arc<Names>,
}

/// Who asks, where a door has said it: it comes from nowhere else, and stands in for the proof of a connection.
#[derive(Clone)]
pub struct Known {
    /// As whom.
    pub who: Arc<Principal>,
    /// By which token, if by one.
    pub token: Option<Digest>,
}

impl Own {
    /// A way in for a door of this process.
    pub fn inside(&self) -> Inside {
        Inside { router: routes::router(self.clone()), names: Arc::clone(&self.0.names) }
    }
}

impl Inside {
    /// Answers a request as it would be answered over a connection.
    pub async fn ask(&self, who: Known, mut request: Request<Full<Bytes>>) -> Response<Body> {
        request.extensions_mut().insert(who);
        let answered: Result<_, Infallible> = self.router.clone().call(request).await;
        let Ok(answer) = answered;
        answer
    }

    /// Whether somebody who was let in may still go by that name.
    pub fn lets_in(&self, who: &Known) -> bool {
        self.names.still(&who.who, who.token.as_ref()).is_ok()
    }
}
