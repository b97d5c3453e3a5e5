//! Loads files into a [`Config`]: layers, unknown keys, invalid values.
//!
//! The effect of a mistake is decided here, once: after a wrong value the layer beneath stays in force, and a note reports
//! it; where the setting enforces something, loading fails instead; of workers, only the wrong one is refused.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::env::Environment;
use super::pin::{self, RepoFile, Status};
use super::table::{Config, sections};
use super::value::{Context, Mark, Row};
use super::{agent_protocol, devit, git_paw, places};
use provost_base::limits::{SETTINGS_FILE_BYTES_MAX, WORKFLOW_FILES_MAX};
use provost_base::nearest;
use provost_system as system;

/// The folder with files of workflows, beside a file of settings.
const WORKFLOWS: &str = "workflows";

/// The files that make up the configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The system's file; absent is fine.
    pub system: Option<PathBuf>,
    /// The user's file; absent is fine.
    pub user: Option<PathBuf>,
    /// The repository's root, at which relative paths in its files begin.
    pub root: PathBuf,
    /// The repository's files, as [`pin::pending`] returns them; only allowed content is used.
    pub repository: Vec<RepoFile>,
    /// The file named on the command line; it must exist.
    pub explicit: Option<(PathBuf, Dialect)>,
}

impl Sources {
    /// Returns the usual files for a repository at these places, with the file that `--config` or the environment names.
    pub fn usual(
        places: &places::Places,
        repository: Vec<RepoFile>,
        explicit: Option<(PathBuf, Dialect)>,
    ) -> Self {
        Self {
            system: Some(PathBuf::from(places::SYSTEM_CONFIG).join("provost.toml")),
            user: Some(places.config.join("provost.toml")),
            root: places.root.clone(),
            repository,
            explicit,
        }
    }
}

/// Returns the file that `--config` names, or else `PROVOST_CONFIG` or `DEVIT_CORE_CONFIG`.
///
/// When the daemon is started in DevIt's way, `--config` names a file of DevIt's, under any name.
pub fn named(
    flag: Option<PathBuf>,
    devit_form: bool,
    environment: &Environment,
) -> Option<(PathBuf, Dialect)> {
    let given = flag.map(|path| {
        let dialect = if devit_form { Dialect::Devit } else { Dialect::of(&path) };
        (path, dialect)
    });
    let ours = || Some((environment.provost_config.clone()?, Dialect::Provost));
    let devits = || Some((environment.devit_config.clone()?, Dialect::Devit));
    given.or_else(ours).or_else(devits)
}

/// The set of keys that a file uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// The keys of Provost's table of settings.
    Provost,
    /// A `devit.core.toml`.
    Devit,
    /// A `.git-paw/config.toml`.
    GitPaw,
}

impl Dialect {
    /// A file called `devit.core.toml` is DevIt's, any other is Provost's.
    pub fn of(path: &Path) -> Self {
        if path.file_name().is_some_and(|name| name == "devit.core.toml") {
            Self::Devit
        } else {
            Self::Provost
        }
    }
}

/// A configuration, with the notes about its files.
#[derive(Clone, PartialEq, Debug)]
pub struct Loaded {
    /// The configuration that is in force.
    pub config: Config,
    /// The notes for the person who starts the daemon, in the order of the files.
    pub notes: Vec<Note>,
    /// The file or variable that set each key (`devit.window`, `workers.shell`); all other keys have their defaults.
    pub origins: BTreeMap<String, String>,
}

/// A note for a person about a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The file, or the environment variable.
    pub file: String,
    /// The line, from 1; `None` where the note is about no line.
    pub line: Option<usize>,
    /// The key, dotted; empty when the note is about the whole file.
    pub key: String,
    /// The problem, and the next step.
    pub message: String,
    /// The severity of the note.
    pub severity: Severity,
}

