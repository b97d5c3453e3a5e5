//! The doors over TCP: the port of each, and the treatment of ports that are taken.
//!
//! Two repositories on one machine want the same ports. The daemon that comes second uses other ports, and
//! reports that. It replaces no port that a configuration names, unless it is told to. It remembers the ports
//! that it has used, so that it gets them again.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};

use super::{Daemon, GRACE};
use provost_api::wire::DoorAt;
use provost_auth::loopback::KNOWS_PEERS;
use provost_config::{Config, DoorSettings, Loaded, LoopbackAuth, McpTools, Ports};
use provost_domain::{DOOR_OPENED, Door};
use provost_mcp::{McpHttp, Settings as Offered};
use provost_protocols::a6s::{A6s, ClientQuirks};
use provost_protocols::agent_protocol::{AgentProtocol, Shown};
use provost_protocols::broker::Broker;
use provost_protocols::loopback::{Carriers, Gate, LoopbackDoor, Shell, origin};
use provost_protocols::own::InProcessApi;
use provost_system::{Listener, listener_at};
use provost_transport::accept::accept_loop;
use provost_transport::loopback::{Loopback, bind};
use provost_web::Web;

/// The treatment of a port that another process has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenPorts {
    /// Use another port; refuse to start if a configuration names this one.
    Refuse,
    /// Use another port; leave the door shut if a configuration names this one.
    Avoid,
    /// Use another port, even if a configuration names this one.
    Replace,
}

/// A port that a door asks for.
pub(super) struct Wanted {
    /// The section of the port's setting, and the setting.
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    pub(super) port: u16,
    /// Whether a configuration or a variable names the port.
    pub(super) written: bool,
    /// The port that the door of this repository had last.
    last: Option<u16>,
    /// The proof that a request needs.
    auth: LoopbackAuth,
}

/// The arguments for making doors, in addition to the daemon.
struct With<'a> {
    config: &'a Config,
    /// The daemon's own API.
    api: &'a InProcessApi,
}

/// A protocol that this daemon can answer at a door over TCP.
trait Wired: LoopbackDoor {
    /// Makes the door that answers at this port.
    fn wired(daemon: &Daemon, with: &With<'_>, port: u16) -> Self;
}

impl Wired for AgentProtocol {
    fn wired(daemon: &Daemon, with: &With<'_>, port: u16) -> Self {
        let settings = &with.config.agent_protocol;
        let shown = Shown { project: settings.project.clone(), dashboard: settings.dashboard.clone() };
        Self::new(daemon.provost.clone(), port, shown, daemon.stop.clone())
    }
}

impl Wired for Broker {
    fn wired(daemon: &Daemon, with: &With<'_>, _port: u16) -> Self {
        daemon.broker(with.config)
    }
}

impl Wired for A6s {
    fn wired(daemon: &Daemon, with: &With<'_>, _port: u16) -> Self {
        let quirks = ClientQuirks {
            objects_to_neovim: with.config.compat.nvim_output_object,
            apply_wait: with.config.a6s.apply_wait.as_duration(),
        };
        let door = Self::new(daemon.agents.clone(), quirks);
        daemon.doors.spawn(door.clone().tell(daemon.stop.clone()));
        door
    }
}

impl Wired for McpHttp {
    fn wired(daemon: &Daemon, with: &With<'_>, _port: u16) -> Self {
        let settings = &with.config.mcp;
        let devit = settings.devit_tools.then_some(McpTools::Devit);
        let offered = Offered {
            tools: settings.tools.iter().copied().chain(devit).map(|it| it.as_str().to_owned()).collect(),
            output_schemas: settings.output_schemas,
            screenshots: with.config.screenshot.enabled,
        };
        daemon.hosts_door(offered, with.api.clone())
    }
}

impl Wired for Web {
    fn wired(daemon: &Daemon, with: &With<'_>, port: u16) -> Self {
        daemon.page(with.api, &with.config.web, port)
    }
}

/// The result of binding a port, with a note about it.
struct Got {
    bound: Option<Loopback>,
    note: Option<String>,
    /// Whether another port took the place of the wanted one, which the person who starts the daemon is told once.
    moved: bool,
}

impl Daemon {
    /// Opens the doors over TCP.
    ///
    /// # Errors
    /// A sentence, if a port is taken and no setting allows another one.
    pub(super) async fn open_loopback(&mut self, loaded: &Loaded, api: InProcessApi) -> Result<()> {
        let before = Ports::of(&self.start.places);
        let mut ports = Ports::ours(&self.start.places);
        let with = With { config: &loaded.config, api: &api };
        for door in Door::ALL {
            let Some(settings) = loaded.config.doors.of(*door).filter(|it| it.enabled) else { continue };
            let wanted = Wanted::new(*door, settings, before.of_door(*door), loaded);
            ports.put(*door, self.open_door(*door, &with, &wanted).await?);
        }
        if let Some(port) = ports.of_door(Door::AgentProtocol) {
            let details = serde_json::json!({ "port": port });
            self.record(DOOR_OPENED, Door::AgentProtocol.name(), details).await?;
        }
        if let Err(err) = ports.write(&self.start.places) {
            tracing::warn!(%err, "the ports are not remembered");
        }
        Ok(())
    }

