//! Asks git which programs it would run from within a workspace, and where it would look for other repositories.
//! Blocking.
//!
//! `git config --list` only reads configuration: it starts no hook, no file system monitor, no driver and no
//! pager. Its answer includes the user's and the system's configuration, and included files.
//! `git ls-files` reads the index, in each of its forms and at any place; the call switches off a configured monitor,
//! and git fetches and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::heavy::typed;
use super::outside::Seeker;
use super::run_outside::own_repository;
use provost_base::limits::{
    GIT_ANSWER_BYTES_MAX, GIT_ANSWER_MS_MAX, GIT_ENTRY_BYTES_MAX, GIT_INCLUDES_MAX, GIT_LINKS_MAX,
    GIT_LIST_BYTES_MAX,
};
use provost_base::plain_path;
use provost_jail::Missing;
use provost_system as system;

/// Ends of keys whose values are programs.
const PROGRAMS: [&str; 28] = [
    ".alternaterefscommand",
    ".clean",
    ".cmd",
    ".command",
    ".defaultkeycommand",
    ".difffilter",
    ".driver",
    ".editor",
    ".external",
    ".fsmonitor",
    ".gitproxy",
    ".helper",
    ".packobjectshook",
    ".pager",
    ".postbuffercmd",
    ".process",
    ".program",
    ".receivepack",
    ".recentobjectshook",
    ".smudge",
    ".sshcommand",
    ".textconv",
    ".uploadpack",
    ".askpass",
    ".browser",
    ".path",
    ".tunnel",
    ".update",
];

/// Keys whose values are folders from which repositories and hooks are made.
const FOLDERS: [&str; 1] = ["init.templatedir"];

/// Keys whose values are files that lead to programs, or that decide what git shows or trusts.
const FILES: [&str; 5] = [
    "core.attributesfile",
    "core.excludesfile",
    "gpg.ssh.allowedsignersfile",
    "gpg.ssh.revocationfile",
    "sendemail.aliasesfile",
];

/// Beginnings of keys whose values are programs.
const PROGRAM_SECTIONS: [&str; 2] = ["pager.", "sendemail."];

/// Files and folders that git's configuration names, as absolute paths under the names that it uses; each with
/// the placeholder that it gets if it is missing.
pub(super) type Named = BTreeMap<PathBuf, Missing>;

/// The effect of a configuration that git itself cannot read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreadable {
    /// The worker is refused, and the user has to mend the configuration first.
    IsRefused,
    /// The configuration is ignored: git runs nothing there, and no worker can mend it.
    RunsNothing,
}

/// Asks git for the programs and files that its configuration names. Empty if there is no git.
///
/// # Errors
/// A sentence when git cannot be asked, or not in time: then the programs that it would run are unknown.
pub(super) fn named_by_git(
    root: &Path,
    (unreadable, is_bare): (Unreadable, bool),
    seeker: &mut Seeker<'_>,
) -> Result<Named, String> {
    // The workspace may be a folder of the repository; names count from the repository's top.
    let is_top = |folder: &&Path| std::fs::symlink_metadata(folder.join(".git")).is_ok();
    let (at, list): (&Path, &[&str]) = match root.ancestors().find(is_top) {
        _ if is_bare => (root, &["--git-dir", ".", "config", "--list", "--show-origin", "-z"]),
        Some(top) => (top, &["config", "--list", "--show-origin", "-z"]),
        None => return Ok(Named::new()),
    };
    let root = at;
    let answer = config_of(git(seeker.root, root, list));
    let answer = match (answer, unreadable) {
        (Ok(Ok(answer)), _) => Ok(answer),
        (Ok(Err(_)), Unreadable::RunsNothing) => return Ok(Named::new()),
        (Ok(Err(status)), Unreadable::IsRefused) => Err(format!("`git config --list` ended with {status}")),
        (Err(why), _) => Err(why),
    };
    let answer = answer.map_err(|why| {
        let file = unreadable_file(seeker.root, root).map(|it| format!("; {it}")).unwrap_or_default();
        format!(
            "git's configuration cannot be read in {}, so what it would run is not known: {why}{file}; mend it and delegate \
             again",
            root.display()
        )
    })?;
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let tree = work_tree_of(&answer, root, &home).unwrap_or_else(|| root.to_path_buf());
    let mut named = read(&answer, (root, &tree), seeker);
    // The answer lacks files whose condition of inclusion does not hold at present, and the files that those include.
    let is_new =
        |it: &(PathBuf, Missing), seen: &BTreeSet<PathBuf>| it.1 == Missing::File && !seen.contains(&it.0);
    let mut seen = origins(&answer, root, &home);
    for _ in 0..GIT_INCLUDES_MAX {
        let next = named.iter().map(|(path, missing)| (path.clone(), *missing)).find(|it| is_new(it, &seen));
        let Some((file, _)) = next else { break };
        if let (true, Some(text)) = (file.is_file(), file.to_str()) {
            let list = ["config", "--file", text, "--list", "--show-origin", "-z"];
            if let Ok(Ok(answer)) = config_of(git(seeker.root, root, &list)) {
                for (path, missing) in read(&answer, (root, &tree), seeker) {
                    named.entry(path).or_insert(missing);
                }
            }
        }
        seen.insert(file);
    }
    Ok(named)
}

