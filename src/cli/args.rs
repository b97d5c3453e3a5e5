//! The definition of the command line: every command, its arguments, and an example of each.
//!
//! Commands are a noun, then a verb. `forms` has the short forms and the old forms, which it translates before this definition is used.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

#[cfg(unix)]
use super::worker;
use super::{
    acp, adapt, agents, allow, applies, approvals, backup, broker, claims, contracts, cost, crew, git, graph,
    guard, hooks, hosts, intents, jail, journal, keys, locks, mcp, merge, notify, passkeys, policy, push,
    screenshot, secrets, tasks, tokens, ui, up, users, waits, watch, web, workflows, worktrees,
};
use provost_base::Ttl;

const ABOUT: &str =
    "A local daemon through which AI coding agents work on one repository, without you having to trust them";

const AFTER: &str = "\
Examples:
  provost doctor                        check what this machine offers
  provost up                            start the daemon of this repository
  provost delegate \"cargo test\" --wait  run a command in the jail and watch it
  provost                               what needs you now
  provost lock list                     which agent holds what
  eval \"$(provost env)\"                 point existing clients at this daemon
  provost help lock                     what can be done with locks

Exit codes: 0 done; 1 failed or denied; 2 invalid command line; 3 no daemon runs; 4 refused; \
5 another agent holds it; 6 the check was impossible; 7 a branch was set aside; 8 a database has lost \
acknowledged writes; 130 interrupted; 141 the output was closed. \
`delegate --wait` ends with the exit code of the worker, `jail try` with that of the command: 124 where the \
time was over, 128 and the number where a signal has ended it. A task whose worker never ran ends with 1.";

