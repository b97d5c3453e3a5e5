//! The page over all repositories, from this daemon's view: a process of this user that passes on what its page has had signed.
//!
//! It has only the right to read, as any page has. A signature that it passes on counts as made at its page only
//! while it is proved to serve that page: the kernel must show that the process at the other end of the connection
//! listens at the configured port, at both loopback addresses and alone, and runs the same program as this daemon.
//! The names are those of this daemon's own configuration.

use super::handle::{Answered, Call};
use super::map::OwnError;
use super::words::refused;
use super::{Own, Page};
use hyper::StatusCode;
use provost_api::{Which, wire};
use provost_auth::{hub, role};
use provost_domain::{Door, Principal};
use provost_passkey::{Party, Refused};

/// The possible addresses of the page over all repositories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HubPages {
    /// The names by which browsers reach it.
    pub names: Vec<String>,
    /// Its port.
    pub port: u16,
    /// The path below which it shows this repository.
    pub path: String,
    /// Whether it may read this repository; `false` if a passkey must sign in first, since it signs in no browser.
    pub reads: bool,
}

impl HubPages {
    fn pages(&self) -> Vec<Page> {
        let at =
            |host: &String| Page { origin: crate::loopback::origin(host, self.port), host: host.clone() };
        self.names.iter().map(at).collect()
    }
}

/// The processes whose limits a request counts for: the one at the other end and, if that is a page over all
/// repositories, the one behind it.
pub(super) type Counted = (Option<i32>, Option<u32>);

/// The sender of a request for a signature, or of a signature.
pub(super) struct Asker {
    /// The processes whose limits it counts for.
    pub(super) process: Counted,
    /// The pages at which the signature may have been made.
    pub(super) pages: Vec<Page>,
}

impl Asker {
    /// Returns the party for passkeys of this domain.
    pub(super) fn party(&self, rp_id: &str) -> Answered<Party> {
        let pages = self.pages.iter().filter(|it| it.host == rp_id);
        let origins: Vec<String> = pages.map(|it| it.origin.clone()).collect();
        match origins.is_empty() {
            true => Err(refused(Refused::RpId)),
            false => Ok(Party { rp_id: rp_id.to_owned(), origins }),
        }
    }
}

impl Own {
    /// Returns the sender, as far as it is proved now.
    pub(super) async fn asker(&self, call: &Call) -> Asker {
        let mut pages = self.pages();
        let mut process = (call.process, None);
        if self.is_hub(call).await {
            pages.extend(self.0.hub.pages());
            // A browser behind the page has its own limits, and does not share those of all browsers.
            process.1 = call.tied.process().map(|it| it.pid);
        }
        Asker { process, pages }
    }

    /// Returns whether the process at the other end serves the page over all repositories.
    async fn is_hub(&self, call: &Call) -> bool {
        let speaks_as_page = call.who.agent().as_str() == role::PAGE && call.who.door() == Door::Web;
        let Some(peer) = call.peer.clone().filter(|_| speaks_as_page) else { return false };
        let port = self.0.hub.port;
        tokio::task::spawn_blocking(move || hub::is_served_by(&peer, port)).await.unwrap_or(false)
    }

    /// Returns the addresses of selected pages at which a passkey can be enrolled now.
    pub(super) async fn addresses(&self, is_meant: impl Fn(&Page) -> bool) -> Vec<String> {
        let HubPages { port, reads, ref path, .. } = self.0.hub;
        let is_open =
            reads && tokio::task::spawn_blocking(move || hub::is_served(port)).await.unwrap_or(false);
        let over_all = if is_open { self.0.hub.pages() } else { Vec::new() };
        let over_all = over_all.into_iter().filter(&is_meant).map(|it| format!("{}{path}", it.origin));
        self.pages().into_iter().filter(&is_meant).map(|it| it.origin).chain(over_all).collect()
    }

    /// Refuses a process that speaks as a page and asks for more than the daemon's identity, if a passkey must sign in first.
    ///
    /// # Errors
    /// The error names the page at which this repository is read instead.
    pub(super) fn check_page(&self, who: &Principal, which: Option<Which>) -> Answered<()> {
        let is_page = who.agent().as_str() == role::PAGE && who.door() == Door::Web;
        if self.0.hub.reads || !is_page || which == Some(Which::About) {
            return Ok(());
        }
        let why = "this repository is read at its own page, after a passkey has signed in";
        let err = OwnError::new(StatusCode::FORBIDDEN, wire::OWN_PAGE_ONLY, why);
        Err(err.hint("in the repository: provost web open"))
    }
}