/// Returns the whole configuration of a work tree, as git prints it.
///
/// # Errors
/// A sentence when git cannot be asked.
pub(super) fn words_of_configuration(top: &Path) -> Result<Vec<u8>, String> {
    match config_of(git(top, top, &["config", "--list", "-z"])) {
        Ok(answer) => answer.map_err(|status| format!("`git config --list` ended with {status}")),
        Err(why) => Err(why),
    }
}

/// Returns the configuration files that an answer is from.
fn origins(answer: &[u8], root: &Path, home: &Path) -> BTreeSet<PathBuf> {
    let text = String::from_utf8_lossy(answer);
    let files = text.split('\0').step_by(2).filter_map(|it| it.strip_prefix("file:"));
    files.map(|file| absolute(root, home, file)).collect()
}

/// Returns the work tree, if a repository says that it is elsewhere: git starts programs there.
fn work_tree_of(answer: &[u8], root: &Path, home: &Path) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(answer);
    let mut parts = text.split('\0');
    let mut found = None;
    while let (Some(origin), Some(entry)) = (parts.next(), parts.next()) {
        if let Some(("core.worktree", value)) = entry.split_once('\n') {
            let file = absolute(root, home, origin.strip_prefix("file:")?);
            found = Some(absolute(file.parent()?, home, value));
        }
    }
    found
}

/// Returns git's answer about the configuration, or the exit status with which git failed.
fn config_of(asked: Command) -> Result<Result<Vec<u8>, ExitStatus>, String> {
    answer_of(asked, |stdout| {
        let mut answer = Vec::new();
        let read = stdout.take(GIT_ANSWER_BYTES_MAX + 1).read_to_end(&mut answer);
        read.map_err(|err| err.to_string())?;
        match answer.len() as u64 > GIT_ANSWER_BYTES_MAX {
            true => Err(format!("it is larger than {GIT_ANSWER_BYTES_MAX} bytes")),
            false => Ok(answer),
        }
    })
}

/// The path of a program that does not exist.
const NONE: &str = "/nonexistent/git";

