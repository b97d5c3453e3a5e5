//! Runs git in the user's repository for the daemon, so that git starts no other program. Blocking.
//!
//! The repository's configuration is the user's, but a worker's file `.gitattributes` chooses among its filters. So every
//! configured filter is switched off, as are hooks, the file system monitor and every transport. From the daemon's environment git
//! gets only the places of the user's configuration and a `PATH` without folders of the workspace; a `git` that lies there is not used.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use provost_base::limits::{GIT_FILTERS_MAX, TREE_ANSWER_BYTES_MAX, TREE_GIT_MS_MAX};
use provost_base::visible_name;
use provost_system as system;

/// Settings under which git starts no program, asks nothing, and converts nothing unasked.
const QUIET: [(&str, &str); 15] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.sparseCheckout", "false"),
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.safecrlf", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("user.useConfigOnly", "true"),
    ("i18n.commitEncoding", "UTF-8"),
    ("worktree.useRelativePaths", "false"),
    ("worktree.guessRemote", "false"),
];

/// The number of characters of git's message that an error repeats.
const SAID_CHARS: usize = 400;

/// Git for one repository, or for one of its work trees.
#[derive(Clone, Debug)]
pub struct QuietGit {
    program: PathBuf,
    path: Option<OsString>,
    folder: PathBuf,
    git_dir: Option<PathBuf>,
    off: Vec<(String, String)>,
}

/// Git's answer.
#[derive(Debug)]
pub struct Answer {
    /// Whether git ended with the exit code zero.
    pub success: bool,
    /// The exit code; `None` if a signal ended git.
    pub status: Option<i32>,
    /// Git's standard output.
    pub out: Vec<u8>,
    /// Git's standard error, shortened, safe to show.
    pub err: String,
}

/// The standard input of a git command.
pub enum Input<'a> {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(&'a [u8]),
    /// A file that git locks and never reads: the lock lasts as long as git runs, also without the daemon.
    Lock(&'a File),
}

impl QuietGit {
    /// Finds git for the repository of a workspace. A program in the workspace, or in `also`, another folder that
    /// workers write, is not used.
    ///
    /// # Errors
    /// A sentence if git or the repository is missing, or git cannot be asked.
    pub fn of(root: &Path, also: &Path) -> Result<Self, String> {
        let inside = [root, also];
        let program = system::find_program_outside("git", &inside);
        let program = program.ok_or("there is no git on the daemon's PATH, outside of the repository")?;
        let path = std::env::join_paths(system::path_outside(&inside)).ok();
        let mut git = Self { program, path, folder: root.to_path_buf(), git_dir: None, off: Vec::new() };
        let found = git.line(&["rev-parse", "--is-bare-repository", "--absolute-git-dir"]);
        let found = found?.ok_or("the workspace is no git repository")?;
        let git_dir =
            found.strip_prefix("false\n").ok_or("the repository is bare, and has no branch checked out")?;
        git.git_dir = Some(PathBuf::from(git_dir));
        git.off = git.filters()?;
        Ok(git)
    }

    /// Returns git for one of its work trees, by the tree's folder and git's entry for it.
    #[must_use]
    pub fn in_tree(&self, tree: &Path, entry: &Path) -> Self {
        Self { folder: tree.to_path_buf(), git_dir: Some(entry.to_path_buf()), ..self.clone() }
    }

    /// Runs a command.
    ///
    /// # Errors
    /// A sentence if git does not start, takes too long, or prints more than the bound.
    pub fn run(&self, args: &[&str], input: Input<'_>) -> Result<Answer, String> {
        self.run_for(args, input, &[], TREE_GIT_MS_MAX)
    }

    /// Runs a command with more variables and another limit of time, in milliseconds.
    ///
    /// # Errors
    /// As for [`QuietGit::run`].
    pub fn run_for(
        &self,
        args: &[&str],
        input: Input<'_>,
        variables: &[(&str, &str)],
        most_ms: u64,
    ) -> Result<Answer, String> {
        let mut command = self.command();
        command.args(args).envs(variables.iter().copied());
        let stdin = match &input {
            Input::Nothing => Stdio::null(),
            Input::Bytes(_) => Stdio::piped(),
            Input::Lock(file) => file.try_clone().map(Stdio::from).map_err(|err| err.to_string())?,
        };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = args.iter().find(|it| !it.starts_with('-')).copied().unwrap_or_default();
        let trouble = |why: String| format!("`git {what}` failed: {why}");
        let child = command.spawn().map_err(|err| trouble(err.to_string()))?;
        let bytes = if let Input::Bytes(bytes) = input { bytes } else { &[] };
        answer_of(child, bytes, Duration::from_millis(most_ms)).map_err(trouble)
    }

