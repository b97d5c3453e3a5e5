//! The things that need the user, in all of the user's repositories: `provost` without arguments.
//!
//! The daemons are found by their entries in the state directory, and asked at the same time; one that does not
//! answer in time is listed as such, and delays no other. Each daemon decides what it shows to the caller.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::cli_error::{DONE, NOT_RUNNING, USAGE};
use super::status::{Needs, in_words, needs_of};
use super::{CliError, RepoContext, out, status};
use provost_base::limits::{DAEMON_ASKED_MS, DAEMONS_ASKED_MAX};
use provost_base::shell_word;
use provost_client::{Client, ClientError};
use provost_config::Places;
use provost_config::daemons::{self, Listed};
use provost_config::env::Environment;
use provost_store as store;

/// The version of this program, in the form in which daemons report theirs.
const VERSION: &str = concat!("provost/", env!("CARGO_PKG_VERSION"));

/// Flags that may stand before `-C`.
const FLAGS: [&str; 1] = ["--json"];

/// A repository and its daemon.
#[derive(Serialize)]
pub(super) struct Repository {
    pub(super) root: String,
    pub(super) name: String,
    /// Whether the command was typed in it.
    pub(super) here: bool,
    /// `answers`, `slow`, `ended`, `down`, `damaged`, `other_version`, `refuses` or `unfit`.
    pub(super) state: &'static str,
    /// The reason, where it does not answer.
    pub(super) why: Option<String>,
    /// The next command, if one helps.
    pub(super) next: Option<String>,
    /// The things that need its user, if the daemon has answered.
    pub(super) needs: Option<Needs>,
}

/// All repositories, for programs.
#[derive(Serialize)]
struct Everywhere<'a> {
    /// The things that need the user in the repository around the command.
    #[serde(flatten)]
    here: Option<&'a Needs>,
    /// Whether every daemon has answered.
    complete: bool,
    /// The number of daemons that were not asked, since there are too many.
    more: usize,
    repositories: &'a [Repository],
}

/// Changes to the folder that `-C DIR` or `--repo DIR` names before the command, as git does; returns whether one was named.
pub(super) fn go_elsewhere(args: &mut Vec<OsString>) -> Result<bool, CliError> {
    let mut went = false;
    let mut at = 1;
    while at < args.len() {
        let joined = joined(&args[at]);
        if FLAGS.iter().any(|flag| args[at] == *flag) {
            at += 1;
        } else if args[at] == "-C" || args[at] == "--repo" || joined.is_some() {
            let typed = args.remove(at);
            let option = if typed.to_str().is_some_and(|it| it.starts_with("-C")) { "-C" } else { "--repo" };
            let missing = || {
                CliError::of(format!("{option} has no folder behind it"))
                    .next("provost -C FOLDER, and the command")
                    .with_code(USAGE)
            };
            let folder = match joined {
                Some(folder) => folder,
                None if at < args.len() => args.remove(at).into(),
                None => return Err(missing()),
            };
            if folder.as_os_str().is_empty() {
                return Err(CliError::of(format!("{option} has an empty name behind it, and no folder"))
                    .next("provost -C FOLDER, and the command")
                    .with_code(USAGE));
            }
            std::env::set_current_dir(&folder).map_err(|err| {
                CliError::of(format!(
                    "{} cannot be entered",
                    out::one_line(&folder.display().to_string(), 400)
                ))
                .because(err)
                .next("name the folder of a repository")
                .with_code(USAGE)
            })?;
            went = true;
        } else {
            break;
        }
    }
    Ok(went)
}

/// Returns the folder of `--repo=DIR` or `-CDIR`.
fn joined(arg: &std::ffi::OsStr) -> Option<PathBuf> {
    let text = arg.to_str()?;
    let short = || text.strip_prefix("-C").filter(|it| !it.is_empty());
    text.strip_prefix("--repo=").or_else(short).map(PathBuf::from)
}

/// Returns a note where `-C` stands behind a command, which has no such option.
pub(super) fn misplaced(err: &clap::Error) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue};
    match err.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(it)) if it == "-C" || it == "--repo" => Some(
            "\nnote: the folder of a repository stands before the command: provost -C FOLDER, and the command",
        ),
        _ => None,
    }
}

/// Runs `provost` without arguments.
pub(super) fn overview(narrowed: bool, json: bool) -> Result<u8, CliError> {
    let environment = Environment::current();
    if narrowed || environment.root.is_some() {
        return RepoContext::find(json).and_then(|here| status::overview(&here));
    }
    let here = RepoContext::find(json);
    let (files, more) = daemons::files(&environment, DAEMONS_ASKED_MAX)?;
    let mut repositories = ask_all(files, &environment, here.as_ref().ok())?;
    if let Ok(here) = &here
        && !repositories.iter().any(|it| it.here)
        && is_known(here)
    {
        // With only this repository, a failure is one of the command.
        if repositories.is_empty() {
            return status::overview(here);
        }
        repositories.push(without_entry(here)?);
    }
    if repositories.is_empty() {
        return Err(CliError::of("no daemon of yours runs, and there is no repository here")
            .because("Provost serves a repository with a daemon, which shows here what needs you")
            .next("cd to a repository, then: provost up")
            .with_code(NOT_RUNNING));
    }
    repositories.sort_by(|a, b| b.here.cmp(&a.here).then_with(|| a.root.cmp(&b.root)));
    let complete = more == 0 && repositories.iter().all(|it| it.state == "answers");
    let here = repositories.iter().find(|it| it.here).and_then(|it| it.needs.as_ref());
    let everywhere = Everywhere { here, complete, more, repositories: &repositories };
    match json {
        true => out::json(&everywhere)?,
        false => out::text_as_is(&told(&everywhere))?,
    }
    Ok(DONE)
}