/// Returns the command that asks git in a folder of a workspace. From the daemon's environment it gets only the places of the
/// user's configuration, and `PATH`.
fn git(outer: &Path, folder: &Path, args: &[&str]) -> Command {
    // A `git` in a folder of `PATH` that lies in the workspace may be a worker's, and is not used; neither is one in the main
    // checkout, if the workspace is a work tree of it.
    let repository = own_repository(outer);
    let inside: Vec<&Path> =
        [Some(outer), repository.as_deref().and_then(Path::parent)].into_iter().flatten().collect();
    let mut git = Command::new(system::find_program_outside("git", &inside).unwrap_or_else(|| NONE.into()));
    git.arg("--no-pager").args(args).current_dir(folder).env_clear();
    for name in ["HOME", "XDG_CONFIG_HOME"] {
        git.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    git.envs(std::env::join_paths(system::path_outside(&inside)).map(|path| ("PATH", path)));
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git.env("GIT_NO_LAZY_FETCH", "1");
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    git
}

/// The arguments that list an index.
const LIST: [&str; 5] = ["-c", "core.fsmonitor=false", "ls-files", "--stage", "-z"];

/// Returns the paths of other repositories in the index of a work tree, from its top. Empty if there is no git.
///
/// # Errors
/// A sentence when they are unknown.
pub(super) fn submodules(
    outer: &Path,
    work_tree: &Path,
    unreadable: Unreadable,
) -> Result<BTreeSet<String>, String> {
    let why = match (answer_of(git(outer, work_tree, &LIST), links), unreadable) {
        (Ok(Ok(links)), _) => return Ok(links),
        (Ok(Err(_)), Unreadable::RunsNothing) => return Ok(BTreeSet::new()),
        // A folder that git does not take for a repository has no index that a command of the user's would read.
        (Ok(Err(_)), Unreadable::IsRefused) if !is_work_tree(outer, work_tree) => return Ok(BTreeSet::new()),
        (Ok(Err(status)), Unreadable::IsRefused) => format!("`git ls-files` ended with {status}"),
        (Err(why), _) => why,
    };
    Err(format!(
        "git's index cannot be read in {}, so it is not known where other repositories belong: {why}; {}",
        work_tree.display(),
        mended(outer, work_tree)
            .unwrap_or_else(|| "mend it (`git status` says more) and delegate again".into())
    ))
}

/// Returns the sentence with the commands that repair an unreadable index.
fn mended(outer: &Path, work_tree: &Path) -> Option<String> {
    let file = answer_of(git(outer, work_tree, &["rev-parse", "--git-path", "index"]), |stdout| {
        let mut file = String::new();
        let read = stdout.take(GIT_ENTRY_BYTES_MAX).read_to_string(&mut file);
        read.map(|_| file).map_err(|err| err.to_string())
    });
    let file = typed(&work_tree.join(file.ok()?.ok()?.trim_end_matches('\n')))?;
    let aside = typed(Path::new(&format!("{}.spoilt", file.trim_matches('\''))))?;
    let tree = typed(work_tree)?;
    Some(format!(
        "if a worker has spoilt {file}, `mv {file} {aside} && git -C {tree} reset -q` makes a new one of the last commit \
         (what was staged is to be staged again); then delegate again"
    ))
}

/// Returns the sentence that names the configuration file that git cannot read.
fn unreadable_file(outer: &Path, top: &Path) -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let git_dir = top.join(".git");
    let link = std::fs::symlink_metadata(&git_dir).ok().filter(std::fs::Metadata::is_file);
    let text = link.and_then(|_| system::short_text(&git_dir, GIT_ENTRY_BYTES_MAX).ok()).unwrap_or_default();
    let git_dir = text.trim_end().strip_prefix("gitdir: ").map_or(git_dir, |it| absolute(top, &home, it));
    let own = ["config", "config.worktree"].map(|it| git_dir.join(it));
    let all = own.into_iter().chain([home.join(".gitconfig"), home.join(".config/git/config")]);
    let spoilt = all.filter(|it| it.is_file()).find(|it| {
        let list = it.to_str().map(|it| ["config", "--file", it, "--list"]);
        list.is_some_and(|list| matches!(config_of(git(outer, top, &list)), Ok(Err(_))))
    })?;
    let file = typed(&spoilt)?;
    Some(format!("{file} is not what git can read: `git config --file {file} --list` names the line"))
}

/// Checks whether git takes a folder for a work tree at all.
fn is_work_tree(outer: &Path, folder: &Path) -> bool {
    let asked = answer_of(git(outer, folder, &["rev-parse", "--is-inside-work-tree"]), |stdout| {
        std::io::copy(&mut stdout.take(GIT_ENTRY_BYTES_MAX), &mut std::io::sink())
            .map_err(|err| err.to_string())
    });
    // If that is unknown, it may be one.
    !matches!(asked, Ok(Err(_)))
}

/// Checks whether the index of a work tree has an entry in a folder, by its path from there. `None` if that is unknown.
pub(super) fn has_in_its_index(work_tree: &Path, folder: &str) -> Option<bool> {
    let folder = format!(":(literal){folder}");
    let listed = git(work_tree, work_tree, &[LIST.as_slice(), &["--", &folder]].concat());
    let any = answer_of(listed, |stdout| {
        let listed = std::io::copy(&mut stdout.take(GIT_LIST_BYTES_MAX), &mut std::io::sink());
        listed.map(|bytes| Some(bytes > 0)).map_err(|err| err.to_string())
    });
    any.ok()?.ok()?
}