    /// Opens the page for people, although its section leaves it shut, until the daemon stops; returns its address.
    ///
    /// # Errors
    /// A sentence, if its port is not available.
    pub(super) async fn open_page(&mut self, api: InProcessApi) -> Result<String> {
        let address = |doors: &[DoorAt]| {
            let open = doors.iter().find(|it| it.door == Door::Web.name());
            open.map(|it| format!("{}/", it.address))
        };
        if let Some(open) = address(&self.shared().0.doors) {
            return Ok(open);
        }
        let loaded = super::load_config(&self.start)?;
        let with = With { config: &loaded.config, api: &api };
        let settings = loaded.config.doors.of(Door::Web).cloned().unwrap_or_default();
        // The doors that are already open are on record.
        let known = Ports::of(&self.start.places);
        let is_ours = known.pid == std::process::id();
        let mut ports = if is_ours { known } else { Ports::ours(&self.start.places) };
        let wanted = Wanted::new(Door::Web, &settings, ports.of_door(Door::Web), &loaded);
        let port = self.open_door(Door::Web, &with, &wanted).await?;
        ports.put(Door::Web, port);
        if let Err(err) = ports.write(&self.start.places) {
            tracing::warn!(%err, "the ports are not remembered");
        }
        let shut = || anyhow!("the page's port cannot be had; see `provost daemon status`");
        let open = address(&self.shared().0.doors);
        open.ok_or_else(shut)
    }

    /// Opens a door with its handler; `None` if it stays shut, which was reported.
    async fn open_door(&mut self, door: Door, with: &With<'_>, wanted: &Wanted) -> Result<Option<u16>> {
        match door {
            Door::AgentProtocol => self.open_at(door, AgentProtocol::wired, with, wanted).await,
            Door::Broker => self.open_at(door, Broker::wired, with, wanted).await,
            Door::A6s => self.open_at(door, A6s::wired, with, wanted).await,
            Door::Mcp => self.open_at(door, McpHttp::wired, with, wanted).await,
            Door::Web => {
                let port = self.open_at(door, Web::wired, with, wanted).await?;
                if port.is_some() {
                    self.open_elsewhere(with.api, &with.config.web)?;
                }
                Ok(port)
            }
            Door::Devit | Door::Own | Door::Internal | Door::Worker | Door::Wit => Ok(None),
        }
    }