/// `provost`.
#[derive(Parser, Debug)]
#[command(name = "provost", version, about = ABOUT, after_help = AFTER, disable_help_subcommand = true)]
pub(super) struct Line {
    /// Print JSON instead of text for people
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Go to the repository of this folder first; it stands before the command
    // `overview::go_elsewhere` reads it; this is its line in the help, and in the completions of shells.
    #[arg(short = 'C', long = "repo", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(super) repo: Option<PathBuf>,
    /// Without a command: show what needs you now, in all of your repositories
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

/// Every noun, with its verbs.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Start, stop and inspect the daemon of this repository
    #[command(
        subcommand,
        after_help = "Examples:\n  provost daemon start\n  provost daemon status\n  provost daemon stop"
    )]
    Daemon(Daemon),
    /// Make the configuration, and allow the configuration files of the repository
    #[command(
        subcommand,
        after_help = "Examples:\n  provost config init\n  provost config allow devit.core.toml"
    )]
    Config(Config),
    /// Show, check and export the journal, a chain of events that cannot be changed unnoticed
    #[command(
        subcommand,
        after_help = "Examples:\n  provost journal show --follow\n  provost journal verify\n  provost journal export > journal.jsonl"
    )]
    Journal(journal::Journal),
    /// Copy the daemon's store, restore it after damage, and move it to a database
    #[command(
        subcommand,
        after_help = "Examples:\n  provost store backup ~/provost-2026-07-01.db\n  provost store restore ~/provost-2026-07-01.db"
    )]
    Store(backup::Store),
    /// Join, list and take out the hosts that work on the repository over PostgreSQL
    #[command(
        subcommand,
        after_help = "Examples:\n  provost host list\n  provost host export-key shop.key\n  provost host join --key-file shop.key"
    )]
    Host(hosts::HostCommand),
    /// Say what the people at the hosts of the repository may do
    #[command(
        subcommand,
        after_help = "Examples:\n  provost user list\n  provost user add 3f0c2a71 --name bob --role agent\n  provost user role 3f0c2a71 approver"
    )]
    User(users::User),
    /// Delegate tasks to workers, follow the tasks, and take their changes
    #[command(
        subcommand,
        after_help = "Examples:\n  provost task delegate \"cargo test\" --wait\n  provost task list\n  provost task show 3f0c2a --wait\n  provost task diff 3f0c2a\n  provost task apply 3f0c2a"
    )]
    Task(tasks::Task),
    /// List and remove the git work trees in which tasks work on a branch of their own
    #[command(
        subcommand,
        after_help = "Examples:\n  provost worktree list\n  provost worktree remove feat/x\n  provost worktree remove feat/x --branch"
    )]
    Worktree(worktrees::Worktree),
    /// Show what agents have used: as they say, and as the daemon has counted
    #[command(
        subcommand,
        after_help = "Examples:\n  provost cost show\n  provost cost show --by day --since 7d\n\n`provost cost` is `provost cost show`, whose --help has the options."
    )]
    Cost(cost::Cost),
    /// List and answer the requests that wait for approval
    #[command(
        subcommand,
        after_help = "Examples:\n  provost approval list\n  provost approval approve 7 --note \"looked at it\""
    )]
    Approval(approvals::Approval),
    /// List the applies, which write agents' changes into your files, and undo them
    #[command(
        subcommand,
        after_help = "Examples:\n  provost apply 3f0c2a src/\n  provost apply list\n  provost apply undo 7\n\n`provost apply ID` and `provost apply ID PATH` write a task's changes; `provost task apply --help` has the options."
    )]
    Apply(applies::Apply),
    /// Take a picture of the screen
    #[command(subcommand, after_help = "Example:\n  provost screenshot take --wait")]
    Screenshot(screenshot::Screenshot),
    /// Pause and resume a worker, report from inside a worker's jail, and make a machine work for other hosts
    #[cfg(unix)]
    #[command(
        subcommand,
        after_help = "Examples:\n  provost worker pause claude_code\n  provost worker resume claude_code\n  provost worker report \"half of it\" --percent 50"
    )]
    Worker(worker::Worker),
    /// List and show the workflows, which editors can run
    #[command(
        subcommand,
        after_help = "Examples:\n  provost workflow list\n  provost workflow show dev:fix_and_review"
    )]
    Workflow(workflows::Workflows),
    /// Add the programs of agents, try them, and list the known agents
    #[command(
        subcommand,
        after_help = "Examples:\n  provost agent add claude\n  provost agent try claude\n  provost agent remove claude\n  provost agent list"
    )]
    Agent(agents::Agent),
    /// Take, release and list the locks on symbols and resources
    #[command(
        subcommand,
        after_help = "Examples:\n  provost lock acquire src/auth.ts:login --wait 2m\n  provost lock run @db:test -- make it\n  provost lock release src/auth.ts:login\n  provost lock list\n\n`provost lock SYMBOL` is `provost lock acquire SYMBOL`, whose --help has the options."
    )]
    Lock(locks::Lock),
    /// List who waits for what: locks, approvals, answers, tasks
    #[command(
        subcommand,
        after_help = "Examples:\n  provost wait list\n  provost wait list --kind lock --json"
    )]
    Wait(waits::Wait),
    /// Declare, list and update intents, which announce changes
    #[command(
        subcommand,
        after_help = "Examples:\n  provost intent declare \"new parser\" --file src/parse.py\n  provost intent list\n  provost intent update 3f0c2a resolved"
    )]
    Intent(intents::Intent),
    /// Agree on the signature of a symbol, and check commits against it
    #[command(
        subcommand,
        after_help = "Examples:\n  provost contract propose src/auth.ts:login --as agent-a\n  provost contract accept 3f0c2a --as agent-b\n  provost contract check"
    )]
    Contract(contracts::Contract),
    /// Claim whole files, release them, and list the claims
    #[command(
        subcommand,
        after_help = "Examples:\n  provost claim acquire src/auth.ts --as claude-code-1\n  provost claim release src/auth.ts --as claude-code-1\n  provost claim list"
    )]
    Claim(claims::Claim),
    /// Check whether an agent may write to a file
    #[command(subcommand, after_help = "Example:\n  provost file check src/auth.ts --agent agent-a || exit")]
    File(guard::File),
    /// Watch what agents lock, announce and agree on
    #[command(subcommand, after_help = "Example:\n  provost timeline watch")]
    Timeline(watch::Timeline),
    /// Show callers and callees of a symbol, across files
    #[command(
        subcommand,
        after_help = "Examples:\n  provost graph callers src/auth.ts:validateToken\n  provost graph status"
    )]
    Graph(graph::Graph),
    /// Appoint the lead of the crew, the agents that work together by Agent Protocol
    #[command(subcommand, after_help = "Example:\n  provost crew appoint claude-code-1")]
    Crew(crew::Crew),
    /// Import the data of the published server of Agent Protocol
    #[command(
        subcommand,
        after_help = "Example:\n  provost agent-protocol import .agent-protocol/protocol.db"
    )]
    AgentProtocol(crew::AgentProtocol),
    /// Publish and show messages between agents, as the broker door passes them on
    #[command(
        subcommand,
        after_help = "Examples:\n  provost broker status\n  provost broker inbox supervisor --wait 1m\n  provost broker boot-block feat/auth"
    )]
    Broker(broker::Broker),
    /// Answer the questions of agents
    #[command(subcommand, after_help = "Example:\n  provost question answer feat-auth \"RS256\"")]
    Question(broker::Questions),
    /// Merge branches into the trunk one after the other, without conflicts that only symbols show
    #[command(
        subcommand,
        after_help = "Examples:\n  provost merge feat/auth feat/log --preview\n  provost merge feat/auth feat/log\n  provost merge queue add feat/auth\n  provost merge queue run --wait\n\n`provost merge BRANCH` is `provost merge branches BRANCH`, whose --help has the options."
    )]
    Merge(merge::Merge),
    /// Serve MCP to agents' hosts
    #[command(subcommand, after_help = "Example:\n  provost mcp serve --as coder")]
    Mcp(mcp::Mcp),
    /// Stand between an editor and its agent, which speak the Agent Client Protocol
    #[command(
        subcommand,
        after_help = "`provost acp -- COMMAND` is short for `provost acp serve -- COMMAND`; its options: provost acp serve --help\n\nExamples:\n  provost acp -- claude-agent-acp\n  provost acp serve --as coder -- gemini --acp"
    )]
    Acp(acp::Acp),
    /// Install the hooks that keep agents' hosts from writing files that another agent holds; wait in a notification hook
    #[command(
        subcommand,
        after_help = "Examples:\n  provost hook install claude\n  provost hook status\n  provost hook remove claude"
    )]
    Hook(hooks::Hook),
    /// Install the git hooks that check commits and pushes against contracts and locks
    #[command(subcommand, after_help = "Examples:\n  provost git install\n  provost git status")]
    Git(git::Git),
    /// Open the page for people, which shows in a browser what needs you and what agents do, here and on a phone
    #[command(
        subcommand,
        after_help = "Examples:\n  provost web open\n  xdg-open \"$(provost web open)\"\n  provost web setup       # what a phone needs\n  provost web open --qr   # opens the page on it\n  provost web open --all\n  provost web close\n\n`provost web` is `provost web open`, whose --help has the options."
    )]
    Web(web::Web),
    /// List and test the addresses elsewhere that get notices, such as a phone or a chat
    #[command(subcommand, after_help = "Examples:\n  provost notify list\n  provost notify test phone")]
    Notify(notify::Notify),
    /// List, test and remove the browsers that are told by their push services when something needs you
    #[command(
        subcommand,
        after_help = "Examples:\n  provost push list\n  provost push test phone\n  provost push remove phone"
    )]
    Push(push::Push),
    /// Keep a section about the other agents current in a file that an agent's host reads
    #[command(subcommand, after_help = "Example:\n  provost adapter run claude")]
    Adapter(adapt::Adapters),
    /// Check, test and explain the policy rules
    #[command(
        subcommand,
        after_help = "Examples:\n  provost policy check\n  provost policy explain --worker shell --dir src"
    )]
    Policy(policy::Policy),
    /// Show what a worker may access, and run a command in its jail
    #[command(
        subcommand,
        after_help = "Examples:\n  provost jail explain shell\n  provost jail try -- ls -la ~"
    )]
    Jail(jail::Jail),
    /// Manage keys, which keep other callers from using an agent's name
    #[command(
        subcommand,
        after_help = "Examples:\n  provost key add client:approver --role approver\n  provost key list"
    )]
    Key(keys::Key),
    /// Manage tokens, which prove an agent's name over HTTP and reserve it
    #[command(
        subcommand,
        after_help = "Examples:\n  TOKEN=$(provost token mint feat-auth)\n  provost token list\n  provost token revoke --of feat-auth"
    )]
    Token(tokens::Tokens),
    /// Manage passkeys, whose signatures answer approvals
    #[command(
        subcommand,
        after_help = "Examples:\n  provost passkey add\n  provost passkey list\n  provost passkey revoke phone"
    )]
    Passkey(passkeys::Passkeys),
    /// Manage the secrets of workers and of notices; the daemon adds them to requests, or hands them over
    #[command(
        subcommand,
        after_help = "Examples:\n  provost secret add ci --env CI_TOKEN < token\n  provost secret list"
    )]
    Secret(secrets::Secrets),
    /// Show what needs you and what agents do, live, in all of your repositories, and answer with a key
    #[command(
        after_help = "Examples:\n  provost ui\n  provost ui --no-mouse\n  NO_COLOR=1 provost ui\n\nKeys: ? lists those of the moment; q ends."
    )]
    Ui(ui::Ui),
    /// Check this machine, the files and the daemon for problems
    #[command(after_help = "Examples:\n  provost doctor\n  provost doctor --json")]
    Doctor,
    /// Print the completions for a shell
    #[command(
        after_help = "Example:\n  provost completions bash > ~/.local/share/bash-completion/completions/provost"
    )]
    Completions(Completions),
    /// Print the manual page
    #[command(
        after_help = "Examples:\n  provost man | man -l -\n  provost man > ~/.local/share/man/man1/provost.1"
    )]
    Man,
}