/// The severity of a note.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Nothing is wrong, but a person may want to know it.
    Info,
    /// A part of the file was ignored.
    Warning,
    /// A part of the file does not work as written.
    Error,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))?;
        let key = if self.key.is_empty() { String::new() } else { format!(" `{}`", self.key) };
        write!(f, ":{key} {}", self.message)
    }
}

/// A worker that a file names and that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedWorker {
    /// The file with the entry.
    pub file: String,
    /// The reason, for callers that ask for this worker.
    pub reason: String,
    /// Whether the entry was one of an agent.
    pub is_agent: bool,
}

/// The error of a configuration that cannot be used; the daemon must not start with weaker settings than the file asks for.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{note}.\nCorrect it, or remove it to get the default; docs/configuration.md lists every setting.")]
pub struct Broken {
    /// The setting, with the file and the mistake.
    pub note: Note,
}

/// Reads every layer and the environment.
///
/// # Errors
/// [`Broken`] when a file is not TOML, cannot be read, may be written by others, or has a wrong value for a setting
/// that enforces something. A missing file is an error only when it was named explicitly.
pub fn load(sources: &Sources, environment: &Environment) -> Result<Loaded, Broken> {
    let mut loading = Loading::new(environment);
    for path in [&sources.system, &sources.user].into_iter().flatten() {
        if let Some(text) = own_file(path)? {
            loading.layer(&path.display().to_string(), &text, parent(path), Dialect::Provost, false)?;
        }
        loading.workflow_folder(&parent(path).join(WORKFLOWS));
    }
    for file in &sources.repository {
        loading.repository_file(&sources.root, file)?;
    }
    if let Some((path, dialect)) = &sources.explicit {
        let text = read(path).map_err(|message| broken(path, message))?;
        loading.layer(&path.display().to_string(), &text, parent(path), *dialect, false)?;
    }
    loading.environment(environment)?;
    loading.refuse_impossible_needs();
    loading.join_reviewers();
    loading.join_roles();
    loading.note_capped_agents();
    loading.check_pools()?;
    Ok(loading.done)
}

/// Says which name occurs twice in a file, and where it stands first, if that is the mistake.
fn said_twice(text: &str, at: usize) -> Option<String> {
    let lines: Vec<&str> =
        text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    let here = line_of(text, at).checked_sub(1)?;
    let line = lines.get(here)?;
    let before = || lines.iter().take(here).enumerate();
    if line.starts_with('[') {
        let head = line.trim_matches(['[', ']']);
        let Some((first, _)) = before().find(|(_, it)| **it == *line) else {
            let (first, key) = before().find(|(_, it)| it.starts_with(&format!("{head}.")))?;
            let key = key.split('=').next().unwrap_or_default().trim();
            return Some(format!(
                "`[{head}]` is begun already, by `{key}` in line {}: put that setting below this head, without `{head}.`",
                first + 1
            ));
        };
        return Some(format!(
            "`[{head}]` is there twice, first in line {}: put the lines below that one, and leave this head out",
            first + 1
        ));
    }
    let name = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
    let key = name(line)?;
    let in_section = before().rev().take_while(|(_, it)| !it.starts_with('['));
    let (first, _) = in_section.filter(|(_, it)| name(it).as_ref() == Some(&key)).last()?;
    Some(format!("`{key}` is set twice, first in line {}: leave one of them out", first + 1))
}

fn parent(path: &Path) -> PathBuf {
    std::path::absolute(path).ok().and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|e| format!("cannot be read: {e}"))?;
    if !size.is_file() || size.len() > SETTINGS_FILE_BYTES_MAX {
        return Err(format!("is not a file of at most {} KiB", SETTINGS_FILE_BYTES_MAX >> 10));
    }
    std::fs::read_to_string(path).map_err(|e| format!("cannot be read: {e}"))
}

/// Reads a file of the system or the user: `None` where it does not exist; an error where others could have written it.
fn own_file(path: &Path) -> Result<Option<String>, Broken> {
    match std::fs::metadata(path) {
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(e) => Err(broken(path, format!("cannot be read: {e}"))),
        Ok(_) => {
            let close = system::CLOSE_FOR_WRITING;
            system::trusted(path).map_err(|why| broken(path, format!("{why}; run {close}")))?;
            read(path).map(Some).map_err(|message| broken(path, message))
        }
    }
}

