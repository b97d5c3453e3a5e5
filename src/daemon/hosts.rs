//! The doors that use this daemon's own API without a connection: for agents' hosts over HTTP, and for browsers.

use std::sync::Arc;

use super::Daemon;
use provost_api::Request;
use provost_cli::HookDoor;
use provost_client::{self as client, Client, Replying};
#[cfg(unix)]
use provost_config::PublicOrigin;
use provost_config::{Places, WebRead, WebSettings};
use provost_domain::Principal;
use provost_mcp::{Called, Clients, McpHttp, Settings, recorded_for, sessions_there};
use provost_protocols::loopback::origin;
use provost_protocols::own::{InProcessApi, Own, Page, VerifiedCaller};
use provost_web::{PageAddress, PageParts, Web};

/// A caller that the door has recognised, with the daemon's own API that answers it.
struct Recognised {
    who: VerifiedCaller,
    api: InProcessApi,
}

impl client::InProcess for Recognised {
    fn ask(&self, session: Option<Arc<str>>, request: Request) -> Replying {
        let (who, api) = (self.who.clone(), self.api.clone());
        Box::pin(async move { api.ask(&who, session, request).await })
    }

    fn lets_in(&self) -> bool {
        self.api.lets_in(&self.who)
    }

    fn age_ms(&self) -> Option<u64> {
        self.api.age_ms()
    }
}

/// Makes clients of this daemon for callers that a door has recognised.
fn clients(api: InProcessApi) -> Clients {
    Arc::new(move |who: Principal, token| {
        let agent = who.agent().clone();
        let who = VerifiedCaller { who: Arc::new(who), token, process: None };
        Client::inside(Arc::new(Recognised { who, api: api.clone() }), agent)
    })
}

/// Tells the own API how to find the present sessions of hosts.
pub(super) fn tell_sessions(own: &Own, places: &Places) {
    let runtime = places.runtime.clone();
    own.knows_sessions(Arc::new(move || sessions_there(&runtime)));
}

impl Daemon {
    /// Makes the page for people at this port, which may ask for passkeys from now on.
    pub(super) fn page(&self, api: &InProcessApi, settings: &WebSettings, port: u16) -> Web {
        let names: Vec<String> = settings.names.iter().map(|it| it.as_str().to_owned()).collect();
        let pages = names.iter().map(|host| Page { origin: origin(host, port), host: host.clone() });
        api.serves_pages(pages.collect());
        let signs_in = settings.read == WebRead::Passkey;
        Web::new(PageAddress::Here { names, port, signs_in }, self.page_parts(api))
    }

    /// Makes the page for browsers elsewhere, at these addresses of a proxy.
    #[cfg(unix)]
    pub(super) fn page_elsewhere(&self, api: &InProcessApi, public: &[PublicOrigin]) -> Web {
        let page = |it: &PublicOrigin| Page { origin: it.as_str().to_owned(), host: it.host().to_owned() };
        api.serves_pages(public.iter().map(page).collect());
        let origins: Vec<String> = public.iter().map(|it| it.as_str().to_owned()).collect();
        api.serves_elsewhere(origins.clone());
        Web::new(PageAddress::Elsewhere { origins }, self.page_parts(api))
    }

    fn page_parts(&self, api: &InProcessApi) -> PageParts {
        let inside = api.clone();
        let api = api.clone();
        let clients: provost_web::Clients = Arc::new(move |who, token, process| {
            let agent = who.agent().clone();
            let who = VerifiedCaller { who: Arc::new(who), token, process };
            Client::inside(Arc::new(Recognised { who, api: api.clone() }), agent)
        });
        PageParts { clients, api: inside, engine: self.engine().clone(), stop: self.stop.clone() }
    }

    pub(super) fn hosts_door(&self, settings: Settings, api: InProcessApi) -> McpHttp {
        let clients = clients(api);
        let runtime = self.start.places.runtime.clone();
        let called: Called = Arc::new(move |pid| recorded_for(&runtime, pid));
        let (places, runtime) = (self.start.places.clone(), tokio::runtime::Handle::current());
        let hooks = HookDoor { places, runtime };
        let hooks = Arc::new(move |call| hooks.answer(call));
        McpHttp::new(clients, called, settings, self.stop.clone()).with_hooks(hooks)
    }
}
