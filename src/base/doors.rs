//! The table of doors: for each protocol its name, the place where its clients find it, and the rights of
//! a name without proof.
//!
//! From a row come the door's settings, its port and the record of that, the environment variables of
//! `provost env`, the words of rules' `when.door`, the rights of names, and the page `docs/doors.md`.

use serde::{Deserialize, Serialize};

use super::Scope;

/// The rights of a name without proof, at a door where such names take part and do no more.
const TAKES_PART: &[Scope] = &[Scope::Read, Scope::Join, Scope::Coordinate];

/// The rights of a name at a door where it may also hand work to workers.
const DELEGATES: &[Scope] = &[Scope::Read, Scope::Join, Scope::Coordinate, Scope::Delegate];

/// The rights of a name at a door where it may do whatever an agent may do.
pub const AGENT: &[Scope] = &[Scope::Read, Scope::Join, Scope::Coordinate, Scope::Delegate, Scope::Work];

/// The name under which the page for people reads.
pub const PAGE: &str = "web-page";

/// The name under which a page of the Agent Protocol acts if it names no agent.
pub const DASHBOARD: &str = "dashboard";

/// One row of the table of doors: all facts about one protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoorRow {
    /// As written in events, rules and settings: the door's own settings stand in the section of this name.
    pub name: &'static str,
    /// The protocol, for people.
    pub protocol: &'static str,
    /// Where clients find it.
    pub at: At,
    /// The environment variables that tell clients where it is, each with a sentence for the documents.
    pub variables: &'static [(&'static str, &'static str)],
    /// The rights of a process of this user under a name without proof; `None` where a name needs a proof.
    pub unproved: Option<&'static [Scope]>,
    /// What the crew of Agent Protocol is told of agents that use the door, where the configuration shows them.
    pub to_crew: ShownToCrew,
    /// The name under which the door's own page acts; at this door it means that page alone.
    pub page: Option<&'static str>,
    /// Whether the clients are agents' hosts: a process that speaks at such a door counts as one.
    pub is_for_hosts: bool,
}

/// What the crew of Agent Protocol is told of agents that use a door and are not members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownToCrew {
    /// Agents that use the door are listed, and it is named as their tool.
    Listed,
    /// An agent that is listed for another door may have this one named as its tool.
    AsTool,
    /// Nothing.
    Nothing,
}

/// Some of the requests at a door over loopback HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Requests {
    /// All of them.
    All,
    /// Those with another method than `GET` and `HEAD`.
    Writing,
    /// None of them.
    None,
}

/// Where clients find a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// At a socket of the repository's daemon, or on Windows a named pipe, that is called after the door.
    Socket,
    /// The door has sockets in the work trees.
    WorkTrees,
    /// The door has a port of the loopback addresses.
    Loopback(LoopbackAt),
    /// At a socket that the daemon makes for one run of a jailed worker.
    Run,
    /// Nowhere: the daemon calls itself.
    Nowhere,
}

/// A port of the loopback addresses, and what is said of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopbackAt {
    /// The port where no setting names one.
    pub port: u16,
    /// Whether the door is open where no setting says so.
    pub is_open: bool,
    /// The scheme of its address.
    pub scheme: &'static str,
    /// The name of this machine in its address.
    pub host: &'static str,
    /// The path of its address.
    pub path: &'static str,
    /// The environment variable that sets the port where no file does.
    pub port_variable: &'static str,
    /// The requests that may speak in an agent's name. Before one of these is answered, its process is looked up.
    pub speaks: Requests,
    /// The requests that name their sender. A process that hides its open files cannot make one: it would count as a person later.
    pub names_sender: Requests,
}

impl LoopbackAt {
    /// The address for clients, at this port.
    pub fn address(&self, port: u16) -> String {
        self.address_by(self.host, port)
    }

    /// The address for clients by another name of this machine.
    pub fn address_by(&self, host: &str, port: u16) -> String {
        format!("{}://{host}:{port}{}", self.scheme, self.path)
    }
}

