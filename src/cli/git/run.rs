//! The checks of the hooks. They end within their deadline, and report if a check was impossible.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::agent::{self, Marker};
use super::changes::{ask, changes};
use super::checker::{Checker, say_violations};
use crate::cli_error::{DONE, FAILED};
use crate::git_index::{self, Index};
use crate::guard::held;
use crate::identity::IdentityArgs;
use crate::repo_context::wait_for;
use crate::{CliError, RepoContext, out};
use provost_api::wire;
use provost_client::{Client, ClientError};
use provost_config::{Enforce, GitSettings, Unchecked};

/// Most refs of a push that are checked; a push of more is a mirror, and the hook reports that it is unchecked.
const REFS_MAX: usize = 1_000;

/// The reason that others read while a commit holds git's index.
const COMMITS: &str = "git commit";

/// The longest time that a commit waits for git's index.
const INDEX_WAIT: Duration = Duration::from_secs(3);

/// The option that bounds the remote branches that are searched for the common ancestor of a new branch, newest first.
const REMOTE_REFS: &str = "--count=500";

/// `provost git run`.
#[derive(Subcommand, Debug)]
pub(crate) enum Run {
    /// Check staged changes against contracts and locks
    PreCommit,
    /// Add trailers that name the intents of the commit
    PrepareCommitMsg(Message),
    /// Tell the other agents of a commit
    PostCommit,
    /// Check pushed commits against contracts
    PrePush(Push),
}

/// The arguments that git gives `prepare-commit-msg`.
#[derive(Args, Debug)]
pub(crate) struct Message {
    file: PathBuf,
    /// The source of the message
    source: Option<String>,
    /// The commit that is amended
    commit: Option<String>,
}

/// The arguments that git gives `pre-push`.
#[derive(Args, Debug)]
pub(crate) struct Push {
    /// The remote's name
    remote: String,
    /// The remote's address
    address: Option<String>,
}

/// Whether git may go on.
enum Checked {
    Fine,
    Refused,
}

/// The settings that could be read.
struct Settings {
    here: RepoContext,
    enforce: Enforce,
    git: GitSettings,
}

impl Settings {
    fn read(here: RepoContext) -> Result<Self, CliError> {
        let config = here.config(None)?.config;
        Ok(Self { here, enforce: config.coordination.enforce, git: config.git })
    }

    /// Returns a client of the daemon; the hook starts the daemon if the settings permit.
    async fn client(&self) -> Result<Client, CliError> {
        let agent = IdentityArgs::named(&self.here, None)?;
        let client = self.here.client().speaking_as(agent);
        if self.git.start_daemon
            && matches!(self.here.client().about().await, Err(ClientError::NotRunning(_)))
        {
            start().await?;
        }
        Ok(client)
    }
}

/// Starts a daemon. It outlives the hook, so it must not inherit git's variables for hooks.
async fn start() -> Result<(), CliError> {
    let mut up = tokio::process::Command::new(provost_system::this_program());
    let ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("GIT_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        up.env_remove(name);
    }
    let done = up.args(["daemon", "start"]).stdin(Stdio::null()).stdout(Stdio::null()).output().await;
    let done = done.map_err(|err| CliError::of("no daemon could be started").because(err))?;
    match done.status.success() {
        true => Ok(()),
        false => {
            Err(CliError::of("no daemon could be started")
                .because(String::from_utf8_lossy(&done.stderr).trim()))
        }
    }
}

pub(crate) fn run(asked: &Run) -> Result<u8, CliError> {
    let here = match RepoContext::find(false) {
        Ok(here) => here,
        // Without a home, neither a daemon nor a setting can be found.
        Err(error) => {
            out::note(format!("provost: warning: not checked: {}", error.in_short()));
            return Ok(DONE);
        }
    };
    let settings = match Settings::read(here) {
        Ok(settings) => settings,
        // The person who wrote a configuration that cannot be used may have wanted commits to be blocked.
        Err(error) if matches!(asked, Run::PreCommit | Run::PrePush(_)) => {
            return Err(error.because("so nothing was checked; `git commit --no-verify` skips the check"));
        }
        Err(error) => return Ok(no_trailers(&error)),
    };
    let (what, checked) = match asked {
        Run::PrepareCommitMsg(message) => {
            return Ok(in_time(&settings, trailers(&settings, message)).unwrap_or_else(|it| no_trailers(&it)));
        }
        Run::PostCommit => return Ok(told(&settings)),
        Run::PreCommit => ("commit", in_time(&settings, pre_commit(&settings))),
        Run::PrePush(push) => {
            let refs = pushed()?;
            ("push", in_time(&settings, pre_push(&settings, push, refs)))
        }
    };
    match (checked, settings.git.when_unchecked) {
        (Ok(Checked::Fine), _) => Ok(DONE),
        (Ok(Checked::Refused), _) => Ok(FAILED),
        (Err(error), Unchecked::Pass) => {
            out::note(format!("provost: warning: not checked, and the {what} goes on: {}", error.in_short()));
            Ok(DONE)
        }
        (Err(error), Unchecked::Block) => {
            out::note(format!("provost: not checked, so the {what} is refused: {}", error.in_short()));
            out::note(format!("  try: provost up, then again; or git {what} --no-verify"));
            Ok(FAILED)
        }
    }
}

