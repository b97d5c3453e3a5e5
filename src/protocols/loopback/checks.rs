//! Checks that a request was meant for this door, and was not sent by a page in a browser.
//!
//! A browser lets any page send requests to this machine, and lets a name that its owner controls lead here. It says,
//! however, which name the page asked for (`Host`), where the page is from (`Origin`) and how far away that is
//! (`Sec-Fetch-Site`). Programs that are no browsers say the first alone.

use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;

/// Names by which a door can be asked for.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The port that goes without saying.
const PORT_OF_HTTP: u16 = 80;

/// How a door's own address can be written.
#[derive(Clone, Debug)]
pub(super) struct Spellings {
    authorities: Vec<String>,
    origins: Vec<String>,
}

impl Spellings {
    /// Of a door at this port.
    pub(super) fn of(port: u16) -> Self {
        let with_port = NAMES.map(|name| format!("{name}:{port}"));
        let without = NAMES.map(str::to_owned);
        let both = without.into_iter().filter(|_| port == PORT_OF_HTTP).chain(with_port);
        let authorities: Vec<_> = both.collect();
        let origins = authorities.iter().map(|it| format!("http://{it}")).collect();
        Self { authorities, origins }
    }

    /// Whether a request may be answered.
    ///
    /// # Errors
    /// The cause, for the log.
    pub(super) fn check(&self, head: &Parts) -> Result<(), &'static str> {
        let ours = |text: &str| self.authorities.iter().any(|it| it.eq_ignore_ascii_case(text));
        let mut hosts = head.headers.get_all(HOST).iter();
        match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
            (Some(Ok(host)), None) if ours(host) => {}
            (None, _) => return Err("there is no Host"),
            (_, Some(_)) => return Err("there are several Hosts"),
            _ => return Err("the Host is not this door"),
        }
        if head.uri.authority().is_some_and(|authority| !ours(authority.as_str())) {
            return Err("the target is not this door");
        }
        let own = |origin: &HeaderValue| self.origins.iter().any(|it| it.as_bytes() == origin.as_bytes());
        if !head.headers.get_all(ORIGIN).iter().all(own) {
            return Err("the Origin is not this door");
        }
        let near = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
        if !head.headers.get_all("sec-fetch-site").iter().all(near) {
            return Err("a page of another site asks");
        }
        Ok(())
    }
}
