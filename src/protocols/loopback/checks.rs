//! Checks that a request was meant for this door, and was not sent by a page in a browser.
//!
//! A browser lets any page send requests to this machine, and lets a name that the page's owner controls resolve to
//! it. However, it says which name the page asked for (`Host`), where the page is from (`Origin`) and how far away
//! that is (`Sec-Fetch-Site`). Other programs send only the first.

use hyper::Method;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;

/// The default port of HTTP.
const PORT_OF_HTTP: u16 = 80;

/// Returns the origin of pages at this name and port, as browsers write it.
pub fn origin(name: &str, port: u16) -> String {
    if port == PORT_OF_HTTP { format!("http://{name}") } else { format!("http://{name}:{port}") }
}

/// The names of a door, and what browsers may do there.
#[derive(Clone, Debug)]
pub struct BrowserRules {
    /// The names. The door calls itself by the first.
    pub names: Vec<String>,
    /// Names that are redirected to the first one: at these only entrances are answered, with a redirect.
    pub led_on: Vec<String>,
    /// Whether a request that changes state must name the page that sends it, which must have the same name as the door.
    pub needs_origin: bool,
    /// The place where browsers find it.
    pub at: PagesAt,
}

/// The place where browsers find the pages of a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PagesAt {
    /// On this machine, over HTTP: the names are hosts, at the door's port.
    Here,
    /// On other machines, over HTTPS of a proxy: the names are hosts, with a port unless it is the default.
    Elsewhere,
}

impl PagesAt {
    fn scheme(self) -> &'static str {
        match self {
            Self::Here => "http",
            Self::Elsewhere => "https",
        }
    }
}

impl BrowserRules {
    /// Returns the rules of doors for programs: a program names the door, and mostly does not say where it comes from.
    pub fn of_programs() -> Self {
        let names = ["127.0.0.1", "localhost", "[::1]"].map(String::from).into();
        Self { names, led_on: Vec::new(), needs_origin: false, at: PagesAt::Here }
    }
}

/// The target of a request that may be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestTarget {
    /// This door.
    Here,
    /// This door, by a name that it redirects.
    LedOn,
}

/// The valid spellings of a door's own address.
#[derive(Clone, Debug)]
pub(super) struct Spellings {
    authorities: Vec<String>,
    led_on: Vec<String>,
    needs_origin: bool,
    at: PagesAt,
    /// The origin by which the door calls itself.
    goes_by: String,
}

/// Returns each of these names with the port, and without it if it is the default.
fn with_port(names: &[String], port: u16) -> Vec<String> {
    let without = names.iter().filter(|_| port == PORT_OF_HTTP).cloned();
    without.chain(names.iter().map(|name| format!("{name}:{port}"))).collect()
}

fn is_among(all: &[String], text: &str) -> bool {
    all.iter().any(|it| it.eq_ignore_ascii_case(text))
}

impl Spellings {
    /// Returns the spellings of a door at this port.
    pub(super) fn of(port: u16, browser_rules: &BrowserRules) -> Self {
        let first = browser_rules.names.first().map_or("", String::as_str);
        let (needs_origin, at) = (browser_rules.needs_origin, browser_rules.at);
        match at {
            PagesAt::Here => {
                let (authorities, led_on) =
                    (with_port(&browser_rules.names, port), with_port(&browser_rules.led_on, port));
                Self { authorities, led_on, needs_origin, at, goes_by: origin(first, port) }
            }
            PagesAt::Elsewhere => {
                let goes_by = format!("https://{first}");
                Self {
                    authorities: browser_rules.names.clone(),
                    led_on: Vec::new(),
                    needs_origin,
                    at,
                    goes_by,
                }
            }
        }
    }

    /// Returns the same target at the door's own name.
    pub(super) fn at_its_name(&self, target: &str) -> String {
        format!("{}{target}", self.goes_by)
    }

    /// Checks whether a request may be answered; `is_entrance` says that another site may link to its path.
    ///
    /// # Errors
    /// The cause, for the log.
    pub(super) fn check(&self, head: &Parts, is_entrance: bool) -> Result<RequestTarget, &'static str> {
        let host = only_host(&head.headers)?;
        let ours = |text: &str| is_among(&self.authorities, text) || is_among(&self.led_on, text);
        if !ours(host) {
            return Err("the Host is not this door");
        }
        if head.uri.authority().is_some_and(|authority| !ours(authority.as_str())) {
            return Err("the target is not this door");
        }
        self.check_origin(head, host)?;
        let looks = matches!(head.method, Method::GET | Method::HEAD);
        let entered = is_entrance && looks && is_followed_link(&head.headers);
        // A person who types an address, or follows a link in another program, only reads.
        let by_hand = looks || !self.needs_origin;
        let near = |site: &HeaderValue| site == "same-origin" || (by_hand && site == "none");
        if !entered && !head.headers.get_all("sec-fetch-site").iter().all(near) {
            return Err("a page of another site asks");
        }
        match is_among(&self.led_on, host) {
            true if is_entrance && looks => Ok(RequestTarget::LedOn),
            true => Err("at this name nothing is answered but pages"),
            false => Ok(RequestTarget::Here),
        }
    }

    fn check_origin(&self, head: &Parts, host: &str) -> Result<(), &'static str> {
        let origins = head.headers.get_all(ORIGIN);
        if !self.needs_origin {
            let own = |origin: &HeaderValue| self.authorities.iter().any(|it| self.is_at(origin, it));
            return if origins.iter().all(own) { Ok(()) } else { Err("the Origin is not this door") };
        }
        let looks = matches!(head.method, Method::GET | Method::HEAD);
        match origins.iter().count() {
            0 if looks => Ok(()),
            0 => Err("there is no Origin"),
            1 if origins.iter().all(|origin| self.is_at(origin, host)) => Ok(()),
            _ => Err("the Origin is not the page that was asked for"),
        }
    }

    /// Returns whether an origin is a page of this authority.
    fn is_at(&self, origin: &HeaderValue, authority: &str) -> bool {
        let text = origin.as_bytes().strip_prefix(self.at.scheme().as_bytes());
        text.and_then(|it| it.strip_prefix(b"://")).is_some_and(|it| it == authority.as_bytes())
    }
}

/// Returns the only Host of a request.
pub(crate) fn only_host(headers: &HeaderMap) -> Result<&str, &'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
        (Some(Ok(host)), None) => Ok(host),
        (None, _) => Err("there is no Host"),
        (_, Some(_)) => Err("there are several Hosts"),
        _ => Err("the Host is not this door"),
    }
}

/// Returns whether a browser follows a link to a whole document, and does not embed the answer in a page.
fn is_followed_link(headers: &HeaderMap) -> bool {
    let only = |name: &str, value: &[u8]| {
        let mut said = headers.get_all(name).iter();
        said.next().is_some_and(|it| it.as_bytes() == value) && said.next().is_none()
    };
    only("sec-fetch-mode", b"navigate") && only("sec-fetch-dest", b"document")
}
