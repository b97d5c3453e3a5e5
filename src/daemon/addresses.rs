//! The addresses of the doors at sockets and pipes: those of every daemon, and additional ones.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};

use provost_api::wire;
use provost_auth::keys::KeyRing;
use provost_base::Secret;
use provost_base::limits::ADDRESSES_MAX;
use provost_config::Config;
use provost_protocols::FrontDoor;
use provost_transport::accept::accept_loop;
use provost_transport::listen::{SocketFolder, bind};

use super::{Daemon, GRACE};

impl Daemon {
    /// Listens at an address and serves a door there until the daemon stops.
    pub(super) fn open(&mut self, door: Arc<dyn FrontDoor>, at: &Path, place: SocketFolder) -> Result<()> {
        let named = ["devit", "own"];
        let ours = self.shared().0.doors.iter().filter(|it| named.contains(&&*it.door)).count();
        if ours >= ADDRESSES_MAX {
            bail!(
                "{}: this daemon has {ADDRESSES_MAX} addresses already; use one of those that `provost status` shows",
                at.display()
            );
        }
        let bound = bind(at, place)?;
        let name = door.name();
        tracing::info!(door = name, address = %at.display(), "door open");
        let listed = wire::DoorAt { door: name.into(), address: at.display().to_string() };
        self.shared().0.doors.push(listed);
        let serve = move |stream, guard| door.serve(stream, guard);
        self.doors.spawn(accept_loop(bound, self.capacity.clone(), self.stop.clone(), GRACE, serve));
        Ok(())
    }

    pub(super) fn open_devit(&mut self, at: &Path, place: SocketFolder) -> Result<()> {
        let door: Arc<dyn FrontDoor> = Arc::new(self.devit.clone());
        self.open(door, at, place)
    }

    /// Places the sockets of the wit door in the work trees. Obstacles are reported, and do not
    /// prevent the start.
    #[cfg(unix)]
    pub(super) async fn open_wit(&self, config: &Config) {
        let running = (self.doors.clone(), self.stop.clone(), self.capacity.clone());
        let shared = self.shared.clone();
        let (door, places) = (self.wit.clone(), &self.start.places);
        super::wit_sockets::WitSockets::new(door, places, config.wit.open, running, shared).keep().await;
    }

    /// Opens the addresses that the configuration or `devitd` names in addition to the default one.
    pub(super) fn open_extra(&mut self, config: &Config) -> Result<()> {
        if let Some(socket) = config.devit.socket.clone()
            && let Err(err) = self.open_devit(&socket, SocketFolder::Given)
        {
            // Two repositories may name the same address; the second one still has its default address.
            tracing::warn!("devit.socket: {err:#}");
            self.shared().0.notes.push(format!("devit.socket: {err:#}"));
        }
        let form = self.start.devitd.as_ref().map(|it| (it.socket.clone(), it.secret.clone()));
        form.map_or(Ok(()), |(socket, secret)| self.open_devit_with(&socket, secret))
    }

    /// Opens one more address of the DevIt door. A secret given for it counts there, for this run, and nowhere else;
    /// agents with keys of their own use them there, too.
    pub(super) fn open_devit_with(&mut self, at: &Path, secret: Option<Secret>) -> Result<()> {
        let Some(secret) = secret.filter(|it| it.expose() != self.keys[0].shared().expose()) else {
            return self.open_devit(at, SocketFolder::Given);
        };
        if let Some(why) = provost_config::env::weak_secret(&secret) {
            bail!("the secret for {} is not accepted: {why}", at.display());
        }
        let ring = Arc::new(KeyRing::open(&self.start.places.config.join("keys"))?);
        ring.set_shared(secret)?;
        let door = self.devit.with_keys(ring.clone());
        self.open(Arc::new(door), at, SocketFolder::Given)?;
        self.keys.push(ring);
        Ok(())
    }
}
