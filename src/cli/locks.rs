//! Locks on symbols and resources: commands that take, release and list them.

use clap::{Args, Subcommand};

use super::args::duration;
use super::cli_error::{DONE, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out, port, with};
use provost_api::wire;
use provost_base::{AgentId, Fence, Ttl};
use provost_client::Client;

/// `provost lock`.
#[derive(Subcommand, Debug)]
pub(super) enum Lock {
    /// Take a lock on a symbol or a resource, or renew it
    #[command(
        after_help = "Examples:\n  provost lock acquire src/auth.ts:Session.renew --reason \"new token format\"\n  provost lock acquire src/auth.ts:login --wait 2m --ttl 10m\n  provost lock acquire src/auth.ts --while-parent --as agent-a\n  provost lock acquire @db:test --wait 5m\n\nExit codes: 0 you hold it; 5 another agent holds it; 4 refused. With --json, `data` has the holder, the time at which the lock ends, and the number of the grant."
    )]
    Acquire(Acquire),
    /// Release a lock, or all of them
    #[command(
        after_help = "Examples:\n  provost lock release src/auth.ts:login\n  provost lock release @db:test\n  provost lock release --all --as agent-a\n  provost lock release src/auth.ts:login --force"
    )]
    Release(Release),
    /// List the locks, and the agents that wait for them
    #[command(after_help = "Examples:\n  provost lock list\n  provost lock list --mine --json")]
    List(List),
    /// Run a command while you hold resources; they are free again when it ends
    #[command(
        after_help = "Examples:\n  provost lock run @db:test -- make integration\n  provost lock run @port:5432 @gpu:2 --wait 10m -- ./train\n  provost lock run @deploy:staging --now -- ./deploy\n\nThe exit code is the command's; 128 and the signal's number if a signal ended it, 127 if there is no such command.\nBefore the command runs: 5 another agent holds it; 4 refused. A resource that `provost lock run` above this one holds already is not taken again."
    )]
    Run(with::Run),
    /// Lock a free port of a range, and print it
    #[command(
        after_help = "Examples:\n  PORT=$(provost lock port 3000-3999)\n  provost lock port 8080-8099 --ttl 2h --reason \"preview\"\n  provost lock release @port:3000"
    )]
    Port(port::Port),
}

/// `provost lock acquire`.
#[derive(Args, Debug)]
pub(super) struct Acquire {
    /// The symbol, as FILE:SYMBOL with FILE relative to the current directory; FILE alone is everything in it; or a resource, as
    /// @KIND or @KIND:VALUE
    symbol: String,
    #[command(flatten)]
    lease: LeaseArgs,
    /// If another agent holds it, wait for it this long
    #[arg(long, value_parser = duration, value_name = "2m")]
    wait: Option<Ttl>,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// The duration of a lock, and its reason.
#[derive(Args, Debug)]
pub(super) struct LeaseArgs {
    /// The duration of the lock
    #[arg(long, value_parser = duration, value_name = "30m")]
    ttl: Option<Ttl>,
    /// The reason, for other agents to read
    #[arg(long)]
    pub(super) reason: Option<String>,
    /// End the lock also with this process of yours
    #[arg(long, value_name = "NUMBER")]
    pid: Option<u32>,
    /// End the lock also with the process that runs this command
    #[arg(long, conflicts_with = "pid")]
    while_parent: bool,
}

impl LeaseArgs {
    /// Returns the process whose end also ends the lock, if one is named.
    pub(super) fn process(&self) -> Result<Option<u32>, CliError> {
        if !self.while_parent {
            return Ok(self.pid);
        }
        let parent = provost_system::parent_process().ok_or_else(|| {
            CliError::of("a lock cannot be bound to a process on this system")
                .next("--ttl 5m, and the same command again as long as the lock is needed")
                .with_code(USAGE)
        });
        parent.map(Some)
    }

