//! The one table of settings: name, type, default, unit, marks, and a sentence that says what it is for.
//!
//! A row becomes a field of its section's struct, that field's default, the check of its value, and its lines
//! in `config/provost.toml` and `docs/configuration.md`. After changing a row, run the tests once with
//! `UPDATE=1`, which prints both files anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::agent::{Agent, Role, Template};
use super::load::RefusedWorker;
use super::mcp_tools::McpTools;
use super::rate::Rate;
use super::rounds::Mode;
use super::value::{
    AcrossDoors, ByteSize, Context, DesktopTasks, Durability, Enforce, Git, ImageFormat, ImportFound,
    KeepLog, LogFormat, LogLevel, LoopbackAuth, Mark, Network, ParseMode, Row, Rules, ScreenBackend, Tier,
    Unchecked, Value, Versions, WitOpen, WorkerKind, checked,
};
use super::worker::Copies;
use super::workflow::Workflow;
use crate::base::{AgentId, Json, RepoPath, Ttl};

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
                let defaults = Self::default();
                vec![$(Row {
                    key: key!($name $($key)?),
                    kind: <$Type as Value>::NAME,
                    words: <$Type as Value>::WORDS,
                    default: defaults.$name.print(),
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
            /// Workers by ident, from `[workers.<ident>]`.
            pub workers: BTreeMap<AgentId, Worker>,
            /// Workers whose entry cannot be used, by the name in the file: asking for one is answered with why.
            pub refused_workers: BTreeMap<String, RefusedWorker>,
            /// Agents in the order of the files; each is a worker of the same name besides.
            pub agents: Vec<Agent>,
            /// Other names for agents, from `[role.<id>]`.
            pub roles: BTreeMap<AgentId, Role>,
            /// Workflows in the order of the files; [`Config::all_workflows`] has those besides that are built in.
            pub workflows: Vec<Workflow>,
            /// Workflows whose entry cannot be used, by id.
            pub refused_workflows: BTreeMap<String, RefusedWorker>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $($field: $Section::default(),)+
                    workers: built_in_workers(),
                    refused_workers: BTreeMap::new(),
                    agents: Vec::new(),
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
                match path {
                    $($path => self.$field.set(key, value, context),)+
                    _ => None,
                }
            }
        }

        /// Every section with its path, what it is for, and its rows; the workers' table is [`Worker::rows`].
        pub fn sections() -> Vec<(&'static str, &'static str, Vec<Row>)> {
            vec![$(($path, $Section::ABOUT.trim_ascii(), $Section::rows()),)+]
        }
    };
}