/// Returns the paths of the entries of an index that lead to other repositories.
fn links(stdout: ChildStdout) -> Result<BTreeSet<String>, String> {
    let mut links = BTreeSet::new();
    let mut all = BufReader::new(stdout.take(GIT_LIST_BYTES_MAX));
    let mut entry = Vec::new();
    loop {
        entry.clear();
        let one = all.by_ref().take(GIT_ENTRY_BYTES_MAX).read_until(0, &mut entry);
        one.map_err(|err| err.to_string())?;
        // Each entry ends with a zero, the last one too.
        match entry.pop() {
            None if all.get_ref().limit() > 0 => return Ok(links),
            Some(0) if links.len() <= GIT_LINKS_MAX => {}
            _ => return Err("it has more entries, or longer ones, than are looked at".into()),
        }
        // Mode, object and stage, then the path.
        let path = entry.strip_prefix(b"160000 ").and_then(|it| it.splitn(2, |byte| *byte == b'\t').nth(1));
        if let Some(path) = path {
            let path = std::str::from_utf8(path).map_err(|_| "a submodule's path is not text")?;
            links.insert(path.to_owned());
        }
    }
}

/// Returns the output of a program, or the exit status of a program that failed. Empty if there is no such program,
/// since nothing runs then.
fn answer_of<T: Default + Send + 'static>(
    mut program: Command,
    read: impl FnOnce(ChildStdout) -> Result<T, String> + Send + 'static,
) -> Result<Result<T, ExitStatus>, String> {
    let mut child = match program.spawn() {
        Ok(child) => child,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Ok(T::default())),
        Err(err) => return Err(err.to_string()),
    };
    let (tell, heard) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Ends when the program does, at the latest when it is killed.
        let reads = std::thread::Builder::new().name("git".into()).spawn(move || {
            // A receiver that is gone has given up waiting.
            let _unheard = tell.send(read(stdout));
        });
        if let Err(err) = reads {
            // This fails only if the program has ended by itself.
            let _ended = child.kill();
            child.wait().map_err(|err| err.to_string())?;
            return Err(format!("it could not be listened to: {err}"));
        }
    }
    let answer = match heard.recv_timeout(Duration::from_millis(GIT_ANSWER_MS_MAX)) {
        Err(_) => Err(format!("it took longer than {GIT_ANSWER_MS_MAX} ms")),
        Ok(answer) => answer,
    };
    if answer.is_err() {
        // This fails only if the program has ended by itself.
        let _ended = child.kill();
    }
    let status = child.wait().map_err(|err| err.to_string())?;
    let answer = answer?;
    Ok(if status.success() { Ok(answer) } else { Err(status) })
}

/// Reads origins, keys and values off git's answer.
fn read(answer: &[u8], (root, tree): (&Path, &Path), seeker: &mut Seeker<'_>) -> Named {
    let mut named = Named::new();
    let text = String::from_utf8_lossy(answer);
    let mut parts = text.split('\0');
    while let (Some(origin), Some(entry)) = (parts.next(), parts.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let file = origin.strip_prefix("file:").map(|file| seeker.at(root, file));
        let folder = file.as_deref().and_then(Path::parent).unwrap_or(root);
        if let Some(file) = &file {
            named.insert(file.clone(), Missing::File);
        }
        let is_include = key == "include.path" || (key.starts_with("includeif.") && key.ends_with(".path"));
        if key == "core.hookspath" {
            let hooks = seeker.at(tree, value);
            seeker.hooks_in(&hooks, tree);
            named.insert(hooks, Missing::Directory);
        } else if is_include {
            // Included files also count if their condition does not hold at present: a worker may make it hold.
            named.insert(seeker.at(folder, value), Missing::File);
        } else if FOLDERS.contains(&key) {
            named.insert(seeker.at(tree, value), Missing::Directory);
        } else if FILES.contains(&key) {
            let file = seeker.at(tree, value);
            if file.is_file() {
                named.insert(file, Missing::Leave);
            }
        } else if key.starts_with("alias.") {
            seeker.alias(value, tree);
        } else if PROGRAMS.iter().any(|end| key.ends_with(end))
            || PROGRAM_SECTIONS.iter().any(|section| key.starts_with(section))
        {
            seeker.line(value, tree);
        }
    }
    named
}

/// Returns a path as git reads it, without `.` and, by its words alone, without `..`.
pub(super) fn absolute(folder: &Path, home: &Path, text: &str) -> PathBuf {
    let path = match text.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => folder.join(text),
    };
    plain_path(&path)
}