/// The type of doors from their rows.
macro_rules! doors {
    ($($(#[doc = $about:literal])+ $Door:ident $row:expr;)+) => {
        /// The front door a caller came through.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Door {
            $($(#[doc = $about])+ $Door,)+
        }

        impl Door {
            /// All doors, in the order of the table.
            pub const ALL: &'static [Door] = &[$(Door::$Door,)+];

            /// The row of this door in the table.
            pub const fn row(self) -> &'static DoorRow {
                match self {
                    $(Door::$Door => const { &$row },)+
                }
            }

            /// The sentence about the door in `docs/doors.md`.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Door::$Door => concat!($($about),+).trim_ascii(),)+
                }
            }
        }
    };
}

doors! {
    /// The DevIt daemon protocol: signed frames, one per line, of orchestrators, workers and approvers.
    Devit DoorRow {
        name: "devit",
        protocol: "DevIt",
        at: At::Socket,
        variables: &[
            ("DEVIT_SOCK", "Address of the DevIt door, for devit-smart and devit-worker."),
            ("DEVIT_DAEMON_SOCKET", "Address of the DevIt door, for the DevIt CLI and its MCP server."),
        ],
        unproved: None,
        to_crew: ShownToCrew::Listed,
        page: None,
        is_for_hosts: false,
    };
    /// Provost's own API: the command line and the tools built on it.
    Own DoorRow {
        name: "own",
        protocol: "Provost",
        at: At::Socket,
        variables: &[],
        unproved: Some(AGENT),
        to_crew: ShownToCrew::Nothing,
        page: None,
        is_for_hosts: false,
    };
    /// The daemon itself: effects that report back.
    Internal DoorRow {
        name: "internal",
        protocol: "none",
        at: At::Nowhere,
        variables: &[],
        unproved: None,
        to_crew: ShownToCrew::Nothing,
        page: None,
        is_for_hosts: false,
    };
    /// The door that was made for one run of a jailed worker.
    Worker DoorRow {
        name: "worker",
        protocol: "DevIt, without signatures",
        at: At::Run,
        variables: &[],
        unproved: None,
        to_crew: ShownToCrew::Listed,
        page: None,
        is_for_hosts: false,
    };
    /// The wit protocol: JSON requests of wit's command line, hooks and plugins.
    Wit DoorRow {
        name: "wit",
        protocol: "wit",
        at: At::WorkTrees,
        variables: &[(
            "WIT_REPO_ROOT",
            "The work tree whose `.wit` wit's clients are to find from its subdirectories, too.",
        )],
        unproved: Some(TAKES_PART),
        to_crew: ShownToCrew::Listed,
        page: None,
        is_for_hosts: false,
    };
    /// Agent Protocol, over loopback HTTP.
    AgentProtocol DoorRow {
        name: "agent_protocol",
        protocol: "Agent Protocol v0.1",
        at: At::Loopback(LoopbackAt {
            port: 4700,
            is_open: true,
            scheme: "http",
            host: "127.0.0.1",
            path: "",
            port_variable: "PROVOST_AGENT_PROTOCOL_PORT",
            speaks: Requests::Writing,
            names_sender: Requests::Writing,
        }),
        variables: &[(
            "AGENT_PROTOCOL_URL",
            "Address of Agent Protocol, for scripts; its own adapters take a port.",
        )],
        unproved: Some(TAKES_PART),
        to_crew: ShownToCrew::Nothing,
        page: Some(DASHBOARD),
        is_for_hosts: false,
    };
    /// The git-paw broker's protocol, over loopback HTTP.
    Broker DoorRow {
        name: "broker",
        protocol: "git-paw broker",
        at: At::Loopback(LoopbackAt {
            port: 9119,
            is_open: true,
            scheme: "http",
            host: "127.0.0.1",
            path: "",
            port_variable: "PROVOST_BROKER_PORT",
            speaks: Requests::Writing,
            names_sender: Requests::Writing,
        }),
        variables: &[("GIT_PAW_BROKER_URL", "Address of the broker, for git-paw's agents and hooks.")],
        unproved: Some(TAKES_PART),
        to_crew: ShownToCrew::Listed,
        page: None,
        is_for_hosts: false,
    };
    /// The Autonoma daemon protocol, over WebSockets on loopback, for editors.
    A6s DoorRow {
        name: "a6s",
        protocol: "Autonoma (A6s)",
        at: At::Loopback(LoopbackAt {
            port: 9876,
            is_open: true,
            scheme: "ws",
            host: "127.0.0.1",
            path: "/ws",
            port_variable: "PROVOST_A6S_PORT",
            // A WebSocket begins with a GET, and says later who speaks.
            speaks: Requests::All,
            names_sender: Requests::All,
        }),
        variables: &[("A6S_URL", "Address of the A6s door, for scripts; editors' plugins take a port.")],
        // An editor hands work to workers as a person's own command does. The jail binds those, and policy judges each.
        unproved: Some(DELEGATES),
        to_crew: ShownToCrew::AsTool,
        page: None,
        is_for_hosts: false,
    };
    /// MCP over loopback HTTP, for agents' hosts.
    Mcp DoorRow {
        name: "mcp",
        protocol: "MCP",
        at: At::Loopback(LoopbackAt {
            port: 4710,
            is_open: true,
            scheme: "http",
            host: "127.0.0.1",
            path: "/mcp",
            port_variable: "PROVOST_MCP_PORT",
            // A GET opens a session's stream; but it also reads pages for people, who have no name.
            speaks: Requests::All,
            names_sender: Requests::Writing,
        }),
        variables: &[("PROVOST_MCP_URL", "Address of MCP over HTTP, for the configuration of agents' hosts.")],
        // As much as through `provost mcp`.
        unproved: Some(AGENT),
        to_crew: ShownToCrew::AsTool,
        page: None,
        is_for_hosts: true,
    };
    /// The page for people, over loopback HTTP: it shows what needs them and what agents do, and takes answers that a passkey has signed.
    Web DoorRow {
        name: "web",
        protocol: "HTML, for browsers",
        at: At::Loopback(LoopbackAt {
            port: 4720,
            is_open: false,
            scheme: "http",
            // Browsers lead each name below `localhost` to this machine, and other programs here do not share the page's cookies.
            host: "provost.localhost",
            path: "/",
            port_variable: "PROVOST_WEB_PORT",
            speaks: Requests::Writing,
            // A request counts by the passkey's signature in it.
            names_sender: Requests::None,
        }),
        variables: &[("PROVOST_WEB_URL", "Address of the page, for browsers.")],
        unproved: Some(&[Scope::Read]),
        to_crew: ShownToCrew::AsTool,
        page: Some(PAGE),
        is_for_hosts: false,
    };
}