    /// Returns the duration in milliseconds.
    pub(super) fn ttl_ms(&self) -> Option<u64> {
        self.ttl.map(|ttl| u64::from(ttl.as_millis()))
    }
}

/// `provost lock release`.
#[derive(Args, Debug)]
pub(super) struct Release {
    /// The symbol, as FILE:SYMBOL; or a resource
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    symbol: Option<String>,
    /// Release the lock only if it still has this grant number
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    fence: Option<Fence>,
    /// Release all locks of the agent that --as names
    #[arg(long)]
    all: bool,
    /// With --all: abandon the agent's intents, too
    #[arg(long, requires = "all")]
    intents: bool,
    /// Release the lock of any agent; only the user may do that
    #[arg(long, conflicts_with = "all")]
    force: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// `provost lock list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// List only the locks of the agent that --as names
    #[arg(long)]
    mine: bool,
    /// List only the locks of this agent
    #[arg(long, conflicts_with = "mine")]
    agent: Option<AgentId>,
    /// List only the locks in this file
    #[arg(long, value_hint = clap::ValueHint::FilePath)]
    file: Option<std::path::PathBuf>,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn lock(here: &RepoContext, asked: Lock) -> Result<u8, CliError> {
    match asked {
        Lock::Acquire(it) => acquire(here, it),
        Lock::Release(it) => release(here, it),
        Lock::List(it) => list(here, it),
        Lock::Run(it) => with::run(here, &it),
        Lock::Port(it) => port::port(here, &it),
    }
}

fn acquire(here: &RepoContext, asked: Acquire) -> Result<u8, CliError> {
    // A lock that a model takes in its host's shell ends with the host at the latest.
    let pid = asked.lease.process()?.or_else(|| asked.identity.host_process());
    let request = wire::TakeLock {
        symbol: here.lockable(&asked.symbol)?,
        ttl_ms: asked.lease.ttl_ms(),
        at_least: false,
        wait_ms: asked.wait.map(|wait| u64::from(wait.as_millis())),
        reason: asked.lease.reason,
        pid,
        apart: false,
        fresh: false,
        worktree: here.linked_worktree(),
    };
    IdentityArgs::start(here)?;
    let locked = wait_for(async {
        let client = asked.identity.daemon(here).await?;
        taken(&client, &request).await
    })?;
    if here.json {
        return out::json(&locked).map(|()| DONE);
    }
    let lock = &locked.lock;
    out::line(out::one_line(
        &format!(
            "locked: {} until {} (grant {})",
            out::name(&lock.symbol, 300),
            short_time(&lock.until),
            lock.fence
        ),
        400,
    ))?;
    told("warning", &locked.warnings, locked.more);
    Ok(DONE)
}

/// The time for which a lock is waited for before a note says which one.
const SAID_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// Takes a lock, and says what it waits for, and who holds it.
pub(super) async fn taken(client: &Client, request: &wire::TakeLock) -> Result<wire::Locked, CliError> {
    let mut progress = out::Progress::begin(String::new()).told_once();
    let answer = client.lock(request);
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => return Ok(answer?),
        () = tokio::time::sleep(SAID_AFTER) => progress.says(waits_for(client, &request.symbol).await),
    }
    Ok(progress.during(answer).await?)
}

/// Says what is waited for, and who holds it, as far as that is known.
async fn waits_for(client: &Client, symbol: &str) -> String {
    let all = wire::Whose::default();
    let locks = client.locks(&all).await.map(|it| it.locks).unwrap_or_default();
    let mut holders: Vec<String> = Vec::new();
    for lock in locks.iter().filter(|it| is_in_the_way(it, symbol)) {
        let holder = lock.name.as_deref().map_or_else(|| lock.holder.clone(), str::to_owned);
        if !holders.contains(&holder) {
            holders.push(holder);
        }
    }
    let by = match holders.len() {
        0 => String::new(),
        1 => format!(", which {} has", holders[0]),
        _ => format!(", which {} have", holders.join(" and ")),
    };
    out::one_line(&format!("waiting for {symbol}{by}"), 200)
}

/// Checks whether a lock blocks the wanted one: it is on the same symbol, on one around or inside it, or on units of the same kind.
fn is_in_the_way(lock: &wire::Lock, symbol: &str) -> bool {
    let is_in =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|it| it.starts_with([':', '.']));
    let held = lock.symbol.as_str();
    let kind = |it: &str| it.split(':').next().map(str::to_owned);
    let same_kind = lock.units.is_some() && kind(held) == kind(symbol);
    held == symbol || same_kind || (!held.starts_with('@') && (is_in(symbol, held) || is_in(held, symbol)))
}

