//! The definition of the command line: every command, its arguments, and an example of each.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

#[cfg(unix)]
use super::worker;
use super::{
    adapt, allow, applies, approvals, backup, broker, claims, contracts, crew, delegate, git, graph, guard,
    hook, hooks, intents, jail, journal, keys, locks, log, mcp, policy, screenshot, secrets, tasks, tokens,
    up, watch, workflows,
};
use provost_base::Ttl;

const ABOUT: &str =
    "A local daemon through which AI coding agents work on one repository, without you having to trust them";

const AFTER: &str = "\
Examples:
  provost init                          make configuration and keys
  provost up                            start the daemon of this repository
  provost delegate \"cargo test\" --wait  run a command in the jail and watch it
  provost                               what needs you now
  eval \"$(provost env)\"                 point existing clients at this daemon

Exit codes: 0 done; 1 failed or denied; 2 invalid command line; 3 no daemon runs; 4 refused; 5 another agent holds it;
6 the check was impossible; 130 interrupted; 141 the output was closed. `delegate --wait` ends with the exit code of the
worker, `jail try` with that of the command.";

/// `provost`.
#[derive(Parser, Debug)]
#[command(name = "provost", version, about = ABOUT, after_help = AFTER, disable_help_subcommand = true)]
pub(super) struct Line {
    /// Print JSON instead of text for people
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Without a command: show what needs you now
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

/// Every command.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Make the folders, the keys and, on request, a policy to start from
    #[command(after_help = "Examples:\n  provost init\n  provost init --policy strict")]
    Init(Init),
    /// Start the daemon of this repository
    #[command(
        after_help = "Examples:\n  provost up\n  provost up --foreground --debug\n  provost up --config ./provost.toml"
    )]
    Up(up::Up),
    /// Stop the daemon of this repository
    #[command(after_help = "Example:\n  provost down")]
    Down,
    /// Show the daemon: doors, workers, rules, counts
    #[command(after_help = "Examples:\n  provost status\n  provost status --json | jq .doors")]
    Status,
    /// Print the variables that point existing clients at this daemon; the output holds a secret
    #[command(after_help = "Examples:\n  eval \"$(provost env)\"\n  provost env --shell fish | source")]
    Env(Env),
    /// Delegate a task to a worker
    #[command(
        after_help = "Examples:\n  provost delegate \"cargo test\" --wait\n  provost delegate \"review src/\" --worker claude_code --timeout 20m\n  provost delegate \"make\" --dir docs --json"
    )]
    Delegate(delegate::Delegate),
    /// Take a picture of the screen, if the rules or an approval allow it
    #[command(after_help = "Examples:\n  provost screenshot\n  provost screenshot --wait --json")]
    Screenshot(screenshot::Screenshot),
    /// List tasks, the newest last
    #[command(after_help = "Examples:\n  provost tasks\n  provost tasks --filter failed --limit 5")]
    Tasks(tasks::Tasks),
    /// Show one task with its reports
    #[command(after_help = "Examples:\n  provost task 3f0c2a\n  provost task 3f0c2a --wait")]
    Task(tasks::Task),
    /// End a task
    #[command(after_help = "Example:\n  provost cancel 3f0c2a --reason \"wrong branch\"")]
    Cancel(tasks::Cancel),
    /// Report on a task, or acknowledge its notification
    #[command(
        after_help = "Examples:\n  provost notify 3f0c2a --status ack\n  provost notify 3f0c2a --status completed --summary \"12 tests pass\""
    )]
    Notify(tasks::Notify),
    /// List the requests that wait for approval
    #[command(after_help = "Example:\n  provost approvals")]
    Approvals,
    /// Approve a request, from a terminal
    #[command(after_help = "Example:\n  provost approve 7 --note \"looked at it\"")]
    Approve(approvals::Approve),
    /// Deny a request, from a terminal
    #[command(after_help = "Example:\n  provost deny 7 --reason \"not on a Friday\"")]
    Deny(approvals::Deny),
    /// Write the changes of a task's private copy into your files
    #[command(
        after_help = "Examples:\n  provost apply 3f0c2a --preview   # shows the differences and writes nothing\n  provost apply 3f0c2a\n\nThe rules may demand approval first; after it, repeat the same command. `provost undo` takes the apply back."
    )]
    Apply(applies::Apply),
    /// List the applies to your files, the newest first
    #[command(after_help = "Examples:\n  provost applies\n  provost applies --json")]
    Applies,
    /// Restore the files from before an apply
    #[command(
        after_help = "Examples:\n  provost undo 7\n  provost undo 7 --force\n  provost undo 8   # takes back the undo, which was apply 8\n\nA file that has changed since stays unchanged, and the exit code is 1."
    )]
    Undo(applies::Undo),
    /// List the known agents, each once, with the doors that they use
    #[command(after_help = "Example:\n  provost agents")]
    Agents,
    /// List workflows, which editors can run, and their files
    #[command(
        after_help = "Examples:\n  provost workflows\n  provost workflows show dev:fix_and_review\n  provost workflows --json\n\nExit codes: 0; 1 if one of them is invalid."
    )]
    Workflows(workflows::Workflows),
    /// Take a lock on a symbol, or refresh it
    #[command(
        after_help = "Examples:\n  provost lock src/auth.ts:Session.renew --reason \"new token format\"\n  provost lock src/auth.ts:login --wait 2m --ttl 10m\n  provost lock src/auth.ts --while-parent --as agent-a\n\nExit codes: 0 you hold it; 5 another agent holds it; 4 refused. With --json, `data` has the holder, the time at which the\nlock ends, and the number of the grant."
    )]
    Lock(locks::Take),
    /// Release a lock, or all of them
    #[command(
        after_help = "Examples:\n  provost unlock src/auth.ts:login\n  provost unlock --all --as agent-a\n  provost unlock src/auth.ts:login --force"
    )]
    Unlock(locks::Unlock),
    /// List locks, and the agents that wait for them
    #[command(after_help = "Examples:\n  provost locks\n  provost locks --mine --json")]
    Locks(locks::List),
    /// Announce a change, and list its collisions
    #[command(
        after_help = "Examples:\n  provost intend \"rename renew to refresh\" --file src/auth.ts --symbol Session.renew\n  provost intend \"new parser\" --file src/parse.py --ttl 2h --json"
    )]
    Intend(intents::Intend),
    /// List intents
    #[command(
        after_help = "Examples:\n  provost intents\n  provost intents --file src/auth.ts --status resolved"
    )]
    Intents(intents::List),
    /// Change the status of an intent
    #[command(after_help = "Examples:\n  provost intent 3f0c2a active\n  provost intent 3f0c2a resolved")]
    Intent(intents::Update),
    /// Claim a whole file, so that no other agent of the crew works on it
    #[command(
        after_help = "Examples:\n  provost claim src/auth.ts --as claude-code-1\n  provost claim src/auth.ts --json\n\nExit codes: 0 you hold it; 5 another agent holds it. The agent has to be in the crew: `provost adapt` announces it."
    )]
    Claim(claims::Claim),
    /// List files that agents of the crew have claimed
    #[command(after_help = "Examples:\n  provost claims\n  provost claims --json")]
    Claims,
    /// Release a claimed file
    #[command(after_help = "Example:\n  provost release src/auth.ts --as claude-code-1")]
    Release(claims::Release),
    /// Keep a section about the other agents current in CLAUDE.md, AGENTS.md or Cursor's rules; end with Ctrl-C
    #[command(
        after_help = "Examples:\n  provost adapt claude\n  provost adapt cursor --agent cursor-2\n  provost adapt agents-md --file docs/AGENTS.md --once\n  provost adapt codex --remove"
    )]
    Adapt(adapt::Adapt),
    /// Name the agent that leads the crew of Agent Protocol, from a terminal
    #[command(after_help = "Example:\n  provost lead claude-code-1")]
    Lead(crew::Lead),
    /// Import the data of the published server of Agent Protocol
    #[command(
        subcommand,
        after_help = "Example:\n  provost agent-protocol import .agent-protocol/protocol.db"
    )]
    AgentProtocol(crew::AgentProtocol),
    /// Agree on the signature of a symbol, and check commits against it
    #[command(
        subcommand,
        after_help = "Examples:\n  provost contract propose src/auth.ts:login --as agent-a\n  provost contract accept 3f0c2a --as agent-b\n  provost contract check"
    )]
    Contract(contracts::Contract),
    /// Messages between agents, as the broker door passes them on
    #[command(
        subcommand,
        after_help = "Examples:\n  provost broker status\n  provost broker inbox supervisor --wait 1m\n  provost broker boot-block feat/auth"
    )]
    Broker(broker::Broker),
    /// Answer an agent's question
    #[command(
        after_help = "Examples:\n  provost answer feat-auth \"RS256\"\n  provost answer 42 \"yes\" --tmux paw:0.2"
    )]
    Answer(broker::Answer),
    /// Watch locks, intents and contracts as they come and go; end with Ctrl-C
    #[command(after_help = "Examples:\n  provost watch\n  provost watch --json | jq --unbuffered .kind")]
    Watch(watch::Watch),
    /// Check whether an agent may write to a file
    #[command(
        after_help = "Examples:\n  provost guard src/auth.ts --agent agent-a || exit\n  provost guard src/auth.ts --stdin-content < new.ts\n\nExit codes: 0 free; 5 another agent holds it; 6 the check was impossible. The command never takes longer than git.deadline."
    )]
    Guard(guard::Guard),
    /// Manage git hooks that check commits and pushes against contracts and locks
    #[command(subcommand, after_help = "Examples:\n  provost git install\n  provost git status")]
    Git(git::Git),
    /// Manage hooks that keep agents' hosts from writing files that another agent holds
    #[command(
        subcommand,
        after_help = "Examples:\n  provost hooks install claude\n  provost hooks status\n  provost hooks remove claude"
    )]
    Hooks(hooks::Hooks),
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
    /// Manage secrets of workers; the daemon adds them to requests, or hands them over
    #[command(
        subcommand,
        after_help = "Examples:\n  provost secret add ci --env CI_TOKEN < token\n  provost secret list"
    )]
    Secret(secrets::Secrets),
    /// Allow a configuration file of the repository, with exactly its present content
    #[command(
        after_help = "Examples:\n  provost allow\n  provost allow devit.core.toml --yes\n  provost allow devit.core.toml --forget"
    )]
    Allow(allow::Allow),
    /// Check and test the policy rules
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
    /// Load configuration, policy and keys again
    #[command(after_help = "Example:\n  provost reload")]
    Reload,
    /// Copy the store into a file, while the daemon goes on
    #[command(after_help = "Example:\n  provost backup ~/provost-2026-07-01.db")]
    Backup(backup::Backup),
    /// Continue after damage: from a backup, with the remaining history, or empty
    #[command(
        after_help = "All numbers continue above the issued ones, so no number is issued twice. The present files are kept aside.\n\nExamples:\n  provost restore ~/provost-2026-07-01.db\n  provost restore --as-it-is\n  provost restore --empty"
    )]
    Restore(backup::RestoreFrom),
    /// Check and export the journal, a chain that cannot be changed unnoticed
    #[command(
        subcommand,
        after_help = "Examples:\n  provost journal verify\n  provost journal export > journal.jsonl"
    )]
    Journal(journal::Journal),
    /// Serve MCP on standard input and output, for an agent's host that starts it
    #[command(
        after_help = "For the host's configuration:\n  {\"mcpServers\": {\"provost\": {\"command\": \"provost\", \"args\": [\"mcp\"]}}}\n\nExamples:\n  provost mcp\n  provost mcp --as coder"
    )]
    Mcp(mcp::Mcp),
    /// Show the log of events
    #[command(
        after_help = "Examples:\n  provost log\n  provost log --follow\n  provost log --after 120 --json\n  provost log job_a2b3c4d5e6f7g8h9 --follow"
    )]
    Log(log::Log),
    /// Show callers and callees of a symbol, across files
    #[command(
        subcommand,
        after_help = "Examples:\n  provost graph callers src/auth.ts:validateToken\n  provost graph status"
    )]
    Graph(graph::Graph),
    /// Commands for notification hooks
    #[command(subcommand, after_help = "Example:\n  provost hook wait --timeout 30s && echo seen")]
    Hook(hook::Hook),
    /// Check this machine, the files and the daemon for problems
    #[command(after_help = "Examples:\n  provost doctor\n  provost doctor --json")]
    Doctor,
    /// Pause or resume a worker; and report from inside a worker's jail
    #[cfg(unix)]
    #[command(
        subcommand,
        after_help = "Examples:\n  provost worker off claude_code\n  provost worker on claude_code\n  provost worker report \"half of it\" --percent 50"
    )]
    Worker(worker::Worker),
    /// Print the completions of a shell
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

/// `provost init`.
#[derive(Args, Debug)]
pub(super) struct Init {
    /// Copy this policy to the user's configuration, for editing; without it the built-in default applies
    #[arg(long, value_enum)]
    pub(super) policy: Option<Preset>,
}

/// A policy to start from.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preset {
    /// Every request needs approval
    Strict,
    /// The built-in rules
    Default,
    /// Few requests need approval; for disposable machines
    Open,
}

/// `provost env`.
#[derive(Args, Debug)]
pub(super) struct Env {
    /// For which shell
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
    /// The shell
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
    /// Where to listen
    #[arg(long, default_value = "/tmp/devitd.sock", value_hint = ValueHint::FilePath)]
    pub(super) socket: PathBuf,
    /// The secret of this door, for this run; by default DEVIT_SECRET, else the generated one
    #[arg(long)]
    pub(super) secret: Option<String>,
    /// Log more
    #[arg(long)]
    pub(super) debug: bool,
    /// A devit.core.toml
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,
    /// End after this many seconds without clients and work; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(super) auto_shutdown_after: Option<u64>,
}

/// A duration such as `90s`, `10m` or `2h`; a bare number is seconds.
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
