//! The one table of settings: name, type, default, unit, marks, and a sentence about its purpose.
//!
//! A row becomes a field of its section's struct, that field's default, the check of its value, and its lines
//! in `config/provost.toml` and `docs/configuration.md`. After changing a row, run the tests once with `UPDATE=1`,
//! which prints both files again.
// tidy: long because it is the one table of settings

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::agent::{AgentConfig, Role, Template, ours};
use super::checks::Mode;
use super::doors::{self, Doors};
use super::load::RefusedWorker;
use super::mcp_tools::McpTools;
use super::notify::{NotifyDetail, NotifyKind};
use super::pool::HostLabel;
use super::push::{PushHost, PushSubject};
use super::rate::Rate;
use super::repository_name::RepositoryName;
use super::resources::Counted;
use super::value::{
    AcrossDoors, ByteSize, Context, DesktopTasks, Durability, Enforce, ImageFormat, ImportFound, KeepLog,
    LogFormat, LogLevel, Mark, PageName, ProxySocket, PublicOrigin, Row, Rules, ScreenBackend, Unchecked,
    Value, Versions, WebOrigin, WebRead, WitOpen, checked, paths,
};
use super::worker::{Worker, built_in_workers};
use super::workflow::Workflow;
use super::writing::{Auto, AutoAcross, ContractsBind, WhenDown};
use provost_base::{AgentId, RepoPath, Ttl};

/// The key of a row: its field's name, or what stands after `as` where the key is a word of Rust's.
macro_rules! key {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $key:literal) => {
        $key
    };
}

/// One section: a struct with a field per row, its defaults, its description, and assignment by key.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $Section:ident {
            $(
                $(#[doc = $says:literal])+
                $name:ident $(as $key:literal)?: $Type:ty = $default:expr, $unit:literal
                $(within $range:expr)? $(, $mark:ident)*;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Debug)]
        pub struct $Section {
            $($(#[doc = $says])+ pub $name: $Type,)+
        }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl $Section {
            /// What the section is for.
            pub const ABOUT: &'static str = concat!($($about),+);

            /// The rows of this section, in the order of the table.
            pub fn rows() -> Vec<Row> {
                Self::default().with_defaults()
            }

            /// The same, with these values as the defaults.
            pub fn with_defaults(&self) -> Vec<Row> {
                vec![$(Row {
                    key: key!($name $($key)?),
                    kind: <$Type as Value>::NAME,
                    words: <$Type as Value>::WORDS,
                    default: self.$name.print(),
                    unit: $unit,
                    marks: &[$(Mark::$mark),*],
                    says: concat!($($says),+).trim_ascii(),
                },)+]
            }

            /// Assigns one key; `None` when the section has no such key.
            pub(super) fn set(
                &mut self,
                key: &str,
                value: &toml::de::DeValue<'_>,
                context: &Context,
            ) -> Option<Result<(), String>> {
                match key {
                    $(key!($name $($key)?) => Some(
                        checked(value, context, None$(.or(Some($range)))?).map(|value| self.$name = value)
                    ),)+
                    _ => None,
                }
            }
        }
    };
}

pub(super) use {key, section};

