//! Git's answers: the files that change, and their contents.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::CliError;
use provost_base::RepoPath;
use provost_base::limits::SOURCE_BYTES_MAX;

/// A file that changes. A path that Provost cannot name, and that so has no lock or contract, is `None`.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Its path after the change, or before a deletion.
    pub(super) path: Option<String>,
    /// Its old path, if it was renamed.
    pub(super) from: Option<String>,
    /// Its old content, by git's name for it; `None` if it was no file.
    pub(super) old: Option<String>,
    /// Its new content; `None` if it is no file any more.
    pub(super) new: Option<String>,
}

pub(super) fn broken(what: impl std::fmt::Display) -> CliError {
    CliError::of("git does not list the changes to check").because(what)
}

/// Makes a git process that ends with the task that waits for it.
fn git(args: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(args).kill_on_drop(true).env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    git
}

/// Returns the output of git.
pub(super) async fn ask(args: &[&str]) -> Result<Vec<u8>, CliError> {
    let said = git(args).stdin(Stdio::null()).output().await.map_err(broken)?;
    match said.status.success() {
        true => Ok(said.stdout),
        false => Err(broken(String::from_utf8_lossy(&said.stderr).trim())),
    }
}

/// Returns the changes that a commit of the index would make, or those between two trees.
pub(super) async fn changes(between: &[&str]) -> Result<Vec<Change>, CliError> {
    const HOW: [&str; 10] = [
        "diff",
        "--raw",
        "-z",
        "-M",
        "--no-abbrev",
        "--no-relative",
        "--no-ext-diff",
        "--no-color",
        "--ignore-submodules=all",
        "--diff-filter=ACMRDT",
    ];
    let said = ask(&[&HOW[..], between, &["--"]].concat()).await?;
    parse(&said).ok_or_else(|| broken("its list of changes has an unknown form"))
}

/// Parses `:mode mode old new status`, NUL, path, NUL, and for renames another path.
fn parse(raw: &[u8]) -> Option<Vec<Change>> {
    let mut words = raw.split(|byte| *byte == 0);
    let mut all = Vec::new();
    loop {
        let head = words.next()?;
        if head.is_empty() {
            return words.next().is_none().then_some(all);
        }
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let [old_mode, new_mode, old, new, status] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let first = words.next()?;
        let second = if status.starts_with(['R', 'C']) { Some(words.next()?) } else { None };
        let blob = |mode: &str, id: &str| mode.starts_with("100").then(|| id.to_owned());
        let is_rename = status.starts_with('R');
        all.push(Change {
            path: name(second.unwrap_or(first)),
            from: if is_rename { name(first) } else { None },
            old: if status.starts_with('C') { None } else { blob(old_mode, old) },
            new: blob(new_mode, new),
        });
    }
}

/// Returns a path as Provost names it; `None` for one that it cannot name, such as one with a line break.
fn name(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    RepoPath::as_is(text).map(String::from)
}

/// Reads contents by git's names for them, through one process.
pub(super) struct Blobs {
    _git: Child,
    asking: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Blobs {
    pub(super) fn open() -> Result<Self, CliError> {
        let mut git = git(&["cat-file", "--batch"]);
        let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(broken)?;
        let asking = git.stdin.take().ok_or_else(|| broken("it has no standard input"))?;
        let answers = git.stdout.take().ok_or_else(|| broken("it has no standard output"))?;
        Ok(Self { _git: git, asking, answers: BufReader::new(answers) })
    }

    /// Returns a content; of one that is larger than the bound for files, only enough to show that.
    pub(super) async fn get(&mut self, id: &str) -> Result<Vec<u8>, CliError> {
        self.asking.write_all(format!("{id}\n").as_bytes()).await.map_err(broken)?;
        self.asking.flush().await.map_err(broken)?;
        let mut head = String::new();
        self.answers.read_line(&mut head).await.map_err(broken)?;
        let mut words = head.split_whitespace();
        let size = match (words.next(), words.next(), words.next().map(str::parse::<u64>)) {
            (Some(_), Some("blob"), Some(Ok(size))) => size,
            _ => return Err(broken(format!("of {id} it says: {}", head.trim()))),
        };
        let most = SOURCE_BYTES_MAX as u64 + 1;
        let mut bytes = Vec::new();
        (&mut self.answers).take(size.min(most)).read_to_end(&mut bytes).await.map_err(broken)?;
        // The rest of the content, and the line break after it, are skipped.
        let mut rest = (&mut self.answers).take(size.saturating_sub(most) + 1);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map_err(broken)?;
        match bytes.len() as u64 == size.min(most) {
            true => Ok(bytes),
            false => Err(broken("a content broke off")),
        }
    }
}
