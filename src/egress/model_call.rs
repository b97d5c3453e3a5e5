//! Recognises the requests that are model calls, and words refusals in the form of their services.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use percent_encoding::percent_decode_str;

use super::http::{Body, whole};

/// The longest name of a model that is kept, in bytes.
const MODEL_MAX: usize = 200;

/// A model call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ModelCall {
    api: Api,
    /// Whether another request fetches its answer later, so that it cannot be counted.
    pub(super) is_deferred: bool,
}

/// The API whose form an error has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Api {
    Anthropic,
    OpenAi,
    Gemini,
}

/// Returns the model in a path, as in Gemini's: `models/NAME:generateContent`.
pub(super) fn named_in(path: &str) -> Option<Box<str>> {
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let (name, _) = path.rsplit('/').next()?.rsplit_once(':')?;
    let is_plain = (1..=MODEL_MAX).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_graphic());
    is_plain.then(|| name.into())
}

impl ModelCall {
    /// Recognises the call in a request; `None` for other requests. Spellings that a service would read alike are alike here.
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        // A call in the background is fetched by a GET later, whose answer has the numbers.
        if matches!(*method, Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let path = percent_decode_str(path).decode_utf8_lossy().to_ascii_lowercase();
        let plain = |part: &'_ str| part.find(';').map_or(part.len(), |at| at);
        let parts: Vec<&str> =
            path.split('/').map(|it| &it[..plain(it)]).filter(|it| !it.is_empty()).collect();
        let has = |name: &str| parts.contains(&name);
        let ends = |name: &str| parts.last().is_some_and(|it| *it == name);
        let verb = parts.last().and_then(|it| it.rsplit_once(':')).map(|(_, verb)| verb);
        let is_deferred = has("batches") || verb.is_some_and(|it| it.starts_with("batch"));
        let api = match verb {
            Some(verb) if verb.contains("generate") || verb.contains("embed") || verb.contains("predict") => {
                Api::Gemini
            }
            _ if ends("count_tokens") => return None,
            _ if has("messages") => Api::Anthropic,
            _ if has("responses") || has("completions") || has("embeddings") || has("batches") => Api::OpenAi,
            _ => return None,
        };
        Some(Self { api, is_deferred })
    }

    /// Returns the answer that refuses the call, in its service's own form. With this status, clients do not try again.
    pub(super) fn refusal(self, why: &str) -> Response<Body> {
        let why = format!("provost: {why}");
        let said = match self.api {
            Api::Anthropic => serde_json::json!({
                "type": "error", "error": { "type": "permission_error", "message": why },
            }),
            Api::OpenAi => serde_json::json!({
                "error": { "message": why, "type": "insufficient_quota", "param": null, "code": "insufficient_quota" },
            }),
            Api::Gemini => serde_json::json!({
                "error": { "code": 403, "message": why, "status": "PERMISSION_DENIED" },
            }),
        };
        let mut response = Response::new(whole(said.to_string()));
        *response.status_mut() = StatusCode::FORBIDDEN;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
