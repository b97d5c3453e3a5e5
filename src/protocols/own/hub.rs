//! The page over all repositories as this daemon sees it: a process of this user that brings what its page has had signed.
//!
//! It has no right but to read, which any page has. Of what it brings, a signature counts as one that was made at its page only
//! while it is proved to serve that page: the kernel says that the process at the other end of the connection listens at the
//! port of the setting, at both loopback addresses and alone, and runs the program that this daemon runs. The names are those of
//! this daemon's own setting.

use super::handle::{Answered, Call};
use super::map::OwnError;
use super::words::refused;
use super::{Own, Page};
use hyper::StatusCode;
use provost_api::{Which, wire};
use provost_auth::{hub, role};
use provost_domain::{Door, Principal};
use provost_passkey::{Party, Refused};

/// Where the page over all repositories may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HubPages {
    /// By which names browsers ask for it.
    pub names: Vec<String>,
    /// Its port.
    pub port: u16,
    /// The path below which it shows this repository.
    pub path: String,
    /// Whether it may read this repository: not where a passkey has to sign in first, since it signs no browser in.
    pub reads: bool,
}

impl HubPages {
    fn pages(&self) -> Vec<Page> {
        let at =
            |host: &String| Page { origin: crate::loopback::origin(host, self.port), host: host.clone() };
        self.names.iter().map(at).collect()
    }
}

/// For whom requests are counted: the process at the other end, and the one behind it where that one is a page over all
/// repositories.
pub(super) type Counted = (Option<i32>, Option<u32>);

/// Who asks for a signature, or brings one.
pub(super) struct Asker {
    /// For whom it is counted.
    pub(super) process: Counted,
    /// The pages at which it may have been made.
    pub(super) pages: Vec<Page>,
}

impl Asker {
    /// The party of a passkey that belongs to this name.
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
    /// Who asks, as far as it is proved at this moment.
    pub(super) async fn asker(&self, call: &Call) -> Asker {
        let mut pages = self.pages();
        let mut process = (call.process, None);
        if self.is_hub(call).await {
            pages.extend(self.0.hub.pages());
            // A browser behind the page is held to its own limits, and not to those of all browsers together.
            process.1 = call.tied.process().map(|it| it.pid);
        }
        Asker { process, pages }
    }

    /// Whether the process at the other end serves the page over all repositories.
    async fn is_hub(&self, call: &Call) -> bool {
        let speaks_as_page = call.who.agent().as_str() == role::PAGE && call.who.door() == Door::Web;
        let Some(peer) = call.peer.clone().filter(|_| speaks_as_page) else { return false };
        let port = self.0.hub.port;
        tokio::task::spawn_blocking(move || hub::is_served_by(&peer, port)).await.unwrap_or(false)
    }

    /// The addresses of the pages that are meant, of those at which a passkey can be enrolled now.
    pub(super) async fn addresses(&self, is_meant: impl Fn(&Page) -> bool) -> Vec<String> {
        let HubPages { port, reads, ref path, .. } = self.0.hub;
        let is_open =
            reads && tokio::task::spawn_blocking(move || hub::is_served(port)).await.unwrap_or(false);
        let over_all = if is_open { self.0.hub.pages() } else { Vec::new() };
        let over_all = over_all.into_iter().filter(&is_meant).map(|it| format!("{}{path}", it.origin));
        self.pages().into_iter().filter(&is_meant).map(|it| it.origin).chain(over_all).collect()
    }

    /// Refuses a process that speaks as a page and asks for more than what the daemon is, where a passkey has to sign in first.
    ///
    /// # Errors
    /// Where this repository is read instead.
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