/// `provost daemon`.
#[derive(Subcommand, Debug)]
pub(super) enum Daemon {
    /// Start the daemon of this repository
    #[command(
        after_help = "Examples:\n  provost daemon start\n  provost daemon start --foreground --debug\n  provost daemon start --config ./provost.toml"
    )]
    Start(up::Up),
    /// Stop the daemon of this repository
    #[command(after_help = "Example:\n  provost daemon stop")]
    Stop,
    /// Show the daemon: its doors, workers, rules and counts
    #[command(after_help = "Examples:\n  provost daemon status\n  provost daemon status --json | jq .doors")]
    Status,
    /// Print what the daemon counts, as the text that Prometheus reads
    #[command(
        after_help = "Examples:\n  provost daemon metrics\n  provost daemon metrics --json\n\ndocs/metrics.md has every name."
    )]
    Metrics,
    /// Load the configuration, the policy and the keys again
    #[command(after_help = "Example:\n  provost daemon reload")]
    Reload,
    /// Print the variables that point existing clients at this daemon; the output holds a secret
    #[command(
        after_help = "Examples:\n  eval \"$(provost daemon env)\"\n  provost daemon env --shell fish | source"
    )]
    Env(Env),
}

/// `provost config`.
#[derive(Subcommand, Debug)]
pub(super) enum Config {
    /// Make the folders, the keys and, on request, a policy to start from
    #[command(after_help = "Examples:\n  provost config init\n  provost config init --policy strict")]
    Init(Init),
    /// Allow a configuration file of the repository, with exactly its present content
    #[command(
        after_help = "Examples:\n  provost config allow\n  provost config allow devit.core.toml --yes\n  provost config allow devit.core.toml --forget"
    )]
    Allow(allow::Allow),
}

