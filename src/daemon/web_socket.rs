//! The socket by which a proxy brings browsers from elsewhere to the page.

use anyhow::{Result, bail};

use super::Daemon;
use provost_config::WebSettings;
use provost_protocols::own::InProcessApi;

#[cfg(unix)]
use super::GRACE;
#[cfg(unix)]
use provost_protocols::loopback::Shell;
#[cfg(unix)]
use provost_transport::accept::accept_loop;
#[cfg(unix)]
use provost_transport::listen::{SocketFolder, bind_for_group};

/// The error for settings by which no proxy could connect.
#[cfg(unix)]
const NO_PROXY: &str = "web: `public` names an address, and `proxy_uids` no user as whom its proxy runs; for `tailscale serve`, whose \
                        daemon is root's, write proxy_uids = [0]";

impl Daemon {
    /// Opens the socket, if the settings name an address of the page for browsers elsewhere. If the socket cannot be made, that is
    /// reported, and the page at this machine is opened all the same.
    ///
    /// # Errors
    /// A sentence about settings that contradict each other.
    #[cfg(unix)]
    pub(super) fn open_elsewhere(&mut self, api: &InProcessApi, settings: &WebSettings) -> Result<()> {
        if settings.public.is_empty() {
            return Ok(());
        }
        if settings.proxy_uids.is_empty() {
            bail!(NO_PROXY);
        }
        let at = settings.socket.within(&self.start.places.runtime);
        let is_ours = settings.socket.is_among_sockets();
        let bound = match bind_for_group(&at, if is_ours { SocketFolder::Ours } else { SocketFolder::Given })
        {
            Ok(bound) => bound,
            Err(err) => {
                self.say_until_the_end(format!("web.socket: {err}; browsers elsewhere do not have the page"));
                return Ok(());
            }
        };
        let outside: Vec<String> = settings
            .proxy_uids
            .iter()
            .filter(|uid| is_ours && **uid != 0 && **uid != self.uid)
            .map(ToString::to_string)
            .collect();
        if !outside.is_empty() {
            self.say_until_the_end(format!(
                "web.socket: {} is in a folder that only you and root enter, and no proxy of user {}; name a path elsewhere",
                at.display(),
                outside.join(" or ")
            ));
        }
        let shell = Shell::new(self.page_elsewhere(api, &settings.public), self.gate(0, false));
        let public: Vec<String> = settings.public.iter().map(|it| it.as_str().to_owned()).collect();
        tracing::info!(door = "web", socket = %at.display(), public = public.join(" "), "door open for proxies");
        self.shared().0.public = public;
        let uids: std::sync::Arc<[u32]> = settings.proxy_uids.as_slice().into();
        let serve = move |stream, guard| shell.clone().serve_proxied(stream, guard, uids.clone());
        self.doors.spawn(accept_loop(bound, self.capacity.clone(), self.stop.clone(), GRACE, serve));
        Ok(())
    }

    /// Opens nothing, since no proxy can connect on this system.
    ///
    /// # Errors
    /// A sentence, if the settings ask for such an address.
    #[cfg(not(unix))]
    pub(super) fn open_elsewhere(&mut self, _api: &InProcessApi, settings: &WebSettings) -> Result<()> {
        if !settings.public.is_empty() {
            bail!(
                "web: `public` needs a Unix socket for a proxy, which is not to be had on this system; leave it out"
            );
        }
        Ok(())
    }
}