fn no_trailers(error: &CliError) -> u8 {
    out::note(format!("provost: warning: no trailers added: {}", error.in_short()));
    DONE
}

/// Announces the commit. It is already made, so a failure here never fails the hook.
fn told(settings: &Settings) -> u8 {
    let work = async {
        let client = settings.client().await?;
        match client.about().await {
            // No daemon runs, so no agent can be told.
            Err(ClientError::NotRunning(_)) => Ok(()),
            _ => {
                index_after_the_commit(settings, &client).await?;
                agent::tell_commit(&settings.here, &client).await
            }
        }
    };
    if let Err(error) = in_time(settings, work) {
        out::note(format!("provost: warning: the other agents were not told: {}", error.in_short()));
    }
    DONE
}

/// Checks that an agent commits to its own branch, if git-paw's settings demand that.
async fn on_its_branch() -> Checked {
    let (Some(marker), Some(branch)) = (Marker::read().await, agent::branch().await) else {
        return Checked::Fine;
    };
    let Some(wanted) = marker.refuses(&branch) else { return Checked::Fine };
    out::note(out::one_line(
        &format!(
            "provost: this worktree is for '{wanted}', and '{branch}' is checked out; the commit is refused"
        ),
        400,
    ));
    out::note(out::one_line(
        &format!("  try: git switch {}, then again", provost_base::shell_word(wanted)),
        400,
    ));
    Checked::Refused
}

fn in_time<T>(settings: &Settings, work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let deadline: Duration = settings.git.deadline.as_duration();
    wait_for(async {
        tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
            Err(CliError::of(format!("it took longer than git.deadline, {} s", deadline.as_secs())))
        })
    })
}

async fn pre_commit(settings: &Settings) -> Result<Checked, CliError> {
    if matches!(on_its_branch().await, Checked::Refused) {
        return Ok(Checked::Refused);
    }
    match index_for_the_commit(settings).await {
        Ok(None) => {}
        Ok(Some(held)) => {
            let name = git_index::name(&settings.here);
            out::note(out::one_line(&format!("provost: the commit is refused: {held}"), 800));
            out::note(format!(
                "  try: again in a moment; or, if it is not given back, provost lock release {name} --force; or git commit \
                 --no-verify"
            ));
            return Ok(Checked::Refused);
        }
        // Contracts and locks are still checked.
        Err(error) => out::note(out::one_line(
            &format!("provost: warning: git's index is not held for this commit: {}", error.in_short()),
            800,
        )),
    }
    let checker = Checker::new(&settings.here, settings.client().await?);
    let locks = settings.enforce != Enforce::Off;
    let (contracts, blocked) = checker.look_at(&["--cached"], locks).await?;
    let denied = !blocked.is_empty() && settings.enforce == Enforce::Deny;
    let broken = !contracts.violations.is_empty();
    say_violations(&contracts.violations);
    for it in &blocked {
        let word = if denied { "" } else { "warning: " };
        let what = if it.touched {
            "this commit changes what is "
        } else {
            "this commit changes a file with what is "
        };
        out::note(out::one_line(&format!("provost: {word}{what}{}", held(it)), 800));
    }
    if broken {
        out::note(
            "provost: the commit is refused; restore the signature, or agree on a new one \
             (provost contract propose, then the other side accepts), or git commit --no-verify",
        );
    }
    if denied {
        out::note(
            "provost: the commit is refused; wait for the lock (provost lock SYMBOL --wait 2m), ask its holder, \
             leave the symbol out, or git commit --no-verify",
        );
    }
    Ok(if broken || denied { Checked::Refused } else { Checked::Fine })
}

