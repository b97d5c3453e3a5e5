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
use crate::domain::Principal;

/// The API, asked from inside.
#[derive(Clone)]
pub struct Inside(Router);

/// Who asks, where a door has said it: it comes from nowhere else, and stands in for the proof of a connection.
#[derive(Clone)]
pub(super) struct Known(pub(super) Arc<Principal>);

impl Own {
    /// A way in for a door of this process.
    pub fn inside(&self) -> Inside {
        Inside(routes::router(self.clone()))
    }
}

impl Inside {
    /// Answers a request as it would be answered over a connection.
    pub async fn ask(&self, who: Arc<Principal>, mut request: Request<Full<Bytes>>) -> Response<Body> {
        request.extensions_mut().insert(Known(who));
        let answered: Result<_, Infallible> = self.0.clone().call(request).await;
        let Ok(answer) = answered;
        answer
    }
}