settings! {
    /// The daemon itself.
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

    /// Who is asked when a request needs someone's word.
    ["daemon.approvals"] approvals: Approvals {
        /// The agent that gets APPROVAL messages, where the policy rule admits it; otherwise only people are asked.
        default_target: AgentId = ours("client:approver"), "ident", Strict;
        /// An unanswered request is denied after this long, or sooner where its rule says so.
        expires: Ttl = Ttl::minutes(10), "duration";
    }

    /// The DevIt door.
    ["devit"] devit: Devit {
        /// One more Unix socket to listen on, for clients with a fixed address; it gets mode 0600 and the peer's uid is checked.
        socket: Option<PathBuf> = None, "path";
        /// How far a frame's `ts` may be from our clock; frames outside it are refused as stale.
        window: Ttl = Ttl::minutes(5), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(60), Strict;
        /// Whether the unsigned dialect of the published document is spoken: the secret is sent once, a token follows.
        dialect_document: bool = true, "", Strict;
        /// How long an empty POLL of an agent with unfinished tasks waits for news; clients give up after one second.
        poll_hold: Option<Ttl> = Ttl::from_millis(800), "duration" within None..=Ttl::from_millis(900);
        /// The shortest lease of a task that a worker took; a longer task timeout makes a longer lease.
        lease_min: Ttl = Ttl::minutes(15), "duration";
        /// How long a worker that is away keeps the tasks given to it.
        away_keep: Ttl = Ttl::minutes(24 * 60), "duration";
        /// How long messages are kept for an agent that does not collect them.
        mail_keep: Ttl = Ttl::minutes(24 * 60), "duration";
    }

    /// The wit door: `.wit/daemon.sock` in the work trees of the repository, for wit's command line, hooks and plugins.
    ["wit"] wit: WitSettings {
        /// Where its sockets are: `found`: in every work tree, once one of them has a folder `.wit`; `always`: in every work tree; `never`: nowhere.
        open: WitOpen = WitOpen::Found, "", Strict;
    }

    /// Agent Protocol, over loopback HTTP.
    ["agent_protocol"] agent_protocol: AgentProtocolSettings {
        /// Whether the door is open.
        enabled: bool = true, "", Strict;
        /// Its port at 127.0.0.1 and ::1; 0 is any that is free. Where none is written here, that of an allowed `.agent-protocol/config.json` counts, if it is not 4700. Where the default is taken, another one is chosen, and that is said once; one that is written down is never replaced.
        port: u16 = 4700, "port", Strict;
        /// What a request proves itself by: `peer`: the kernel says that it comes from a process of this user, which only Linux does; `token`: it shows one of `provost token mint` besides.
        auth: LoopbackAuth = LOOPBACK_AUTH, "", Strict, Owner;
        /// How long an agent may give no sign of life; then it counts as offline, its claims are free and another one leads.
        dead_after: Ttl = Ttl::minutes(1), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(24 * 60);
        /// How often it is looked for agents that have fallen silent; without it, that is noticed when it happens.
        heartbeat_interval: Option<Ttl> = None, "duration";
        /// How late an agent may own up to a change of another's file that was seen already: the conflict then knows what the file said before.
        detection_window: Ttl = Ttl::seconds_clamped(5), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(10);
        /// What the project is called in `/status` and on pages; without it, as its folder.
        project: Option<String> = None, "text";
        /// A folder with the published dashboard, served at `/dashboard/`: its files are read, links in it are not followed, and hidden ones are not there. Without it a plain page is served that links the JSON views.
        dashboard: Option<PathBuf> = None, "path", Owner;
        /// The agent that leads whenever it is there.
        lead_agent: Option<AgentId> = None, "agent";
        /// Whether a task can only be begun when those that it depends on are done.
        honour_dependencies: bool = false, "";
        /// Whether a claim for a task has to be for one of the task's resources.
        strict_scope: bool = false, "";
        /// Whether lists and counts also show agents of other doors, and delegated tasks that are not finished.
        show_foreign: bool = false, "";
        /// What becomes of `.agent-protocol/protocol.db`, which the published server has left in the repository: `ask`: it is told of once, with the command that puts its events on the timeline; `auto`: that is done when the daemon starts; `never`.
        import: ImportFound = ImportFound::Ask, "", Owner;
        /// Whether heartbeats are events, as in the published server.
        heartbeat_events: bool = true, "";
        /// Files of which it is told when they change: globs, as in `.gitignore`. Files that are claimed, and those below claimed folders, are told of in any case; hidden files and those that git ignores never.
        tracked_paths: Vec<String> = paths(&["src/**", "lib/**", "tests/**"]), "glob";
        /// Files of which it is not told.
        ignored_paths: Vec<String> = paths(&["node_modules/**", "dist/**"]), "glob";
    }

    /// The A6s door: the Autonoma daemon protocol over WebSockets on loopback, for editors.
    ["a6s"] a6s: A6sSettings {
        /// Whether the door is open.
        enabled: bool = true, "", Strict;
        /// Its port at 127.0.0.1 and ::1; as for Agent Protocol.
        port: u16 = 9876, "port", Strict;
        /// As for Agent Protocol. Clients that can set no headers show a token as `/ws?token=`.
        auth: LoopbackAuth = LOOPBACK_AUTH, "", Strict, Owner;
        /// Whether `scan.techDebt` and `scan.modernize` may be asked for: an agent looks through the whole repository.
        scans: bool = false, "", Strict, Owner;
        /// Whether roles are listed beside the agents.
        list_roles: bool = false, "";
        /// Whether the ids that such plugins know from the beginning (`reviewer-ai` and the like) name the first agent, in that role, where no agent and no `[role]` has the id.
        role_aliases: bool = true, "";
        /// How the five phases of an execution are done, for agents whose entry does not say it: `single`: one run of the agent; `pipeline`: a run for each phase, each told what the one before has answered, which costs five times as much.
        mode: Mode = Mode::Single, "";
        /// Who is asked about code that is selected in an editor (`code.explain` and the like), where it takes such questions: an agent, or a role. Without it, or where it does not, the first agent that works and takes them.
        code_agent: Option<AgentId> = None, "ident";
        /// After so long a question about code that is not answered yet is answered with an error that says so; the work goes on, and the same question again gets its result. Editors give up after 30 s.
        soft_deadline: Ttl = Ttl::seconds_clamped(27), "duration" within Ttl::seconds_clamped(1)..=Ttl::seconds_clamped(29);
        /// Files that no worker's result is ever written to, whatever policy says: globs, as in `.gitignore`; the size of letters makes no difference. Folders of version control and of agents' tools are never written to in any case.
        deny: Vec<String> = paths(&[".env", ".env.local", ".env.*.local", ".envrc", ".netrc", ".npmrc", ".pypirc", "id_rsa", "id_ed25519"]), "glob";
        /// Whether an apply also writes what no run here has left exactly so: artifacts that an editor has changed, or brought along. With `false` only what a worker has made is written, to the letter, and merged with nothing but what it was made for.
        apply_unknown: bool = true, "";
        /// Whether an apply also writes settings that run later: of agents, editors, shells and hooks of version control, as `docs/settings-that-run-later.md` lists them. Who is asked about such an apply is shown them apart.
        apply_settings: bool = false, "", Strict, Owner;
        /// How long an apply that somebody has to allow waits for their answer; editors give up after 30 seconds.
        apply_wait: Ttl = Ttl::seconds_clamped(25), "duration" within Ttl::seconds_clamped(1)..=Ttl::seconds_clamped(28);
    }

    /// Agents' hosts, which speak MCP: through `provost mcp`, and at the door `/mcp` over HTTP on loopback.
    ["mcp"] mcp: McpSettings {
        /// Whether the door over HTTP is open; `provost mcp` works without it.
        enabled: bool = true, "", Strict;
        /// Its port at 127.0.0.1 and ::1; as for Agent Protocol.
        port: u16 = 4710, "port", Strict;
        /// As for Agent Protocol.
        auth: LoopbackAuth = LOOPBACK_AUTH, "", Strict, Owner;
        /// Which tools hosts are offered, as sets: `default` (about fifteen, small enough for every request to a model), `all`, or some of `tasks`, `approvals`, `locks`, `intents`, `contracts`, `claims`, `handoffs`, `messages`, `pictures`, `devit`. `provost mcp --tools` says otherwise for one host.
        tools: Vec<McpTools> = vec![McpTools::Default], "";
        /// Whether tools say which shape their answers have. Hosts check answers against it, and no model sees it.
        output_schemas: bool = true, "";
        /// Whether DevIt's names of tools (`devit_delegate` and the like) are offered beside Provost's own: the set `devit`.
        devit_tools: bool = false, "";
    }

    /// What is done for one editor alone, since it shows things in its own way.
    ["a6s.compat"] compat: A6sCompat {
        /// Whether `background.output` is answered with `{output}` in place of a string where a client has sent `"params":[]`, as Neovim's plugin alone does: it then shows the lines as lines.
        nvim_output_object: bool = false, "";
    }

    /// The agents that do the phases of an execution whose agent has the mode `pipeline`. The agent that was asked does each phase without an entry here.
    ["a6s.pipeline"] pipeline: A6sPipeline {
        /// Looks for what has to be known.
        research: Option<AgentId> = None, "ident";
        /// Says how it is to be done.
        inspect: Option<AgentId> = None, "ident";
        /// Does it.
        generate: Option<AgentId> = None, "ident";
        /// Makes it better.
        optimize: Option<AgentId> = None, "ident";
        /// Looks at it.
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

    /// What agents are told. Placeholders: `{task}`, `{code}`, `{language}`, `{file}`, `{instructions}`, `{review_focus}`, `{schema}`, `{context}`, `{preamble}`; what an editor has sent as code or context always stands between fences, said to be data. Without a template the built-in one counts; docs/agents.md shows them.
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
        /// For the one try to have a reply put right that is not in the form that was asked for; `{code}` is the reply.
        repair: Option<Template> = None, "template";
        /// For `scan.techDebt` and `scan.modernize`.
        scan: Option<Template> = None, "template";
    }

    /// The git-paw broker's protocol, over loopback HTTP.
    ["broker"] broker: BrokerSettings {
        /// Whether the door is open.
        enabled: bool = true, "", Strict;
        /// Its port at 127.0.0.1 and ::1; as for Agent Protocol, and where none is written here, that of an allowed `.git-paw/config.toml` counts.
        port: u16 = 9119, "port", Strict;
        /// As for Agent Protocol.
        auth: LoopbackAuth = LOOPBACK_AUTH, "", Strict, Owner;
        /// Whether all messages are also written to `.git-paw/broker.log` in the repository: `found`: where that folder is; `always`; `never`.
        log: KeepLog = KeepLog::Found, "";
        /// Whether work trees of agents are looked at for changed files.
        watch: bool = true, "";
        /// `json`: one object a line; `text`: one sentence a line, as git-paw's own broker writes it.
        log_format: LogFormat = LogFormat::Json, "";
    }

    /// What follows from messages between agents at the broker door.
    ["supervisor"] supervisor: SupervisorSettings {
        /// Whether conflicts between what agents announce and change are looked for, and told.
        enabled: bool = true, "";
        /// Whether a commit calls for a check: `supervisor.verify-now`.
        verify_on_commit_nudge: bool = true, "";
        /// For how long what an agent has finished stays so, whatever late signs of work still come. With 0, a commit stays until its agent says something else than `working`.
        republish_working_ttl_seconds: u32 = 60, "seconds" within 0..=86_400;
    }

    /// The conflicts themselves.
    ["supervisor.conflict"] conflict: ConflictSettings {
        /// How long two agents may change one file before the supervisor is asked.
        window_seconds: u32 = 120, "seconds" within 1..=86_400;
        /// Whether agents are told that their intents overlap.
        warn_on_intent_overlap: bool = true, "";
        /// Whether the supervisor is asked about edits in files that somebody else has announced or owns.
        escalate_on_violation: bool = true, "";
    }

    /// The hooks of `provost git install`, and `provost guard`.
    ["git"] git: GitSettings {
        /// What becomes of a commit or push that could not be checked, say because no daemon runs: `pass`: it goes on, with a warning; `block`: it is refused.
        when_unchecked: Unchecked = Unchecked::Pass, "", Strict;
        /// A check that takes longer counts as one that could not be made.
        deadline: Ttl = Ttl::seconds_clamped(5), "duration" within Ttl::seconds_clamped(1)..=Ttl::minutes(5), Strict;
        /// Whether the hooks start a daemon where none runs, within that time.
        start_daemon: bool = false, "";
    }

    /// What is run for every notification, outside of the jail. How many run at once is in `limits.hooks`.
    ["hooks.notify"] notify: Notify {
        /// A command line for a login shell; it gets the `DEVIT_NOTIFY_*` and `DEVIT_ACK_*` variables, and those folders of `PATH`
        /// that lie outside of the repository: what lies in it is named by its path.
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
        /// How many are taken at most.
        rate_limit: Rate = Rate { count: 10, per_s: 60 }, "count/time", Strict;
        /// The program that takes them; without it `grim` where there is a Wayland session, else `scrot` or `import`, whichever is installed.
        backend: Option<ScreenBackend> = None, "program";
        /// Image format, as a file extension; `grim` writes `png`, `jpg` and `jpeg`.
        format: ImageFormat = ImageFormat::Png, "extension";
        /// Folder for the pictures: below the workspace, or absolute and below the workspace or the state folder.
        output_dir: String = ".devit/screenshots".into(), "path";
        /// Pictures kept in that folder; beyond it the oldest are removed.
        keep: u32 = 100, "pictures" within 1..=10_000;
    }

    /// Notices on the desktop, over the session bus; without one there are none.
    ["desktop"] desktop: Desktop {
        /// Whether approvals that wait and tasks that have ended are told.
        enabled: bool = true, "", Owner;
        /// Whether approvals that people may answer can be answered with a click, where the desktop has buttons.
        answer: bool = true, "", Strict, Owner;
        /// Which ends of tasks are told.
        tasks: DesktopTasks = DesktopTasks::All, "", Owner;
        /// Notices that come in a minute at most; the last of them sums up the rest.
        per_minute: u32 = 6, "notices" within 1..=60, Owner;
    }

    /// Where work happens.
    ["workspace"] workspace: Workspace {
        /// No worker gets a directory outside this one; without it, the repository's root.
        sandbox_root: Option<PathBuf> = None, "path", Strict;
        /// Paths in the workspace that no jailed worker may change, besides those of git, agents, editors and shells; a missing one cannot be made. Tier `ll` cannot protect them, and its hand-off report names changes.
        protect: Vec<RepoPath> = Vec::new(), "path", Strict, Owner;
    }

    /// What is kept, and how firmly.
    ["store"] store: StoreSettings {
        /// `verb`: delegations, approvals and the like are on disk before they are answered; `full`: everything is.
        durability: Durability = Durability::Verb, "", Strict, Owner;
        /// Finished tasks that stay readable; beyond that the oldest are dropped.
        tasks_keep: u32 = 100_000, "tasks" within 1_000..=10_000_000, Owner;
        /// Finished tasks older than this are dropped.
        tasks_keep_days: u32 = 30, "days" within 1..=36_500, Owner;
        /// Payloads of events older than this are dropped; counts and the journal's chain stay.
        events_keep_days: u32 = 90, "days" within 1..=36_500, Owner;
    }

    /// The rules that decide. A system's `policy.toml` lies over them and can only tighten.
    ["policy"] policy: PolicySettings {
        /// The file that decides, or `builtin:default`, `builtin:strict`, `builtin:open`; without it, `policy.toml` in the user's configuration, else the built-in default.
        file: Option<Rules> = None, "", Strict, Owner;
    }

    /// The daemon's own log. What agents did is in the journal, not here.
    ["log"] log: LogSettings {
        /// The least important message that is written.
        level: LogLevel = LogLevel::Info, "";
        /// Folder of the log files; without it, `log` in the state folder.
        dir: Option<PathBuf> = None, "path", Owner;
        /// Log files kept, one a day.
        max_files: u32 = 14, "files" within 1..=1_000, Owner;
    }

    /// Agents that work side by side: what is known of the code that they edit, and what their locks mean.
    ["coordination"] coordination: Coordination {
        /// What `provost git`'s pre-commit hook does with a change of a symbol that somebody else has locked: `deny`: refuses the commit; `advise`: says so; `off`: nothing.
        enforce: Enforce = Enforce::Advise, "", Strict;
        /// What becomes of a claim, lock, intent or plan for a place that another agent has through another door: `advise`: it is granted, and both are told; `deny`: it is refused, as its protocol refuses.
        across_doors: AcrossDoors = AcrossDoors::Advise, "", Strict;
        /// Whether the repository is read in the background, so that callers in other files are known.
        index: bool = true, "", Owner;
        /// Whose files are whose: patterns as in a `CODEOWNERS`, each with the agents, separated by blanks. The last one that fits has the word; those of a `CODEOWNERS` come before.
        owners: BTreeMap<String, String> = BTreeMap::new(), "";
        /// Source files that are read for it at most; what is beyond is missing, and said to be.
        index_files: u32 = 20_000, "files" within 1..=50_000, Owner;
    }

    /// How much may happen at once.
    ["limits"] limits: Limits {
        /// Jailed workers running at the same time; further tasks wait their turn.
        workers: u32 = crate::base::limits::WORKERS_USUAL, "workers" within 1..=256, Owner;
        /// Unfinished tasks that one agent may have delegated.
        tasks_per_agent: u32 = 256, "tasks" within 1..=10_000, Owner;
        /// Notification hooks running at the same time; further ones wait.
        hooks: u32 = 8, "hooks" within 1..=64, Owner;
    }
}

