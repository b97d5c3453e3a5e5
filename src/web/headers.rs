//! The headers of every answer: they tell the browser what the page may do.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Allows only files that this door serves, no script or style within a document, and no text that becomes markup.
/// The only text that may become the address of a script is that of the service worker (`page/install.js`).
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    manifest-src 'self'; worker-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types provost-worker";

const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    (
        "permissions-policy",
        "publickey-credentials-get=(self), publickey-credentials-create=(self), clipboard-write=(self)",
    ),
];

/// Adds the headers; existing ones of the same name are replaced.
pub(super) fn add(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
