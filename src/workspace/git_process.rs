//! Git as a process of the daemon: bounded, without a hook, without a program that a configuration or a
//! branch names, and without the daemon's environment. Blocking.

use std::io::{self, Read, Seek as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use provost_base::limits::{GIT_ERROR_BYTES_MAX, MERGE_ANSWER_BYTES_MAX, MERGE_GIT_SECONDS_MAX};
use provost_system as system;

/// The reason why git has not answered. Safe to show.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git is not found in PATH outside of the repository; install git 2.38 or newer")]
    NoGit,
    /// Git is too old.
    #[error("git {0} is too old to merge without a work tree; install git 2.38 or newer")]
    TooOld(String),
    /// There is no repository.
    #[error("{0} is in no git repository")]
    NoRepository(String),
    /// Git failed, with this message.
    #[error("git {what} failed: {why}")]
    Failed {
        /// The git command.
        what: String,
        /// Git's message.
        why: String,
    },
    /// The answer is longer than the bound.
    #[error("git {0} says more than is read")]
    TooMuch(String),
    /// Git has not ended in time.
    #[error("git {0} has not ended in {MERGE_GIT_SECONDS_MAX} s")]
    TooLong(String),
    /// Files that the commits name are not among the objects.
    #[error(
        "{0} files of the commits are not in this repository, which has only a part of them (a partial clone), and the daemon fetches \
         nothing; fetch them and try again: git fetch --refetch --no-filter"
    )]
    NotThere(usize),
    /// The system refused a step.
    #[error("git could not be asked: {0}")]
    Io(#[from] io::Error),
}

/// An answer of git.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) said: Vec<u8>,
    pub(super) words: String,
}

impl Answer {
    /// Returns the output of a git that has succeeded.
    pub(super) fn good(self, what: &str) -> Result<Vec<u8>, GitError> {
        match self.status.success() {
            true => Ok(self.said),
            false => Err(self.failed(what)),
        }
    }

    pub(super) fn failed(&self, what: &str) -> GitError {
        let words = self.words.lines().filter(|it| !it.starts_with("hint: ")).take(8);
        let why = words.collect::<Vec<_>>().join(" ");
        let why = if why.is_empty() { self.status.to_string() } else { why };
        GitError::Failed { what: what.into(), why }
    }
}

/// Returns git in a folder of a repository whose top is `outer`. From the daemon's environment it gets only the variables that
/// lead to the user's, the system's and the temporary folders, and `PATH` without the folders in `outer`.
pub(super) fn git(outer: &Path, folder: &Path) -> Result<Command, GitError> {
    let program = system::find_program_outside("git", &[outer]).ok_or(GitError::NoGit)?;
    let mut git = Command::new(program);
    git.arg("--no-pager").args(["-c", "core.fsmonitor=false"]);
    // This path is no folder, so that there is no hook.
    git.arg("-c").arg(format!("core.hooksPath={}", if cfg!(windows) { "NUL" } else { "/dev/null" }));
    git.current_dir(folder).env_clear();
    for name in ["HOME", "XDG_CONFIG_HOME", "SYSTEMROOT", "USERPROFILE", "TEMP", "TMP"] {
        git.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    git.envs(std::env::join_paths(system::path_outside(&[outer])).map(|path| ("PATH", path)));
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(git)
}

/// Gives a program a text on its standard input, without a second thread: the text is in a file without a name.
pub(super) fn reading(program: &mut Command, text: &[u8], scratch: &Path) -> io::Result<()> {
    let mut file = system::nameless_file(scratch)?;
    file.write_all(text)?;
    file.rewind()?;
    program.stdin(Stdio::from(file));
    Ok(())
}

/// Runs git to its end, within bounds of time and of output. `scratch` is a folder of ours.
pub(super) fn run(mut program: Command, what: &str, scratch: &Path) -> Result<Answer, GitError> {
    let mut words = system::nameless_file(scratch)?;
    program.stderr(Stdio::from(words.try_clone()?));
    let mut child = match program.spawn() {
        Ok(child) => child,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Err(GitError::NoGit),
        Err(err) => return Err(err.into()),
    };
    let (tell, heard) = mpsc::channel();
    let stdout = child.stdout.take();
    let read = move || {
        let mut said = Vec::new();
        let read = stdout.map_or(Ok(0), |it| it.take(MERGE_ANSWER_BYTES_MAX + 1).read_to_end(&mut said));
        // The receiver may have given up.
        let _unheard = tell.send(read.map(|_| said));
    };
    // The thread ends when the program does, at the latest when it is killed.
    if let Err(error) = std::thread::Builder::new().name("git".into()).spawn(read) {
        end(&mut child)?;
        return Err(error.into());
    }
    let Ok(said) = heard.recv_timeout(Duration::from_secs(MERGE_GIT_SECONDS_MAX)) else {
        end(&mut child)?;
        return Err(GitError::TooLong(what.into()));
    };
    let said = said?;
    if said.len() as u64 > MERGE_ANSWER_BYTES_MAX {
        end(&mut child)?;
        return Err(GitError::TooMuch(what.into()));
    }
    let status = child.wait()?;
    let mut text = Vec::new();
    words.rewind()?;
    words.take(GIT_ERROR_BYTES_MAX).read_to_end(&mut text)?;
    Ok(Answer { status, said, words: String::from_utf8_lossy(&text).into_owned() })
}

fn end(child: &mut Child) -> io::Result<()> {
    // This fails only if the program has ended by itself.
    let _ended = child.kill();
    child.wait().map(drop)
}

/// Checks whether git can merge trees: 2.38 is the first version that can.
pub(super) fn can_merge(outer: &Path, scratch: &Path) -> Result<(), GitError> {
    let mut asked = git(outer, scratch)?;
    asked.arg("version");
    let said = run(asked, "version", scratch)?.good("version")?;
    let text = String::from_utf8_lossy(&said).into_owned();
    let number = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let mut parts = number.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found >= (2, 38) { Ok(()) } else { Err(GitError::TooOld(number)) }
}