section! {
    /// One `[workers.<ident>]` entry: a program that does delegated work, in the jail unless its type is `polling`.
    Worker {
        /// `cli`: run once per task; `mcp`: spoken to over stdio; `polling`: connects by itself and no jail binds it.
        kind as "type": WorkerKind = WorkerKind::Polling, "", Required;
        /// The program, absolute or found on `PATH`; needed unless the type is `polling`, and never with `..` in it.
        binary: Option<String> = None, "program";
        /// Its arguments; `{goal}`, `{workspace}`, `{task_id}` and `{model}` are filled in. Without `{goal}` the goal comes last.
        args: Vec<String> = Vec::new(), "";
        /// The worker is stopped after this long, or sooner where the task says so.
        timeout_secs: u64 = 300, "seconds" within 1..=604_800;
        /// Whether standard output is one JSON value or plain text. A worker of type `mcp` always speaks JSON.
        parse_mode: ParseMode = ParseMode::Json, "";
        /// The directory it starts in, with placeholders; without it, the task's, else the workspace.
        working_dir: Option<String> = None, "path";
        /// Standard output beyond this is cut off and marked as truncated.
        max_response_chars: Option<u64> = None, "bytes" within Some(1)..=Some(1 << 30);
        /// The tool that a worker of type `mcp` is called with.
        mcp_tool: String = "devit_delegate".into(), "tool";
        /// Arguments added to that call; they win over the task's.
        mcp_arguments: Option<Json> = None, "";
        /// The model used when the task names none.
        default_model: Option<String> = None, "model";
        /// The models that a task may ask for; without this list, any.
        allowed_models: Option<Vec<String>> = None, "model", Strict;
        /// `ns`: own namespaces; `ll`: Landlock only, where the system allows no namespaces; `job`: on Windows, keeps from writing alone, needs `copy`, and a rule that names it. Policy sets the minimum.
        tier: Tier = Tier::Ns, "", Strict;
        /// `none`; `ports`: the local ports listed; `hosts`: the hosts listed, through a proxy. The latter two need tier `ns`.
        network: Network = Network::None, "", Strict;
        /// Local ports that it may reach; never those of our own doors.
        ports: Vec<u16> = Vec::new(), "port", Strict;
        /// Hosts that it may reach, as `host:port`. A name leads to public addresses only; `host:port=address` says which it stands for, `address:port` means one as written.
        hosts: Vec<String> = Vec::new(), "host:port", Strict;
        /// Paths outside the workspace that the worker may read.
        read_only: Vec<PathBuf> = Vec::new(), "path", Strict;
        /// Paths in the workspace that this worker may not change, besides those of `workspace.protect`.
        protect: Vec<RepoPath> = Vec::new(), "path", Strict;
        /// Environment variables of the worker; it inherits none besides `PATH`, the locale and the documented ones.
        env: BTreeMap<String, String> = BTreeMap::new(), "";
        /// Names of the secrets that a task of this worker may be given; how is the policy's to say.
        secrets: Vec<String> = Vec::new(), "name", Strict;
        /// Private memory that each of its processes may have.
        memory: ByteSize = ByteSize(4 << 30), "bytes" within ByteSize(16 << 20)..=ByteSize(1 << 50), Strict;
        /// Processes and threads that it may have at once.
        processes: u32 = 256, "processes" within 1..=65_536, Strict;
        /// Descriptors that each of its processes may have open. With 1,024 or more it can keep other programs of yours from passing descriptors to each other.
        open_files: u32 = 768, "descriptors" within 64..=1_048_576, Strict;
        /// The largest file that it may write.
        file_size: ByteSize = ByteSize(1 << 30), "bytes" within ByteSize(1 << 10)..=ByteSize(1 << 50), Strict;
        /// What `/tmp`, `/dev/shm` and its home may hold together; watched, not walled in, in tier `ll`.
        tmp_size: ByteSize = ByteSize(512 << 20), "bytes" within ByteSize(1 << 20)..=ByteSize(1 << 50), Strict;
        /// Processor time of each of its processes; without it, as much as the time limit can hold on all cores.
        cpu_secs: Option<u64> = None, "seconds" within Some(1)..=Some(604_800 * 1_024), Strict;
        /// By how much the directories that it may change may grow while it runs, whoever writes; looked at about once a second, then it is ended.
        growth: ByteSize = ByteSize(16 << 30), "bytes" within ByteSize(1 << 20)..=ByteSize(1 << 50), Strict;
        /// By how many files and directories they may grow.
        growth_files: u64 = 1_000_000, "files" within 1..=1_000_000_000, Strict;
        /// What it may do with the repository that it works in: `read`; or `write`: commit, stage, move branches, which a rule has to allow by `when.git`. Hooks, settings and other repositories in the workspace stay read-only. In a copy a worker commits as it likes.
        git: Git = Git::Read, "", Strict;
        /// Where its tasks work. `false`: in the directory itself; `true`: in a copy of it, which is thrown away; `"kept"`: in a private copy of what git does not ignore, whose changes `provost apply` brings in. Without this, `"kept"` for an entry of type `cli` that speaks with a model: one that has `secrets`, `default_model`, `allowed_models` or `{model}` among its `args`; and `false` for others and with `git = "write"`.
        copy: Option<Copies> = None, "", Strict;
    }
}

/// The worker that needs no configuration: the system's shell with the goal, in the strongest jail of the system.
fn built_in_workers() -> BTreeMap<AgentId, Worker> {
    let (program, before) = crate::system::shell();
    let shell = Worker {
        kind: WorkerKind::Cli,
        binary: Some(program.to_string_lossy().into_owned()),
        args: before.iter().copied().chain(["{goal}"]).map(str::to_owned).collect(),
        parse_mode: ParseMode::Text,
        tier: if cfg!(windows) { Tier::Job } else { Tier::Ns },
        copy: Some(if cfg!(windows) { Copies::Thrown } else { Copies::No }),
        ..Worker::default()
    };
    BTreeMap::from([(ours("shell"), shell)])
}

/// Where the system does not say who connects, tokens have to.
const LOOPBACK_AUTH: LoopbackAuth =
    if cfg!(target_os = "linux") { LoopbackAuth::Peer } else { LoopbackAuth::Token };

/// An ident written in this file.
fn ours(ident: &str) -> AgentId {
    AgentId::parse(ident).expect("idents in the table of settings are short plain words")
}

fn paths(globs: &[&str]) -> Vec<String> {
    globs.iter().map(|it| (*it).to_owned()).collect()
}