    /// Opens one door; `None` if it stays shut, which was reported.
    async fn open_at<D: LoopbackDoor>(
        &mut self,
        door: Door,
        make: impl FnOnce(&Self, &With<'_>, u16) -> D,
        with: &With<'_>,
        wanted: &Wanted,
    ) -> Result<Option<u16>> {
        let Wanted { section: name, auth, .. } = *wanted;
        if auth == LoopbackAuth::Peer && !KNOWS_PEERS {
            bail!("{name}: this system does not say who connects; set `auth = \"token\"` in `[{name}]`");
        }
        if door == Door::Web && auth == LoopbackAuth::Token {
            let why = if KNOWS_PEERS {
                "leave `auth` out"
            } else {
                "this system does not say who connects, so it has to stay shut"
            };
            bail!("{name}: a browser that follows a link shows no token; {why}");
        }
        if door == Door::Web && with.config.web.names.is_empty() {
            bail!("{name}: `names` is empty, so that no browser could ask for the page; leave it out");
        }
        let Some(bound) = self.bound(wanted).await? else { return Ok(None) };
        let port = bound.port();
        let usual = door.loopback().map_or("127.0.0.1", |at| at.host);
        let page = with.config.web.names.first().filter(|_| door == Door::Web);
        let address = origin(page.map_or(usual, |it| it.as_str()), port);
        tracing::info!(door = name, address, "door open");
        self.shared().0.doors.push(DoorAt { door: name.into(), address });
        let gate = self.gate(port, auth == LoopbackAuth::Token);
        let shell = Shell::new(make(self, with, port), gate);
        let serve = move |accepted, guard| shell.clone().serve(accepted, guard);
        self.doors.spawn(accept_loop(bound, self.capacity.clone(), self.stop.clone(), GRACE, serve));
        Ok(Some(port))
    }

    /// Binds the requested port, or another in its place; `None` if the door stays shut, which was reported.
    ///
    /// # Errors
    /// A sentence, if the port is taken and no setting allows another one.
    pub(super) async fn bound(&mut self, wanted: &Wanted) -> Result<Option<Loopback>> {
        let Got { bound, note, moved } = self.bind(wanted).await?;
        match note.map(|note| format!("{}: {note}", wanted.section)) {
            Some(note) if moved => {
                tracing::warn!("{note}");
                self.shared().0.moved.push(note);
            }
            Some(note) => self.say_until_the_end(note),
            None => {}
        }
        Ok(bound)
    }

    pub(super) fn gate(&self, port: u16, demands_token: bool) -> Gate {
        Gate {
            port,
            uid: self.uid,
            names: Arc::clone(&self.names),
            provost: Some(self.provost.clone()),
            demands_token,
            carriers: Carriers::default(),
        }
    }

    pub(super) fn say_until_the_end(&mut self, note: String) {
        tracing::warn!("{note}");
        self.shared().0.notes.push(note.clone());
        self.lasting_notes.push(note);
    }

    async fn bind(&self, wanted: &Wanted) -> Result<Got> {
        let err = match wanted.try_first() {
            Ok(bound) => return Ok(Got { bound: Some(bound), note: None, moved: false }),
            Err(err) => err,
        };
        let Wanted { section, key, port, written, .. } = wanted;
        let who = match err.kind() {
            ErrorKind::AddrInUse => self.holder(*port).await,
            _ => format!("cannot be had: {err}"),
        };
        let may_move = match self.start.ports {
            TakenPorts::Replace => true,
            TakenPorts::Avoid | TakenPorts::Refuse => !written,
        };
        if may_move {
            let bound = wanted.try_others().map_err(|err| anyhow!("{section}: no port is free: {err}"))?;
            let note = format!("port {port} {who}; listening at port {} instead", bound.port());
            return Ok(Got { bound: Some(bound), note: Some(note), moved: true });
        }
        let help = format!(
            "use `provost up --auto-ports` for any free one, or name another: `{key}` in `[{section}]`; \
             `enabled = false` there shuts the door"
        );
        if self.start.ports == TakenPorts::Avoid {
            let note = format!("port {port} {who}; the door stays shut; {help}");
            return Ok(Got { bound: None, note: Some(note), moved: false });
        }
        Err(anyhow!("{section}: port {port} {who}; {help}"))
    }

    /// Describes the process that has a port.
    async fn holder(&self, port: u16) -> String {
        let places = self.start.places.clone();
        let look = move || (Ports::held_elsewhere(&places, port), listener_at(port));
        // Searching all processes may take a while.
        match tokio::task::spawn_blocking(look).await {
            Ok((Some(other), _)) => {
                format!("is taken by the daemon of {} (process {})", other.root, other.pid)
            }
            Ok((None, Some(Listener { process: Some((pid, command)), .. }))) => {
                format!("is taken by process {pid} ({command})")
            }
            Ok((None, Some(Listener { uid, process: None }))) if uid == self.uid => {
                "is taken by another process of yours".into()
            }
            Ok((None, Some(Listener { uid, process: None }))) => {
                format!("is taken by a process of the user with uid {uid}")
            }
            _ => "is taken".into(),
        }
    }
}

impl Wanted {
    fn new(door: Door, settings: &DoorSettings, last: Option<u16>, loaded: &Loaded) -> Self {
        let section = door.name();
        let written = loaded.origins.contains_key(&format!("{section}.port"));
        Self { section, key: "port", port: settings.port, written, last, auth: settings.auth }
    }

    /// Describes a port that belongs to no door, by its setting's name.
    pub(super) fn of_setting(section: &'static str, key: &'static str, port: u16, loaded: &Loaded) -> Self {
        let written = loaded.origins.contains_key(&format!("{section}.{key}"));
        Self { section, key, port, written, last: None, auth: LoopbackAuth::Peer }
    }

    /// Binds the requested port; if any port will do, prefers the last one.
    fn try_first(&self) -> io::Result<Loopback> {
        if self.port == 0 { self.try_others() } else { bind(self.port) }
    }

    fn try_others(&self) -> io::Result<Loopback> {
        if let Some(last) = self.last
            && let Ok(bound) = bind(last)
        {
            return Ok(bound);
        }
        bind(0)
    }
}