fn broken(path: &Path, message: String) -> Broken {
    let file = path.display().to_string();
    Broken { note: Note { file, line: None, key: String::new(), message, severity: Severity::Error } }
}

/// One file while it is being read.
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) context: Context,
    /// Whether it is a repository's file.
    pub(super) foreign: bool,
}

/// The configuration so far.
pub(super) struct Loading {
    pub(super) done: Loaded,
    home: Option<PathBuf>,
}

impl Loading {
    pub(super) fn new(environment: &Environment) -> Self {
        let done = Loaded { config: Config::default(), notes: Vec::new(), origins: BTreeMap::new() };
        Self { done, home: environment.home.clone() }
    }

    /// Reads the files of workflows beside a file of settings, by name.
    fn workflow_folder(&mut self, folder: &Path) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let names = entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| pin::is_workflow_name(name)).collect();
        names.sort();
        if names.len() > WORKFLOW_FILES_MAX {
            let message =
                format!("has more than {WORKFLOW_FILES_MAX} files of workflows; the others are not read");
            self.note_whole(&folder.display().to_string(), message, Severity::Error);
        }
        for name in names.iter().take(WORKFLOW_FILES_MAX) {
            let path = folder.join(name);
            match own_file(&path) {
                Ok(Some(text)) => self.workflow_file(&path.display().to_string(), &text, false),
                Ok(None) => {}
                Err(broken) => self.done.notes.push(broken.note),
            }
        }
    }

    fn repository_file(&mut self, root: &Path, file: &RepoFile) -> Result<(), Broken> {
        let is_workflows = pin::is_workflow_file(&file.path);
        if !is_workflows
            && ![pin::PROVOST, pin::DEVIT, pin::GIT_PAW, agent_protocol::FILE].contains(&file.path.as_str())
        {
            return Ok(()); // other doors' files, which they read themselves
        }
        let hint = format!("run `provost config allow {}` to see and allow it", file.path);
        let complaint = match &file.status {
            Status::Allowed if is_workflows => {
                self.workflow_file(&file.path, &file.text, true);
                return Ok(());
            }
            Status::Allowed if file.path == agent_protocol::FILE => match agent_protocol::as_toml(&file.text)
            {
                Ok(text) => {
                    let dir = parent(&root.join(&file.path));
                    return self.layer(&file.path, &text, dir, Dialect::Provost, true);
                }
                Err(why) => format!("is not used: it {why}"),
            },
            Status::Allowed => {
                let path = root.join(&file.path);
                let git_paws = file.path == pin::GIT_PAW;
                let dialect = if git_paws { Dialect::GitPaw } else { Dialect::of(&path) };
                return self.layer(&file.path, &file.text, parent(&path), dialect, true);
            }
            Status::New => format!("is not used, since it has not been allowed; {hint}"),
            Status::Changed => format!("HAS CHANGED since it was allowed and is not used; {hint}"),
            Status::Missing => "was allowed and is gone; its settings are no longer in force".into(),
            Status::Unreadable(why) => format!("is not used: {why}"),
        };
        let severity = if file.status == Status::New { Severity::Info } else { Severity::Warning };
        self.note_whole(&file.path, complaint, severity);
        Ok(())
    }

    fn layer(
        &mut self,
        name: &str,
        text: &str,
        dir: PathBuf,
        dialect: Dialect,
        foreign: bool,
    ) -> Result<(), Broken> {
        let document = DeTable::parse(text).map_err(|e| {
            let line = e.span().map(|span| line_of(text, span.start));
            let again = e.span().and_then(|span| said_twice(text, span.start));
            let message = again.unwrap_or_else(|| format!("is not valid TOML: {}", e.message()));
            Broken {
                note: Note {
                    file: name.into(),
                    line,
                    key: String::new(),
                    message,
                    severity: Severity::Error,
                },
            }
        })?;
        let file = File { name, text, context: Context { dir, home: self.home.clone() }, foreign };
        match dialect {
            Dialect::Provost => self.table(&file, "", document.get_ref()),
            Dialect::Devit => devit::read(self, &file, document.get_ref()),
            Dialect::GitPaw => git_paw::read(self, &file, document.get_ref()),
        }
    }

    /// Assigns all keys of one table of Provost's own dialect.
    fn table(&mut self, file: &File<'_>, path: &str, table: &DeTable<'_>) -> Result<(), Broken> {
        for (key, value) in table {
            let full = join(path, key.get_ref());
            let section =
                sections().iter().any(|(known, ..)| *known == full || known.starts_with(&format!("{full}.")));
            match value.get_ref() {
                DeValue::Table(inner) if full == "workers" => self.workers(file, inner),
                DeValue::Array(list) if full == "agent" => self.agents(file, list),
                DeValue::Table(inner) if full == "notify" => self.notify(file, inner),
                DeValue::Table(inner) if full == "role" => self.roles(file, inner),
                DeValue::Table(inner) if full == "pool" => self.pools(file, inner)?,
                DeValue::Array(list) if full == "workflow" => self.workflows(file, list),
                DeValue::Array(list) if full == "price" => self.prices(file, list),
                DeValue::Array(list) if full == "budget" => self.budgets(file, list)?,
                _ if ["agent", "workflow", "price", "budget"].contains(&full.as_str()) => {
                    let message = format!("must be a list of tables: write `[[{full}]]`");
                    return Err(self.broken_at(file, key.span().start, &full, message));
                }
                DeValue::Table(inner) if section => self.table(file, &full, inner)?,
                _ if section || ["workers", "role", "notify", "pool"].contains(&full.as_str()) => {
                    return Err(self.broken_at(
                        file,
                        key.span().start,
                        &full,
                        format!("must be a table: write `[{full}]`"),
                    ));
                }
                value => self.assign(file, path, key.get_ref(), key.span().start, value)?,
            }
        }
        Ok(())
    }

    /// Assigns one setting. The DevIt dialect also calls this, once it has found Provost's name for a key.
    pub(super) fn assign(
        &mut self,
        file: &File<'_>,
        path: &str,
        key: &str,
        at: usize,
        value: &DeValue<'_>,
    ) -> Result<(), Broken> {
        let full = join(path, key);
        let row = sections()
            .into_iter()
            .filter(|(known, ..)| *known == path)
            .flat_map(|(.., rows)| rows)
            .find(|r| r.key == key);
        if file.foreign && theirs(file.name) && key == "port" && self.done.origins.contains_key(&full) {
            let message = format!("is not used: {} names a port", self.done.origins[&full]);
            self.note(file, at, &full, message, Severity::Info);
            return Ok(());
        }
        let marked = |mark| row.as_ref().is_some_and(|row| row.marks.contains(&mark));
        if file.foreign && marked(Mark::Owner) {
            let message =
                "is ignored: a repository may not set it; put it into your own configuration".into();
            self.note(file, at, &full, message, Severity::Warning);
            return Ok(());
        }
        match self.done.config.set(path, key, value, &file.context) {
            None => self.unknown(file, path, key, at, value),
            Some(Ok(())) => {
                self.done.origins.insert(full, file.name.into());
                Ok(())
            }
            Some(Err(why)) if marked(Mark::Strict) => Err(self.broken_at(file, at, &full, why)),
            Some(Err(why)) => {
                self.note(file, at, &full, format!("{why}; the line is ignored"), Severity::Error);
                Ok(())
            }
        }
    }

    /// Handles a key that no section has, and suggests the likely one. A misspelt or misplaced enforcement would
    /// silently be none, so that is an error.
    fn unknown(
        &mut self,
        file: &File<'_>,
        path: &str,
        key: &str,
        at: usize,
        value: &DeValue<'_>,
    ) -> Result<(), Broken> {
        let all = sections();
        let full = join(path, key);
        let strict = |row: &Row| row.marks.contains(&Mark::Strict);
        let here = all.iter().filter(|(known, ..)| *known == path).flat_map(|(.., rows)| rows);
        let meant = nearest(key, here.clone().map(|row| row.key));
        let elsewhere =
            all.iter().find_map(|(known, _, rows)| Some((known, rows.iter().find(|row| row.key == key)?)));
        let section = nearest(
            &full,
            all.iter()
                .map(|(known, ..)| *known)
                .chain(["workers", "agent", "role", "workflow", "notify", "pool", "price", "budget"]),
        );
        let (message, enforces) = match (meant, elsewhere, section) {
            (Some(meant), ..) => {
                let enforces = here.clone().any(|row| row.key == meant && strict(row));
                (format!("is not a setting; did you mean `{meant}`?"), enforces)
            }
            (None, Some((home, row)), _) => {
                (format!("is not a setting here; it belongs into `[{home}]`"), strict(row))
            }
            (None, None, section) => {
                let mut rows = all.iter().flat_map(|(.., rows)| rows);
                let inner = value.as_table();
                let enforces =
                    inner.is_some_and(|inner| rows.any(|row| strict(row) && inner.contains_key(row.key)));
                let hint = section.map(|section| format!("; did you mean `[{section}]`?"));
                (format!("is not a setting of Provost{}", hint.unwrap_or("; it is ignored".into())), enforces)
            }
        };
        if enforces {
            return Err(self.broken_at(file, at, &full, message));
        }
        self.note(file, at, &full, message, Severity::Warning);
        Ok(())
    }

    /// Applies the environment where the files are silent: the process that starts a daemon on demand chooses its
    /// environment, and may be an agent that the files are meant to bind.
    fn environment(&mut self, environment: &Environment) -> Result<(), Broken> {
        for (name, path, key, value) in environment.settings() {
            let full = join(path, key);
            let set_by = self.done.origins.get(&full).cloned();
            let file = File { name, text: "", context: Context::default(), foreign: false };
            match set_by.filter(|it| key != "port" || !theirs(it)) {
                None => self.assign(&file, path, key, 0, &value)?,
                Some(set_by) => {
                    self.note_whole(name, format!("is ignored: {set_by} sets `{full}`"), Severity::Info);
                }
            }
        }
        Ok(())
    }

    pub(super) fn note(
        &mut self,
        file: &File<'_>,
        at: usize,
        key: &str,
        message: String,
        severity: Severity,
    ) {
        let line = (!file.text.is_empty()).then(|| line_of(file.text, at));
        self.done.notes.push(Note { file: file.name.into(), line, key: key.into(), message, severity });
    }

    fn note_whole(&mut self, name: &str, message: String, severity: Severity) {
        self.note_of(name, "", message, severity);
    }

    /// Adds a note about a key whose line is not known any more.
    pub(super) fn note_of(&mut self, name: &str, key: &str, message: String, severity: Severity) {
        let (file, key) = (name.into(), key.into());
        self.done.notes.push(Note { file, line: None, key, message, severity });
    }

    pub(super) fn broken_of(&self, name: &str, key: &str, message: String) -> Broken {
        let (file, key) = (name.into(), key.into());
        Broken { note: Note { file, line: None, key, message, severity: Severity::Error } }
    }

    pub(super) fn broken_at(&self, file: &File<'_>, at: usize, key: &str, message: String) -> Broken {
        let line = (!file.text.is_empty()).then(|| line_of(file.text, at));
        Broken {
            note: Note { file: file.name.into(), line, key: key.into(), message, severity: Severity::Error },
        }
    }
}

/// Checks whether a repository's file belongs to another program: a port in it counts only where the user's own files
/// name none.
fn theirs(name: &str) -> bool {
    [pin::GIT_PAW, agent_protocol::FILE].contains(&name)
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}