/// Prints warnings beside the answer.
pub(super) fn told(word: &str, all: &[wire::Told], more: usize) {
    for it in all {
        let word = if it.kind == "incomplete" { "warning" } else { word };
        out::note(out::one_line(&format!("{word} [{}]: {}", it.kind, out::local_times(&it.message)), 800));
    }
    if more > 0 {
        out::note(format!("{word}: and {more} more"));
    }
}

fn release(here: &RepoContext, asked: Release) -> Result<u8, CliError> {
    let Some(symbol) = &asked.symbol else {
        let leave = wire::Leave { intents: asked.intents, pid: None };
        let left = wait_for(async { Ok(asked.identity.daemon(here).await?.leave(&leave).await?) })?;
        if here.json {
            return out::json(&left).map(|()| DONE);
        }
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let intents = asked.intents.then(|| format!(", abandoned {}", many(left.intents, "intent")));
        let locks = many(left.locks, "lock");
        return out::line(format!("released {locks}{}", intents.unwrap_or_default())).map(|()| DONE);
    };
    let request = wire::Unlock {
        symbol: here.lockable(symbol)?,
        fence: asked.fence.map(|it| it.0),
        force: asked.force,
        worktree: here.linked_worktree(),
    };
    let lock = wait_for(async { Ok(asked.identity.daemon(here).await?.unlock(&request).await?) })?;
    if here.json {
        return out::json(&lock).map(|()| DONE);
    }
    out::line(out::one_line(&format!("released: {}", out::name(&lock.symbol, 400)), 440)).map(|()| DONE)
}

fn list(here: &RepoContext, asked: List) -> Result<u8, CliError> {
    let query = wire::Whose {
        mine: asked.mine,
        agent: asked.agent.map(|it| it.to_string()),
        file: asked.file.map(|it| here.path(&it)).transpose()?,
        status: None,
    };
    let locks = wait_for(async { Ok(asked.identity.daemon(here).await?.locks(&query).await?) })?;
    if here.json {
        return out::json(&locks).map(|()| DONE);
    }
    if locks.locks.is_empty() {
        out::note("nothing is locked");
    } else {
        out::text_as_is(&table(&locks.locks))?;
    }
    for it in &locks.waiting {
        let until = short_time(&it.until);
        let task = it.task.as_deref().map(|it| format!(" (task {it})")).unwrap_or_default();
        out::line(out::one_line(
            &format!("waits until {until}: {}{task} for {}", it.agent, out::name(&it.symbol, 300)),
            400,
        ))?;
    }
    Ok(DONE)
}

/// Returns locks as a table.
pub(super) fn table(locks: &[wire::Lock]) -> String {
    let mut rows = vec![["SYMBOL", "HOLDER", "GRANT", "UNTIL", "REASON"].map(String::from)];
    rows.extend(locks.iter().map(|lock| {
        let holder =
            lock.name.as_ref().map_or(lock.holder.clone(), |name| format!("{} ({name})", lock.holder));
        let bound = lock.pid.map(|pid| format!("[process {pid}] ")).unwrap_or_default();
        let reason = format!(
            "{bound}{}",
            lock.reason.as_deref().unwrap_or(match (&lock.written_in, bound.is_empty()) {
                (Some(_), _) => "being written",
                (None, true) => "-",
                (None, false) => "",
            })
        );
        [
            out::name(&lock.symbol, 120),
            out::one_line(&holder, 60),
            lock.fence.to_string(),
            short_time(&lock.until),
            out::one_line(&reason, 80),
        ]
    }));
    out::table(&rows)
}