/// Checks whether the folder is in a repository, or has had a daemon.
pub(super) fn is_known(here: &RepoContext) -> bool {
    here.places.identity != here.places.root || here.places.state.exists()
}

/// Asks the repository around the command, whose daemon has no entry: it is of an earlier version, or does not run.
fn without_entry(here: &RepoContext) -> Result<Repository, CliError> {
    super::repo_context::wait_for(async {
        let asked = ask(&here.places, here.client(), true);
        Ok(in_time(asked).await.unwrap_or_else(|| slow(&here.places, true)))
    })
}

/// A daemon to ask: its places, a client, and whether it is the one around the command.
pub(super) struct Running {
    pub(super) places: Box<Places>,
    pub(super) client: Client,
    pub(super) here: bool,
}

/// Asks the daemons of all entries at the same time.
fn ask_all(
    files: Vec<PathBuf>,
    environment: &Environment,
    here: Option<&RepoContext>,
) -> Result<Vec<Repository>, CliError> {
    let one = |it: Running| async move { ask(&it.places, it.client, it.here).await };
    each(files, environment, here, one, |silent| silent)
}

/// Asks the daemon of each entry with `ask`, all at the same time; `silent` makes the result for one that does not
/// run, or does not answer in time.
pub(super) fn each<T, A>(
    files: Vec<PathBuf>,
    environment: &Environment,
    here: Option<&RepoContext>,
    ask: impl Fn(Running) -> A + Clone + Send + Sync + 'static,
    silent: impl Fn(Repository) -> T + Clone + Send + Sync + 'static,
) -> Result<Vec<T>, CliError>
where
    T: Send + 'static,
    A: Future<Output = T> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|err| CliError::of("the system has no resources left").because(err))?;
    let asked = runtime.block_on(async {
        let started: Vec<_> = files
            .into_iter()
            .map(|path| {
                let (environment, is_here) = (environment.clone(), here.map(|it| it.places.hash.clone()));
                let (ask, silent) = (ask.clone(), silent.clone());
                tokio::spawn(async move {
                    let file = path.clone();
                    let asked = async {
                        match listed(path, environment, is_here).await? {
                            Ok(running) => Some(ask(running).await),
                            Err(it) => Some(silent(it)),
                        }
                    };
                    in_time(asked).await.unwrap_or_else(|| Some(silent(slow_entry(&file))))
                })
            })
            .collect();
        let mut all = Vec::new();
        for one in started {
            all.extend(one.await.ok().flatten());
        }
        all
    });
    // A disk that does not answer delays no other repository.
    runtime.shutdown_background();
    Ok(asked)
}

async fn in_time<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(DAEMON_ASKED_MS), asked).await.ok()
}

/// Returns the daemon that an entry leads to, or the reason why none runs.
async fn listed(
    path: PathBuf,
    environment: Environment,
    here: Option<String>,
) -> Option<Result<Running, Repository>> {
    let token = environment.token.clone();
    let listed = tokio::task::spawn_blocking(move || daemons::look(&path, &environment)).await.ok()??;
    match listed {
        Listed::Runs { places, .. } => {
            let here = here.as_deref() == Some(places.hash.as_str());
            // A token is for one daemon, so only that daemon gets it.
            let client = Client::at(places.own_socket()).showing(token.as_ref().filter(|_| here));
            Some(Ok(Running { places, client, here }))
        }
        Listed::Ended { entry, places } => {
            let root = entry.root.display().to_string();
            let is_here = places.as_ref().is_some_and(|it| here.as_deref() == Some(it.hash.as_str()));
            let gone = || Repository {
                why: Some("its daemon has ended, and the repository is not there any more".into()),
                ..row(&root, &entry.name, is_here, "ended")
            };
            let Some(places) = places else { return Some(Err(gone())) };
            let look = move || down(&places, is_here, "ended", "its daemon was killed or has failed");
            tokio::task::spawn_blocking(look).await.ok().map(Err)
        }
        Listed::Unfit { path, why } => {
            let text = path.display().to_string();
            Some(Err(Repository {
                why: Some(format!("this entry is not believed: it {why}")),
                next: Some(format!("rm {}", shell_word(&text))),
                ..row(&text, "?", false, "unfit")
            }))
        }
    }
}

fn row(root: &str, name: &str, here: bool, state: &'static str) -> Repository {
    Repository { root: root.into(), name: name.into(), here, state, why: None, next: None, needs: None }
}

