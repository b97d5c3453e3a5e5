//! `provost guard`: checks whether an agent may write to a file, for the hooks of agents. It always ends in time.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::cli_error::{DONE, HELD, UNCHECKED, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::AgentId;
use provost_base::limits::SOURCE_BYTES_MAX;

/// `provost file`.
#[derive(Subcommand, Debug)]
pub(super) enum File {
    /// Check whether an agent may write to a file
    #[command(
        after_help = "Examples:\n  provost file check src/auth.ts --agent agent-a || exit\n  provost file check src/auth.ts --stdin-content < new.ts\n\nExit codes: 0 free; 5 another agent holds it; 6 the check was impossible. The command never takes longer than git.deadline."
    )]
    Check(Check),
}

/// `provost file check`.
#[derive(Args, Debug)]
pub(super) struct Check {
    /// The files; `FILE:SYMBOL` checks that symbol alone
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    paths: Vec<PathBuf>,
    /// The agent; by default as PROVOST_AGENT, WIT_SESSION or CLAUDE_SESSION_ID says, in a shell of Claude Code or
    /// Codex its session, else the user
    #[arg(long, alias = "as", value_name = "AGENT")]
    agent: Option<AgentId>,
    /// Read the new content of the file from standard input: only locks on changed symbols count
    #[arg(long)]
    stdin_content: bool,
}

pub(super) fn file(here: &RepoContext, asked: File) -> Result<u8, CliError> {
    let File::Check(asked) = asked;
    let guarded = look(here, &asked).map_err(|error| match error.code() {
        USAGE => error,
        _ => error.with_code(UNCHECKED),
    })?;
    let free = guarded.blocked.is_empty();
    if here.json {
        out::json(
            &json!({ "free": free, "agent": guarded.agent, "blocked": guarded.blocked, "near": guarded.near }),
        )?;
    } else {
        guarded.blocked.iter().for_each(|it| out::note(out::one_line(&held(it), 800)));
        for it in &guarded.near {
            let what = format!("note: {} has announced a change of {}: {}", it.agent, it.at, it.description);
            out::note(out::one_line(&what, 800));
        }
    }
    Ok(if free { DONE } else { HELD })
}

/// Says who holds the place, for how long, and why.
pub(super) fn held(it: &wire::Blocked) -> String {
    if let Some(claim) = &it.claim {
        let since = claim.since.as_deref().map(|it| format!(" since {}", short_time(it))).unwrap_or_default();
        return format!("claimed: {} by {}{since} (grant {})", claim.file, claim.holder, claim.fence);
    }
    // A newer daemon may know of further obstacles.
    let Some(lock) = &it.lock else { return "another agent's".into() };
    let reason = lock.reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    let until = short_time(&lock.until);
    if lock.written_in.is_some() {
        let since = short_time(&lock.since);
        return format!(
            "being written: {} by {} since {since}, held until {until} unless it is written again (grant {})",
            lock.symbol, lock.holder, lock.fence
        );
    }
    format!("locked: {} by {} until {until} (grant {}){reason}", lock.symbol, lock.holder, lock.fence)
}

fn look(here: &RepoContext, asked: &Check) -> Result<wire::Guarded, CliError> {
    let agent = IdentityArgs::named(here, asked.agent.clone())?;
    let deadline = here.config(None)?.config.git.deadline.as_duration();
    let mut edits = Vec::new();
    for asked in &asked.paths {
        let (path, symbol) = file_and_symbol(here, asked);
        edits.push(wire::Edit { path: here.path(&path)?, symbol, ..wire::Edit::default() });
    }
    if asked.stdin_content {
        let ([path], [wire::Edit { symbol: None, .. }]) = (asked.paths.as_slice(), edits.as_slice()) else {
            return Err(CliError::of("--stdin-content is about one file")
                .next("provost guard FILE --stdin-content < new-content")
                .with_code(USAGE));
        };
        (edits[0].before, edits[0].after) = contents(&here.cwd.join(path), deadline)?;
    }
    wait_for(async {
        let asked = wire::Guard { edits, worktree: here.linked_worktree() };
        let asking = async { Ok(here.daemon(agent).await?.guard(&asked).await?) };
        tokio::time::timeout(deadline, asking).await.unwrap_or_else(|_| {
            Err(CliError::of("the daemon did not answer in time")
                .next("provost doctor, or a longer git.deadline"))
        })
    })
}

/// Parses `FILE` or `FILE:SYMBOL`. An existing file whose name has a colon in it is a file; a symbol may have some, too.
fn file_and_symbol(here: &RepoContext, typed: &Path) -> (PathBuf, Option<String>) {
    let is_file = |it: &str| !it.is_empty() && here.cwd.join(it).is_file();
    let split = typed.to_str().and_then(|text| {
        let at_file = text.match_indices(':').find(|(at, _)| is_file(&text[..*at]));
        at_file.map(|(at, _)| (&text[..at], &text[at + 1..])).or_else(|| text.rsplit_once(':'))
    });
    match split.filter(|_| here.cwd.join(typed).symlink_metadata().is_err()) {
        Some((file, symbol)) if !file.is_empty() => {
            (file.into(), Some(symbol.to_owned()).filter(|it| !it.is_empty()))
        }
        _ => (typed.to_owned(), None),
    }
}

/// Returns the present and the new content of the file; neither if one is larger than the bound for files, and then
/// every lock in the file counts.
fn contents(path: &Path, deadline: Duration) -> Result<(Option<String>, Option<String>), CliError> {
    let unreadable = |err| CliError::of(format!("{} cannot be read", path.display())).because(err);
    let before = match path.metadata() {
        Ok(meta) if meta.is_file() => {
            limited(&mut std::fs::File::open(path).map_err(unreadable)?).map_err(unreadable)?
        }
        Ok(_) => return Err(CliError::of(format!("{} is no file", path.display())).with_code(USAGE)),
        Err(_) => Vec::new(),
    };
    let (give, take) = mpsc::channel();
    // The thread ends with this program if no input comes.
    let reads = std::thread::Builder::new().spawn(move || give.send(limited(&mut std::io::stdin().lock())));
    reads.map_err(|err| CliError::of("standard input cannot be read in time").because(err))?;
    let after =
        take.recv_timeout(deadline).map_err(|_| CliError::of("standard input did not end in time"))?;
    let after = after.map_err(|err| CliError::of("standard input cannot be read").because(err))?;
    if before.len().max(after.len()) > SOURCE_BYTES_MAX {
        return Ok((None, None));
    }
    Ok((Some(STANDARD.encode(before)), Some(STANDARD.encode(after))))
}

fn limited(file: &mut dyn std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map(|_| bytes)
}