/// Holds git's index from here until the commit has ended; returns the holder if that is another agent.
async fn index_for_the_commit(settings: &Settings) -> Result<Option<String>, CliError> {
    if settings.enforce == Enforce::Off {
        return Ok(None);
    }
    let client = settings.client().await?;
    let wait = (settings.git.deadline.as_duration() / 2).min(INDEX_WAIT);
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(1);
    let above = provost_system::processes_above();
    match git_index::take(&settings.here, &client, git_process(), (COMMITS, &above), wait_ms).await {
        Ok(Index::Taken | Index::Ours) => Ok(None),
        Ok(Index::Held(who)) => Ok(Some(who)),
        // Then no agent holds it; the checks report that they are impossible.
        Err(ClientError::NotRunning(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the git process that runs this hook: the lock for its commit ends with it.
fn git_process() -> Option<u32> {
    let is_git = |pid: &u32| provost_system::started_as(*pid, &[]).is_some_and(|(name, _)| name == "git");
    provost_system::processes_above().into_iter().find(is_git)
}

/// Releases the lock that was taken for the commit, but none that its agent has held before.
async fn index_after_the_commit(settings: &Settings, client: &Client) -> Result<(), CliError> {
    let git = git_process();
    let mine = wire::Whose { mine: true, ..wire::Whose::default() };
    let locks = client.locks(&mine).await?.locks;
    let name = git_index::name(&settings.here);
    let is_its =
        |it: &&wire::Lock| it.symbol == name && it.reason.as_deref() == Some(COMMITS) && it.pid == git;
    for lock in locks.iter().filter(is_its) {
        git_index::give_back(&settings.here, client, Some(lock.fence)).await;
    }
    Ok(())
}

/// Checks pushed commits against contracts alone: locks concern editing, and these edits are made.
async fn pre_push(settings: &Settings, push: &Push, refs: Vec<Pushed>) -> Result<Checked, CliError> {
    if agent::is_agents().await {
        out::note("error: git-paw agents must not push. The supervisor handles merges.");
        return Ok(Checked::Refused);
    }
    let checker = Checker::new(&settings.here, settings.client().await?);
    let mut broken = false;
    for pushed in &refs {
        let base = past(&pushed.local, &pushed.remote, &push.remote).await?;
        let (contracts, _) = checker.look_at(&[&base, &pushed.local], false).await?;
        if !contracts.violations.is_empty() {
            say_violations(&contracts.violations);
            out::note(out::one_line(&format!("provost: {} is not pushed", pushed.name), 400));
            broken = true;
        }
    }
    if broken {
        out::note(
            "provost: the push is refused; restore the signature, or agree on a new one \
             (provost contract propose, then the other side accepts), or git push --no-verify",
        );
    }
    Ok(if broken { Checked::Refused } else { Checked::Fine })
}

/// A pushed ref.
struct Pushed {
    name: String,
    local: String,
    remote: String,
}

/// Reads git's standard input: a line `name id remote-name remote-id` for each ref. A deletion changes no file.
fn pushed() -> Result<Vec<Pushed>, CliError> {
    let unreadable = |why: String| CliError::of("git does not list the pushed refs").because(why);
    let mut text = String::new();
    let most = (REFS_MAX as u64) << 12;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_string(&mut text)
        .map_err(|err| unreadable(err.to_string()))?;
    let mut refs = Vec::new();
    for line in text.lines() {
        let [name, local, _, remote] =
            line.split(' ').collect::<Vec<_>>().try_into().map_err(|_| unreadable(line.to_owned()))?;
        if !is_none(local) {
            refs.push(Pushed { name: name.to_owned(), local: local.to_owned(), remote: remote.to_owned() });
        }
    }
    match refs.len() > REFS_MAX {
        true => Err(unreadable(format!("more than {REFS_MAX} refs at once"))),
        false => Ok(refs),
    }
}

fn is_none(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0')
}

/// Returns the commit that the remote already has: its ref if that commit is known here, else the common ancestor of
/// the pushed commit and the remote's other branches; the empty tree if no such ancestor exists.
async fn past(local: &str, remote_id: &str, remote: &str) -> Result<String, CliError> {
    let known = format!("{remote_id}^{{commit}}");
    if !is_none(remote_id) && ask(&["cat-file", "-e", &known]).await.is_ok() {
        return Ok(remote_id.to_owned());
    }
    let pattern = format!("refs/remotes/{remote}/");
    let list = ["for-each-ref", REMOTE_REFS, "--sort=-committerdate", "--format=%(objectname)", &pattern];
    let others = ask(&list).await?;
    let others = String::from_utf8_lossy(&others);
    let others: Vec<&str> = others.lines().collect();
    if !others.is_empty()
        && let Ok(base) = ask(&[&["merge-base", local][..], &others].concat()).await
    {
        return Ok(String::from_utf8_lossy(&base).trim().to_owned());
    }
    let empty = ask(&["hash-object", "-t", "tree", "--stdin"]).await?;
    Ok(String::from_utf8_lossy(&empty).trim().to_owned())
}

/// Adds trailers for the committer's intents in force that name files of the commit, each once.
async fn trailers(settings: &Settings, message: &Message) -> Result<u8, CliError> {
    let client = settings.client().await?;
    let mine = wire::Whose { mine: true, ..wire::Whose::default() };
    let intents = client.intents(&mine).await?;
    if intents.is_empty() {
        return Ok(DONE);
    }
    let staged = changes(&["--cached"]).await?;
    let is_staged = |path: &String| {
        staged.iter().any(|it| it.path.as_ref() == Some(path) || it.from.as_ref() == Some(path))
    };
    let meant = intents.iter().filter(|it| it.files.iter().any(|file| is_staged(&file.path)));
    let trailers: Vec<String> = meant.map(|it| format!("Wit-Intent: {}", it.id)).collect();
    if trailers.is_empty() {
        return Ok(DONE);
    }
    let file = message.file.to_str().ok_or_else(|| CliError::of("the message's path is not UTF-8"))?;
    let mut args = vec!["interpret-trailers", "--in-place", "--if-exists", "addIfDifferent"];
    trailers.iter().for_each(|it| args.extend(["--trailer", it]));
    args.extend(["--", file]);
    ask(&args).await?;
    Ok(DONE)
}