pub(super) fn of_places(places: &Places, here: bool, state: &'static str) -> Repository {
    let name = places.root.file_name().unwrap_or(places.root.as_os_str()).to_string_lossy();
    row(&places.root.display().to_string(), &name, here, state)
}

/// Describes a daemon that should run, and does not: its store tells whether one can be started.
fn down(places: &Places, here: bool, state: &'static str, why: &str) -> Repository {
    let run = program(places, here);
    // A store in a database is not checked here: only the settings of its repository name the database.
    let in_folder = !store::is_in_database(&places.state);
    match store::look(&places.state, Some(&places.anchor()), false) {
        Err(err) if in_folder && places.state.exists() => Repository {
            why: Some(format!("{why}, and its store is damaged: {err}")),
            next: Some(format!("{run} store restore --help")),
            ..of_places(places, here, "damaged")
        },
        _ => Repository {
            why: Some(why.into()),
            next: Some(format!("{run} up")),
            ..of_places(places, here, state)
        },
    }
}

fn slow(places: &Places, here: bool) -> Repository {
    Repository {
        why: Some("its daemon does not answer within a second".into()),
        next: Some(format!("{} status", program(places, here))),
        ..of_places(places, here, "slow")
    }
}

/// Describes a repository whose disk or daemon does not answer: only its entry's file is known.
fn slow_entry(path: &Path) -> Repository {
    let entry = std::fs::read(path).ok().and_then(|it| serde_json::from_slice::<daemons::Entry>(&it).ok());
    let (root, name) = match entry {
        Some(entry) => (entry.root.display().to_string(), entry.name),
        None => (path.display().to_string(), "?".into()),
    };
    let next = Some(format!("provost -C {} status", shell_word(&root)));
    Repository {
        why: Some("its daemon does not answer within a second".into()),
        next,
        ..row(&root, &name, false, "slow")
    }
}

async fn ask(places: &Places, client: Client, here: bool) -> Repository {
    match needs_of(&client.keeping_connections()).await {
        Ok((version, mut needs)) => {
            if version != VERSION {
                let run = program(places, here);
                needs.notes.push(format!(
                    "its daemon is {version}, and this program {VERSION}: {run} down, then {run} up"
                ));
            }
            Repository { needs: Some(needs), ..of_places(places, here, "answers") }
        }
        Err(err) => failed(places, here, err).await,
    }
}

/// Describes a daemon that was asked, and has not answered for this reason.
pub(super) async fn failed(places: &Places, here: bool, err: ClientError) -> Repository {
    let run = program(places, here);
    let fails = |state, why: String, next: &str| Repository {
        why: Some(why),
        next: Some(next.into()),
        ..of_places(places, here, state)
    };
    match err {
        ClientError::NotRunning(_) => {
            let places = places.clone();
            let look = move || down(&places, here, "down", "no daemon runs");
            let looked = tokio::task::spawn_blocking(look).await;
            looked.unwrap_or_else(|_| fails("down", "no daemon runs".into(), &format!("{run} up")))
        }
        ClientError::Version(_) => {
            fails("other_version", err.to_string(), &format!("{run} down, then {run} up"))
        }
        ClientError::Foreign { .. } => fails("unfit", err.to_string(), &format!("{run} doctor")),
        ClientError::Slow => {
            fails("slow", "its daemon does not answer in time".into(), &format!("{run} status"))
        }
        err => fails("refuses", err.to_string(), &format!("{run} status")),
    }
}

/// Returns the beginning of commands for this repository.
pub(super) fn program(places: &Places, here: bool) -> String {
    match here {
        true => "provost".into(),
        false => format!("provost -C {}", shell_word(&places.root.display().to_string())),
    }
}

fn told(all: &Everywhere<'_>) -> String {
    let mut text = String::new();
    let several = all.repositories.len() > 1;
    for it in all.repositories {
        let title = format!("{}  {}", out::one_line(&it.name, 60), out::one_line(&it.root, 400));
        let run = match it.here {
            true => "provost".to_owned(),
            false => format!("provost -C {}", shell_word(&it.root)),
        };
        if let Some(needs) = &it.needs {
            let words = in_words(needs, &run);
            if !words.is_empty() {
                let head = if several || !it.here { format!("== {title}\n") } else { String::new() };
                text.push_str(&format!("{head}{words}"));
            }
            continue;
        }
        let why = out::one_line(it.why.as_deref().unwrap_or("it has said nothing"), 400);
        text.push_str(&format!("== {title}\n{why}\n"));
        if let Some(next) = &it.next {
            text.push_str(&format!("  try: {next}\n"));
        }
        text.push('\n');
    }
    if all.more > 0 {
        text.push_str(&format!("{} more daemons were not asked.\n", all.more));
    }
    if text.is_empty() {
        text.push_str(&match all.repositories.len() {
            1 => "Nothing needs you.\n".to_owned(),
            count => format!("Nothing needs you in any of {count} repositories.\n"),
        });
    }
    text
}