    /// Returns the output of a command that must succeed.
    ///
    /// # Errors
    /// As for [`QuietGit::run`], and git's message if git fails.
    pub fn must(&self, args: &[&str], input: Input<'_>) -> Result<Vec<u8>, String> {
        succeeded(args, self.run(args, input)?)
    }

    /// Returns the one line that a command prints; `None` if git fails.
    ///
    /// # Errors
    /// As for [`QuietGit::run`].
    pub fn line(&self, args: &[&str]) -> Result<Option<String>, String> {
        let answer = self.run(args, Input::Nothing)?;
        let line = String::from_utf8(answer.out).map_err(|_| "git's answer is not text".to_owned())?;
        Ok(answer.success.then(|| line.trim_end_matches('\n').to_owned()))
    }

    fn command(&self) -> Command {
        let mut git = Command::new(&self.program);
        git.arg("--no-pager").current_dir(&self.folder).env_clear();
        for name in ["HOME", "XDG_CONFIG_HOME"] {
            git.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        git.envs(self.path.as_ref().map(|path| ("PATH", path)));
        git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        git.env("GIT_LITERAL_PATHSPECS", "1");
        match &self.git_dir {
            Some(git_dir) => git.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.folder),
            // Git must find only the repository of this folder, and none above it.
            None => git.envs(self.folder.parent().map(|above| ("GIT_CEILING_DIRECTORIES", above))),
        };
        let fixed = QUIET.iter().map(|(key, value)| (*key, *value));
        let all = fixed.chain(self.off.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        let mut count = 0;
        for (number, (key, value)) in all.enumerate() {
            git.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
            count = number + 1;
        }
        git.env("GIT_CONFIG_COUNT", count.to_string());
        git
    }

    /// Returns the settings that switch off every filter, since git would start a program for each.
    fn filters(&self) -> Result<Vec<(String, String)>, String> {
        const TOO_MUCH: &str = "git's configuration is too large to be sure of what it would start";
        let answer = self.must(&["config", "--list", "--name-only", "-z"], Input::Nothing)?;
        let mut off = Vec::new();
        for key in answer.split(|byte| *byte == 0).filter(|key| key.starts_with(b"filter.")) {
            let key = std::str::from_utf8(key).map_err(|_| "git's configuration is not text")?;
            let Some((driver, _)) = key.rsplit_once('.') else { continue };
            for (end, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                off.push((format!("{driver}.{end}"), value.to_owned()));
            }
        }
        off.sort();
        off.dedup();
        if off.len() > 4 * GIT_FILTERS_MAX { Err(TOO_MUCH.into()) } else { Ok(off) }
    }
}

/// Returns the output of a command that had to succeed.
///
/// # Errors
/// Git's message.
pub fn succeeded(args: &[&str], answer: Answer) -> Result<Vec<u8>, String> {
    match answer.success {
        true => Ok(answer.out),
        false => {
            let what = args.iter().find(|it| !it.starts_with('-')).copied().unwrap_or_default();
            Err(format!("`git {what}` failed: {}", answer.err))
        }
    }
}

fn answer_of(mut child: Child, input: &[u8], most: Duration) -> Result<Answer, String> {
    let (tell, heard) = mpsc::channel();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // The threads end when git does, at the latest when it is killed.
    let answered = thread::scope(|scope| {
        scope.spawn(move || {
            // If git has ended without reading all of it, git's own message says so.
            let _unread = stdin.map(|mut stdin| stdin.write_all(input));
        });
        let errors = scope.spawn(move || stderr.map(|it| bounded(it, 64 << 10)).unwrap_or_default());
        scope.spawn(move || {
            let _unheard = tell.send(stdout.map(|it| bounded(it, TREE_ANSWER_BYTES_MAX)).unwrap_or_default());
        });
        let out = heard.recv_timeout(most);
        if out.as_ref().map_or(true, |out| out.len() as u64 >= TREE_ANSWER_BYTES_MAX) {
            // This fails only if git has ended by itself.
            let _ended = child.kill();
        }
        let status = child.wait();
        (out, errors.join().unwrap_or_default(), status)
    });
    let (out, err, status) = answered;
    let out = out.map_err(|_| format!("it took longer than {} s", most.as_secs()))?;
    if out.len() as u64 >= TREE_ANSWER_BYTES_MAX {
        return Err(format!("its answer is larger than {TREE_ANSWER_BYTES_MAX} bytes"));
    }
    let status = status.map_err(|err| err.to_string())?;
    let err = String::from_utf8_lossy(&err);
    let err = visible_name(err.trim(), SAID_CHARS);
    let err = if err.is_empty() { status.to_string() } else { err };
    Ok(Answer { success: status.success(), status: status.code(), out, err })
}

fn bounded(from: impl Read, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The bytes that were read before an error count.
    let _read = from.take(most).read_to_end(&mut bytes);
    bytes
}