impl Door {
    /// As written in events, rules and settings.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The names under which the doors' own pages act.
    pub fn pages() -> impl Iterator<Item = &'static str> {
        Door::ALL.iter().filter_map(|door| door.row().page)
    }

    /// Its port of the loopback addresses, if it has one.
    pub const fn loopback(self) -> Option<&'static LoopbackAt> {
        match &self.row().at {
            At::Loopback(at) => Some(at),
            At::Socket | At::WorkTrees | At::Run | At::Nowhere => None,
        }
    }

    /// The doors that a caller can come in through, by name.
    pub const ENTRANCES: &[(&str, Door)] = &{
        let mut all = [("", Door::Devit); Door::ALL.len() - 1];
        let (mut from, mut to) = (0, 0);
        while from < Door::ALL.len() {
            let door = Door::ALL[from];
            if !matches!(door.row().at, At::Nowhere) {
                all[to] = (door.name(), door);
                to += 1;
            }
            from += 1;
        }
        assert!(to == all.len(), "one door, the daemon's own, is no entrance");
        all
    };

    /// The doors over loopback, each with its port.
    pub fn over_loopback() -> impl Iterator<Item = (Door, &'static LoopbackAt)> {
        Door::ALL.iter().filter_map(|door| Some((*door, door.loopback()?)))
    }

    /// The door over loopback of this name.
    pub fn at_loopback_named(name: &str) -> Option<Door> {
        Door::over_loopback().map(|(door, _)| door).find(|door| door.name() == name)
    }
}