/// All sections, and the configuration that they make up.
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])+
        [$path:literal] $field:ident: $Section:ident { $($rows:tt)+ }
    )+) => {
        $(section! { $(#[doc = $about])+ $Section { $($rows)+ } })+

        /// Every setting in force, and every worker that may be started or was refused.
        #[derive(Clone, PartialEq, Debug)]
        pub struct Config {
            $(#[doc = concat!("The section `[", $path, "]`.")] pub $field: $Section,)+
            /// What every door over loopback has in its section.
            pub doors: Doors,
            /// Workers by ident, from `[workers.<ident>]`.
            pub workers: BTreeMap<AgentId, Worker>,
            /// Workers whose entry is invalid, by the name in the file: a request for one is answered with the
            /// reason.
            pub refused_workers: BTreeMap<String, RefusedWorker>,
            /// Addresses that get notices, from `[notify.<name>]`.
            pub notify_targets: super::notify::NotifyTargets,
            /// Pools of workers, from `[pool.<name>]`.
            pub pools: BTreeMap<String, super::pool::Pool>,
            /// Agents in the order of the files; each is also a worker of the same name.
            pub agents: Vec<AgentConfig>,
            /// Prices of models' tokens, from `[[price]]`; the first that fits counts.
            pub prices: Vec<super::budget::PriceEntry>,
            /// Budgets, from `[[budget]]`; all of them count.
            pub budgets: Vec<super::budget::BudgetEntry>,
            /// Other names for agents, from `[role.<id>]`.
            pub roles: BTreeMap<AgentId, Role>,
            /// Workflows in the order of the files; [`Config::all_workflows`] adds the built-in ones.
            pub workflows: Vec<Workflow>,
            /// Workflows whose entry is invalid, by id.
            pub refused_workflows: BTreeMap<String, RefusedWorker>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $($field: $Section::default(),)+
                    doors: Doors::default(),
                    workers: built_in_workers(),
                    refused_workers: BTreeMap::new(),
                    notify_targets: Default::default(),
                    pools: BTreeMap::new(),
                    agents: Vec::new(),
                    prices: Vec::new(),
                    budgets: Vec::new(),
                    roles: BTreeMap::new(),
                    workflows: Vec::new(),
                    refused_workflows: BTreeMap::new(),
                }
            }
        }

        impl Config {
            /// Assigns `key` of the section at `path`; `None` when there is no such setting.
            pub(super) fn set(
                &mut self,
                path: &str,
                key: &str,
                value: &toml::de::DeValue<'_>,
                context: &Context,
            ) -> Option<Result<(), String>> {
                if let Some(done) = self.doors.set(path, key, value, context) {
                    return Some(done);
                }
                match path {
                    $($path => self.$field.set(key, value, context),)+
                    _ => None,
                }
            }
        }

        /// Every section with its path, what it is for, and its rows; the workers' table is [`Worker::rows`]. That of a door
        /// over loopback begins with the settings that each such door has.
        pub fn sections() -> Vec<(&'static str, &'static str, Vec<Row>)> {
            let own = vec![$(($path, $Section::ABOUT.trim_ascii(), $Section::rows()),)+];
            doors::beside(own)
        }
    };
}

settings! {
    /// The versions that the daemon announces and accepts, and the time after which it stops by itself.
    ["daemon"] daemon: Daemon {
        /// DevIt worker versions that may REGISTER, one or a list; while empty, any version may and REGISTER is optional.
        expected_worker_version: Versions = Versions::default(), "version", Strict;
        /// The version told to DevIt clients; those with `DEVIT_EXPECTED_DAEMON_VERSION` compare it for equality.
        advertised_version: String = "devitd/0.1.0".into(), "version";
        /// Stop after this long without clients, unfinished tasks and open approvals.
        auto_shutdown_after: Option<Ttl> = None, "duration";
        /// The uid that workers run as when the daemon was started as root with `--allow-root`.
        worker_uid: Option<u32> = None, "uid" within Some(1)..=Some(u32::MAX - 1), Strict, Owner;
    }

    /// The answers to requests that need approval.
    ["daemon.approvals"] approvals: Approvals {
        /// The agent that gets APPROVAL messages, if the policy rule admits it; otherwise only people can answer.
        default_target: AgentId = ours("client:approver"), "ident", Strict;
        /// The daemon denies an unanswered request after this time, or sooner if its rule says so; where the rule has it asked again, it asks first.
        expires: Ttl = Ttl::minutes(60), "duration";
    }

    /// The DevIt door, at which DevIt's clients delegate work.
    ["devit"] devit: Devit {
        /// One more Unix socket to listen on, for clients with a fixed address; it gets mode 0600 and the peer's uid is checked.
        socket: Option<PathBuf> = None, "path";
        /// How far a frame's `ts` may be from the daemon's clock; the daemon refuses other frames as stale.
        window: Ttl = Ttl::minutes(5), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(60), Strict;
        /// Whether the door speaks the unsigned dialect of the published document: the client sends the secret once and gets a token.
        dialect_document: bool = true, "", Strict;
        /// How long an empty POLL of an agent with unfinished tasks waits for a message; clients give up after one second.
        poll_hold: Option<Ttl> = Ttl::from_millis(800), "duration" within None..=Ttl::from_millis(900);
        /// The shortest lease of a task that a worker has collected; a longer task timeout makes a longer lease.
        lease_min: Ttl = Ttl::minutes(15), "duration";
        /// How long an absent worker keeps the tasks given to it.
        away_keep: Ttl = Ttl::minutes(24 * 60), "duration";
        /// How long messages are kept for an agent that does not collect them.
        mail_keep: Ttl = Ttl::minutes(24 * 60), "duration";
    }

    /// The wit door: `.wit/daemon.sock` in the work trees of the repository, for wit's command line, hooks and plugins.
    ["wit"] wit: WitSettings {
        /// Where its sockets are: `found`: in every work tree, once one of them has a folder `.wit`; `always`: in every work tree; `never`: nowhere.
        open: WitOpen = WitOpen::Found, "", Strict;
    }

    /// Agent Protocol, over loopback HTTP. Without `port` here, that of an allowed `.agent-protocol/config.json` counts, if it is not 4700.
    ["agent_protocol"] agent_protocol: AgentProtocolSettings {
        /// How long an agent may be silent; then it counts as offline, its claims are free and another agent leads.
        dead_after: Ttl = Ttl::minutes(1), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(24 * 60);
        /// How often the daemon checks for silent agents; without it, the daemon notices silence at once.
        heartbeat_interval: Option<Ttl> = None, "duration";
        /// How late an agent may report its change of another agent's file that the daemon has already seen: the conflict then has the file's earlier content.
        detection_window: Ttl = Ttl::seconds_clamped(5), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(10);
        /// The project's name in `/status` and on pages; by default the name of its folder.
        project: Option<String> = None, "text";
        /// A folder with the published dashboard, served at `/dashboard/`: the daemon reads its files, follows no links in it, and does not serve hidden files. Without it the daemon serves a plain page that links the JSON views.
        dashboard: Option<PathBuf> = None, "path", Owner;
        /// The agent that leads whenever it is present.
        lead_agent: Option<AgentId> = None, "agent";
        /// Whether a task can begin only when the tasks that it depends on are done.
        honour_dependencies: bool = false, "";
        /// Whether a claim for a task has to be for one of the task's resources.
        strict_scope: bool = false, "";
        /// Whether lists and counts also show agents of other doors, and delegated tasks that are not finished.
        show_foreign: bool = false, "";
        /// The import of `.agent-protocol/protocol.db`, which the published server has left in the repository: `ask`: the daemon reports it once, with the command that imports its events into the timeline; `auto`: the daemon imports it at its start; `never`.
        import: ImportFound = ImportFound::Ask, "", Owner;
        /// Whether heartbeats are events, as in the published server.
        heartbeat_events: bool = true, "";
        /// Files whose changes are reported: globs, as in `.gitignore`. Changes of claimed files, and of files below claimed folders, are always reported; changes of hidden files and of files that git ignores never.
        tracked_paths: Vec<String> = paths(&["src/**", "lib/**", "tests/**"]), "glob";
        /// Files whose changes are not reported.
        ignored_paths: Vec<String> = paths(&["node_modules/**", "dist/**"]), "glob";
    }

    /// The A6s door: the Autonoma daemon protocol over WebSockets on loopback, for editors. Clients that can set no headers show a token as `/ws?token=`.
    ["a6s"] a6s: A6sSettings {
        /// Whether `scan.techDebt` and `scan.modernize` are permitted: an agent reads the whole repository.
        scans: bool = false, "", Strict, Owner;
        /// Whether roles are listed beside the agents.
        list_roles: bool = false, "";
        /// Whether the ids that are built into such plugins (`reviewer-ai` and the like) name the first agent, in that role, if no agent and no `[role]` has the id.
        role_aliases: bool = true, "";
        /// The five phases of an execution, for agents whose entry does not set it: `single`: one run of the agent; `pipeline`: a run for each phase, each with the answer of the phase before, which costs five times as much.
        mode: Mode = Mode::Single, "";
        /// The agent or role that answers questions about selected code in an editor (`code.explain` and the like). By default, or if it does not take such questions, the first working agent that takes them.
        code_agent: Option<AgentId> = None, "ident";
        /// After this time the daemon answers an open question about code with an error; the work goes on, and the same question gets its result later. Editors give up after 30 s.
        soft_deadline: Ttl = Ttl::seconds_clamped(27), "duration" within Ttl::seconds_clamped(1)..=Ttl::seconds_clamped(29);
        /// Files that an apply never writes, regardless of policy: globs, as in `.gitignore`, in upper or lower case. An apply never writes to folders of version control and of agents' tools.
        deny: Vec<String> = paths(&[".env", ".env.local", ".env.*.local", ".envrc", ".netrc", ".npmrc", ".pypirc", "id_rsa", "id_ed25519"]), "glob";
        /// Whether an apply also writes artifacts that are not exactly those of a run here: artifacts that an editor has changed or added. With `false` it writes only the unchanged artifacts of workers, and merges them only with the content that they were made for.
        apply_unknown: bool = true, "";
        /// Whether an apply also writes settings that run later: of agents, editors, shells and hooks of version control, as `docs/settings-that-run-later.md` lists them, and the programs and scripts that they name. The approver of such an apply sees them apart from the others.
        apply_settings: bool = false, "", Strict, Owner;
        /// How long an apply that needs approval waits for it; editors give up after 30 seconds.
        apply_wait: Ttl = Ttl::seconds_clamped(25), "duration" within Ttl::seconds_clamped(1)..=Ttl::seconds_clamped(28);
    }

    /// Passkeys, which sign answers to approvals. Read at the start.
    ["passkeys"] passkeys: PasskeySettings {
        /// Further pages that may ask for a passkey, beside the daemon's own while that is open: scheme, host and port, compared to the letter. A passkey belongs to the host of its page.
        origins: Vec<WebOrigin> = Vec::new(), "origin", Strict, Owner;
    }

    /// The page for people, over loopback HTTP: it shows what needs them and what agents do, and takes answers that a passkey has signed.
    ["web"] web: WebSettings {
        /// By which names browsers ask for the page: `localhost`, or names below it. The first is the one that it goes by, to which addresses lead; each other one is an origin of its own, with passkeys of its own. At `localhost` other programs share cookies and passkeys; it is there for managers of passwords, which take no other name over plain HTTP.
        names: Vec<PageName> = PageName::usual(), "name", Strict, Owner;
        /// The port of the page over all repositories, which `provost web --all` opens. A page at these names and this port may ask for a passkey while the process that listens there is that page.
        all_port: u16 = 4721, "port" within 1..=u16::MAX, Strict, Owner;
        /// Addresses at which browsers elsewhere have the page, over a proxy of yours with a certificate: exactly `https://` and a name of DNS, with a port where that is not 443. Each is an origin of its own, with passkeys of its own; there, reading needs a passkey as well.
        public: Vec<PublicOrigin> = Vec::new(), "origin", Strict, Owner;
        /// Where that proxy comes in: a Unix socket, open for the group of its folder (mode 0660). A name alone is in the folder of the daemon's sockets, which only you and root can enter. It is there while `public` names an address and the page is open.
        socket: ProxySocket = ProxySocket::usual(), "path", Strict, Owner;
        /// The users as whom the proxy runs, by their numbers; processes of other users are refused at the socket. `tailscaled` runs as 0.
        proxy_uids: Vec<u32> = Vec::new(), "uid", Strict, Owner;
        /// The browsers that read the page at the names of this machine: `open`: each of yours; `passkey`: those in which a passkey has signed in, for a desktop that people share; the page over all repositories then shows nothing of the repository. Processes of yours have other ways to read.
        read: WebRead = WebRead::Open, "", Strict, Owner;
    }

    /// Messages to browsers by their push services. A person subscribes each browser on the page, with a passkey: docs/push.md.
    ["push"] push: PushSettings {
        /// The contact for push services: `mailto:you@example.org`, or an address of yours that begins with `https://`. Without it, the first address of `web.public` counts, or the first page of `passkeys.origins` that begins with `https://`; services refuse messages that name neither.
        subject: Option<PushSubject> = None, "address", Strict, Owner;
        /// The events that browsers are told of, in the words of `[notify.NAME]`.
        kinds: Vec<NotifyKind> = PushSettings::usual_kinds(), "", Strict, Owner;
        /// `facts`: the number, the risk, the asker's name and six characters of the digest; `full`: also what agents wrote, marked as such.
        detail: NotifyDetail = NotifyDetail::Facts, "", Strict, Owner;
        /// Push services beside those of Google, Apple, Mozilla and Microsoft: `host`, `host:port`, or `host:port=ADDRESS` for one in your own network. A message goes nowhere else.
        hosts: Vec<PushHost> = Vec::new(), "host", Strict, Owner;
        /// The certificate authority of those hosts (PEM), if it is not a public one.
        authority: Option<PathBuf> = None, "path", Strict, Owner;
    }

    /// Agents' hosts, which speak MCP: through `provost mcp`, and at the door `/mcp` over HTTP on loopback. `provost mcp` works while that door is closed, too.
    ["mcp"] mcp: McpSettings {
        /// The tools that hosts are offered, as sets: `default` (about fifteen, small enough for every request to a model), `all`, or some of `tasks`, `approvals`, `locks`, `intents`, `contracts`, `claims`, `handoffs`, `messages`, `pictures`, `devit`. `provost mcp --tools` overrides it for one host.
        tools: Vec<McpTools> = vec![McpTools::Default], "";
        /// Whether tools declare the schema of their answers. Hosts check answers against it, and no model sees it.
        output_schemas: bool = true, "";
        /// Whether DevIt's names of tools (`devit_delegate` and the like) are offered beside Provost's own: the set `devit`.
        devit_tools: bool = false, "";
    }

    /// Adaptations to one editor alone.
    ["a6s.compat"] compat: A6sCompat {
        /// Whether `background.output` is answered with `{output}` instead of a string if a client has sent `"params":[]`, as only Neovim's plugin does: it then shows separate lines.
        nvim_output_object: bool = false, "";
    }

    /// The agents for the phases of an execution whose agent has the mode `pipeline`. The requested agent does each phase without an entry here.
    ["a6s.pipeline"] pipeline: A6sPipeline {
        /// The agent that collects the facts.
        research: Option<AgentId> = None, "ident";
        /// The agent that plans the work.
        inspect: Option<AgentId> = None, "ident";
        /// The agent that does the work.
        generate: Option<AgentId> = None, "ident";
        /// The agent that improves the work.
        optimize: Option<AgentId> = None, "ident";
        /// The agent that reviews the work.
        review: Option<AgentId> = None, "ident";
    }

    /// The prompt of each phase. `{previous}` stands for the answer of the phase before, which is marked as data like code and context; the other placeholders are those of `[a6s.prompts]`. An agent's `reviewer` gets the prompt of `review` in each mode.
    ["a6s.pipeline.prompts"] phase_prompts: A6sPhasePrompts {
        /// For `research`.
        research: Option<Template> = None, "template";
        /// For `inspect`.
        inspect: Option<Template> = None, "template";
        /// For `generate`.
        generate: Option<Template> = None, "template";
        /// For `optimize`.
        optimize: Option<Template> = None, "template";
        /// For `review`.
        review: Option<Template> = None, "template";
    }

    /// The prompts of agents. Placeholders: `{task}`, `{code}`, `{language}`, `{file}`, `{instructions}`, `{review_focus}`, `{schema}`, `{context}`, `{preamble}`; code and context from an editor always stand between fences, marked as data. Without a template the built-in one applies; docs/agents.md shows them.
    ["a6s.prompts"] prompts: A6sPrompts {
        /// For `agents.invoke`, `background.launch` and steps of workflows.
        invoke: Option<Template> = None, "template";
        /// For `code.explain`.
        explain: Option<Template> = None, "template";
        /// For `code.refactor`.
        refactor: Option<Template> = None, "template";
        /// For `code.generateTests`.
        generate_tests: Option<Template> = None, "template";
        /// For `code.review`.
        review: Option<Template> = None, "template";
        /// For the one retry when a reply does not have the requested form; `{code}` is the reply.
        repair: Option<Template> = None, "template";
        /// For `scan.techDebt` and `scan.modernize`.
        scan: Option<Template> = None, "template";
    }

    /// The git-paw broker's protocol, over loopback HTTP. Without `port` here, that of an allowed `.git-paw/config.toml` counts.
    ["broker"] broker: BrokerSettings {
        /// Whether all messages are also written to `.git-paw/broker.log` in the repository: `found`: if that folder exists; `always`; `never`.
        log: KeepLog = KeepLog::Found, "";
        /// Whether the daemon checks agents' work trees for changed files.
        watch: bool = true, "";
        /// `json`: one object per line; `text`: one sentence per line, as git-paw's own broker writes it.
        log_format: LogFormat = LogFormat::Json, "";
    }

    /// Reactions to messages between agents at the broker door.
    ["supervisor"] supervisor: SupervisorSettings {
        /// Whether the daemon looks for conflicts between agents' announcements and changes, and reports them.
        enabled: bool = true, "";
        /// Whether a commit requests a check: `supervisor.verify-now`.
        verify_on_commit_nudge: bool = true, "";
        /// How long an agent's work stays finished although late signs of work still come. With 0, a commit stays until its agent sends a status other than `working`.
        republish_working_ttl_seconds: u32 = 60, "seconds" within 0..=86_400;
    }

    /// Which conflicts between agents are reported, and when.
    ["supervisor.conflict"] conflict: ConflictSettings {
        /// How long two agents may change one file before the supervisor is asked.
        window_seconds: u32 = 120, "seconds" within 1..=86_400;
        /// Whether agents are told that their intents overlap.
        warn_on_intent_overlap: bool = true, "";
        /// Whether the supervisor is asked about edits in files that another agent has announced or owns.
        escalate_on_violation: bool = true, "";
    }

    /// The hooks of `provost git install`, and `provost guard`.
    ["git"] git: GitSettings {
        /// The result for a commit or push that could not be checked, for example because no daemon runs: `pass`: it goes on, with a warning; `block`: it is refused.
        when_unchecked: Unchecked = Unchecked::Pass, "", Strict;
        /// A check that takes longer counts as impossible.
        deadline: Ttl = Ttl::seconds_clamped(5), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(5), Strict;
        /// Whether the hooks start a daemon if none runs, within that time.
        start_daemon: bool = false, "";
    }

    /// The hooks of agents' hosts.
    ["hooks"] hooks: HostHooks {
        /// The fate of a host's write while no daemon runs: `start`: the hook starts a daemon and waits for it; `pass`: the write goes on; `block`: it is refused.
        when_down: WhenDown = WhenDown::Start, "", Strict;
    }

    /// The command for every notification, outside of the jail. `limits.hooks` sets how many run at once.
    ["hooks.notify"] notify: Notify {
        /// A command line for a login shell; it gets the `DEVIT_NOTIFY_*` and `DEVIT_ACK_*` variables, and those folders of `PATH` that lie outside of the repository: a program in the repository is named by its path.
        command: Option<String> = None, "shell command", Owner;
        /// A hook that runs longer than this is killed, with everything it has started.
        timeout: Ttl = Ttl::minutes(1), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(24 * 60), Owner;
        /// Environment variables of the hook, besides the few that it inherits and the documented ones.
        env: BTreeMap<String, String> = BTreeMap::new(), "", Owner;
    }

    /// Pictures of the screen. The policy judges each one as well.
    ["screenshot"] screenshot: Screenshot {
        /// Whether SCREENSHOT is answered at all.
        enabled: bool = false, "", Strict;
        /// The highest rate of pictures.
        rate_limit: Rate = Rate { count: 10, per_s: 60 }, "count/time", Strict;
        /// The program that takes them; by default `grim` in a Wayland session, else `scrot` or `import`, whichever is installed.
        backend: Option<ScreenBackend> = None, "program";
        /// Image format, as a file extension; `grim` writes `png`, `jpg` and `jpeg`.
        format: ImageFormat = ImageFormat::Png, "extension";
        /// Folder for the pictures: below the workspace, or absolute and below the workspace or the state folder.
        output_dir: String = ".devit/screenshots".into(), "path";
        /// Pictures kept in that folder; the daemon removes the oldest ones beyond it.
        keep: u32 = 100, "pictures" within 1..=10_000;
    }

    /// Notices on the desktop, over the session bus.
    ["desktop"] desktop: Desktop {
        /// Whether the daemon shows notices of waiting approvals and ended tasks.
        enabled: bool = true, "", Owner;
        /// Whether people can answer approvals with a click, if the desktop has buttons.
        answer: bool = true, "", Strict, Owner;
        /// Whether a click can also allow an agent's host to use a tool. The agent itself may listen in on the session bus, and click for you; without this, a click can only deny.
        answer_permissions: bool = false, "", Strict, Owner;
        /// The ends of tasks that get a notice.
        tasks: DesktopTasks = DesktopTasks::All, "", Owner;
        /// Largest number of notices in a minute; the last of them sums up the rest.
        per_minute: u32 = 6, "notices" within 1..=60, Owner;
    }

    /// The workspace of workers.
    ["workspace"] workspace: Workspace {
        /// No worker gets a directory outside this one; without it, the repository's root.
        sandbox_root: Option<PathBuf> = None, "path", Strict;
        /// Paths in the workspace that no jailed worker may change, beyond those of git, agents, editors and shells; a missing one cannot be made. Tier `ll` cannot protect them, and its scan report names changes.
        protect: Vec<RepoPath> = Vec::new(), "path", Strict, Owner;
    }

    /// How long history is kept, and when changes are on disk.
    ["store"] store: StoreSettings {
        /// `verb`: delegations, approvals and the like are on disk before the daemon answers; `full`: every command is.
        durability: Durability = Durability::Verb, "", Strict, Owner;
        /// Finished tasks that stay readable; the daemon drops the oldest ones beyond it.
        tasks_keep: u32 = 100_000, "tasks" within 1_000..=10_000_000, Owner;
        /// Finished tasks older than this are dropped.
        tasks_keep_days: u32 = 30, "days" within 1..=36_500, Owner;
        /// Payloads of events older than this are dropped; counts and the journal's chain stay.
        events_keep_days: u32 = 90, "days" within 1..=36_500, Owner;
        /// A PostgreSQL database that has the state instead of the state folder: `postgres://USER@HOST:5432/DATABASE`, several servers with commas between them, no password.
        url: Option<String> = None, "address", Strict, Owner;
        /// A file with the authority of the servers' certificates, in PEM; without it, the public authorities.
        ca: Option<PathBuf> = None, "path", Strict, Owner;
        /// The repository's name in the database; without it, the name of its folder.
        name: Option<RepositoryName> = None, "text", Strict, Owner;
        /// The name of the secret that has the database's password, which `provost secret add NAME --daemon` keeps.
        password: Option<String> = None, "name", Strict, Owner;
    }

    /// The rules that decide. The system's `policy.toml` lies over them and can only restrict further.
    ["policy"] policy: PolicySettings {
        /// The file that decides, or `builtin:default`, `builtin:strict`, `builtin:open`; without it, `policy.toml` in the user's configuration, else the built-in default.
        file: Option<Rules> = None, "", Strict, Owner;
    }

    /// The daemon's own log. Agents' actions are in the journal, not here.
    ["log"] log: LogSettings {
        /// The least important message that is written.
        level: LogLevel = LogLevel::Info, "";
        /// Folder of the log files; without it, `log` in the state folder.
        dir: Option<PathBuf> = None, "path", Owner;
        /// Log files kept, one a day.
        max_files: u32 = 14, "files" within 1..=1_000, Owner;
    }

    /// Numbers for Prometheus and the daemon's health, over HTTP: `/metrics`, `/livez`, `/readyz` and `/healthz`. A reader proves nothing. Read at the start; docs/metrics.md.
    ["metrics"] metrics: MetricsSettings {
        /// Whether the daemon counts what it does, and answers at `listen`.
        enabled: bool = false, "", Strict, Owner;
        /// The address. 127.0.0.1 and ::1 are both listened at. If the default port is taken, the daemon chooses another one and reports it once; `provost status` shows it.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 4730)), "address", Strict, Owner;
        /// Whether `listen` may be an address that other machines reach.
        elsewhere: bool = false, "", Strict, Owner;
        /// Names by which collectors ask, without a port, beside `localhost` and addresses.
        names: Vec<String> = Vec::new(), "host", Strict, Owner;
    }

    /// Traces of tasks and metrics, sent to a collector of OpenTelemetry over OTLP. Read at the start; docs/metrics.md.
    ["telemetry"] telemetry: TelemetrySettings {
        /// Its address: `https://`, or `http://` with a loopback address. The daemon adds `/v1/traces` and `/v1/metrics`. Without it, nothing is sent.
        otlp: Option<String> = None, "address", Strict, Owner;
        /// The name of the secret with a header of requests, as `name: value`, which `provost secret add NAME --daemon` keeps.
        headers: Option<String> = None, "name", Strict, Owner;
        /// A file with the authority of its certificate, in PEM; without it, the public authorities.
        authority: Option<PathBuf> = None, "path", Strict, Owner;
        /// How often what has come together is sent.
        every: Ttl = Ttl::seconds_clamped(15), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(10), Strict, Owner;
        /// One of so many commands is a span of its own; with 0, none.
        commands: u32 = 100, "commands" within 0..=1_000_000, Strict, Owner;
    }

    /// Agents that work side by side: the index of the code that they edit, and the effect of their locks.
    ["coordination"] coordination: Coordination {
        /// The reaction of `provost git`'s pre-commit hook to a change of a symbol that another agent has locked: `deny`: refuses the commit; `advise`: warns; `off`: nothing.
        enforce: Enforce = Enforce::Advise, "", Strict;
        /// The answer to a claim, lock, intent or plan for a place that another agent has through another door: `advise`: the daemon grants it, and tells both agents; `deny`: the daemon refuses it, with its protocol's error.
        across_doors: AcrossDoors = AcrossDoors::Advise, "", Strict;
        /// Where an accepted contract binds: `everywhere`: on all branches; `branch`: on the branch of the work tree in which it was offered, and for merges, which bring branches together.
        contracts: ContractsBind = ContractsBind::Everywhere, "";
        /// The effect of a write that a host's hook reports: `hold`: its agent holds what the write touches, and other agents of the same work tree cannot write it; agents of other work trees are told; `announce`: all of them are told; `off`: nothing.
        auto: Auto = Auto::Hold, "";
        /// The effect of such a lease in other work trees of the repository, on this host and on others: `announce`: their agents are told; `hold`: they cannot write it either, for people who merge at once or work on one branch alone.
        auto_across: AutoAcross = AutoAcross::Announce, "";
        /// How long an agent holds what it has written, after its last write there.
        auto_ttl: Ttl = Ttl::minutes(10), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(24 * 60);
        /// Whether subagents of one session keep each other from writing the same.
        auto_subagents: bool = false, "";
        /// Whether the daemon reads the repository in the background, so that it knows callers in other files.
        index: bool = true, "", Owner;
        /// The owners of files: patterns as in a `CODEOWNERS`, each with the agents, separated by blanks. The last matching one decides; those of a `CODEOWNERS` come before.
        owners: BTreeMap<String, String> = BTreeMap::new(), "";
        /// The number of units of each counted kind of resource: with `gpu = 2`, `@gpu:2` asks for both units, and `@gpu` for one. For any other kind, the text after the colon is a name.
        resources: Counted = Counted::default(), "";
        /// Largest number of source files that are read for it; the daemon reports that the others are missing.
        index_files: u32 = 20_000, "files" within 1..=50_000, Owner;
    }

    /// Bounds of the changes that runs make in their private copies. More changed files than fit fail the run.
    ["changes"] changes: Changes {
        /// Changed files of one run.
        files: u32 = provost_base::limits::CHANGED_FILES_USUAL as u32, "files" within 1..=2_000, Owner;
        /// The contents of the changed files of one run together; one file has at most 8 MiB.
        size: ByteSize = ByteSize(provost_base::limits::CHANGED_BYTES_USUAL), "bytes" within ByteSize(1 << 10)..=ByteSize(64 << 20), Owner;
        /// Files that an editor, or another client that brings their contents, applies in one call; by the A6s protocol at most 500.
        files_per_call: u32 = provost_base::limits::APPLY_FILES_USUAL as u32, "files" within 1..=2_000, Owner;
        /// Runs whose changes are kept; the oldest go first.
        runs: u32 = provost_base::limits::CHANGESETS_KEPT_MAX as u32, "runs" within 1..=10_000, Owner;
        /// How long the changes of a run are kept.
        days: u32 = provost_base::limits::CHANGESETS_KEPT_DAYS as u32, "days" within 1..=365, Owner;
    }

    /// The git work trees in which runs work with `provost delegate --worktree`.
    ["worktrees"] worktrees: WorkTreeSettings {
        /// The folder in which they lie, absolute and outside of the repository; by default a folder beside the daemon's state.
        folder: Option<PathBuf> = None, "path", Owner;
    }

    /// How branches are merged into the trunk.
    ["merge"] merge: Merge {
        /// The checks that run on the merged tree before the trunk is moved: names of workers, or command lines for the worker `shell`. Each has to succeed.
        checks: Vec<String> = Vec::new(), "", Owner;
        /// How long each of these checks may take.
        check_timeout: Ttl = Ttl::minutes(30), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(24 * 60), Owner;
    }

    /// In which order work begins.
    ["queue"] queue: QueueSettings {
        /// Agents that may give work the priority `high`, if they prove their names with a token or a key; the user may, from a terminal or a script where no agent has spoken.
        high_priority: Vec<AgentId> = Vec::new(), "ident", Strict, Owner;
    }

    /// The labels of this host.
    ["host"] host: HostSettings {
        /// Words by which `provost delegate --on LABEL` asks for this host, such as `gpu` or `linux`.
        labels: Vec<HostLabel> = Vec::new(), "label", Strict, Owner;
    }

    /// Limits of concurrent work.
    ["limits"] limits: Limits {
        /// Jailed workers running at the same time; further tasks wait their turn.
        workers: u32 = provost_base::limits::WORKERS_USUAL, "workers" within 1..=256, Owner;
        /// Unfinished tasks that one agent may have delegated.
        tasks_per_agent: u32 = 256, "tasks" within 1..=10_000, Owner;
        /// Notification hooks running at the same time; further ones wait.
        hooks: u32 = 8, "hooks" within 1..=64, Owner;
    }
}