/// `provost config init`.
#[derive(Args, Debug)]
pub(super) struct Init {
    /// Copy this policy to the user's configuration, for editing; without it the built-in default applies
    #[arg(long, value_enum)]
    pub(super) policy: Option<Preset>,
}

/// A policy to start from.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preset {
    /// Every request needs an approval
    Strict,
    /// The built-in rules
    Default,
    /// Few requests need an approval; for disposable machines
    Open,
}

/// `provost daemon env`.
#[derive(Args, Debug)]
pub(super) struct Env {
    /// The shell that reads the variables
    #[arg(long, value_enum, default_value_t = Shell::Sh)]
    pub(super) shell: Shell,
}

/// The syntax in which variables are printed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shell {
    /// sh, bash, zsh
    Sh,
    /// fish
    Fish,
    /// One JSON object
    Json,
}

/// `provost completions`.
#[derive(Args, Debug)]
pub(super) struct Completions {
    /// The shell that reads the completions
    #[arg(value_enum)]
    pub(super) shell: clap_complete::Shell,
}

/// The flags that DevIt's programs pass to their daemon.
#[derive(Parser, Debug)]
#[command(
    name = "devitd",
    about = "The daemon as DevIt's programs start it; stays in the foreground",
    after_help = "Example:\n  devitd --socket \"$XDG_RUNTIME_DIR/devitd.sock\" --secret \"$DEVIT_SECRET\"",
    version = "0.1.0"
)]
pub(super) struct Devitd {
    /// The address where the daemon listens
    #[arg(long, default_value = "/tmp/devitd.sock", value_hint = ValueHint::FilePath)]
    pub(super) socket: PathBuf,
    /// The secret of this door, for this run; by default DEVIT_SECRET, else the generated one
    #[arg(long)]
    pub(super) secret: Option<String>,
    /// Write more to the log
    #[arg(long)]
    pub(super) debug: bool,
    /// The configuration file, a devit.core.toml
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,
    /// End after this many seconds without clients and work; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(super) auto_shutdown_after: Option<u64>,
}

/// Reads a duration such as `90s`, `10m` or `2h`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Ttl, String> {
    let wrong = || "write a duration such as 90s, 10m or 2h, up to seven days".to_owned();
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    ms.and_then(Ttl::from_millis).ok_or_else(wrong)
}
