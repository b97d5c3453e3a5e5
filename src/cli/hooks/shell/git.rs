//! Writes of git's commands in the work tree.

use std::path::{Path, PathBuf};

use super::found::Found;
use super::patches::{named, strip};
use super::programs::{has, is_option, text, values_of, written};
use super::values::top;
use super::words::{Part, Word, parts, quoted};
use super::{Between, Reader, Written};
use crate::hooks::wide::said_by_git;

/// The upstream of the branch that is checked out.
const UPSTREAM: &str = "@{upstream}";

/// Options before the command that have a value.
const VALUED: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"];

/// A command of git: the folder where it runs, and the words after its name.
struct Command<'a> {
    verb: &'a str,
    rest: &'a [Word],
    folder: PathBuf,
    /// Settings for this command alone.
    settings: Vec<&'a str>,
}

/// Names of git's commands, which an alias cannot have: commands that write no files of the work tree, or that this module reads.
const OWN: &[&str] = &[
    "add",
    "am",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-ignore",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "fetch",
    "filter-branch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "version",
    "worktree",
    "write-tree",
    "mergetool",
    "difftool",
    "quiltimport",
    "merge-file",
    "interpret-trailers",
];

impl<'a> Command<'a> {
    fn read(mut rest: &'a [Word], folder: &Path) -> Option<Self> {
        let (mut folder, mut settings) = (folder.to_owned(), Vec::new());
        while let Some(option) = rest.first().filter(|it| is_option(it)).and_then(text) {
            let value = rest.get(1).and_then(text);
            match (option, option.strip_prefix("--work-tree=")) {
                ("-C" | "--work-tree", _) => folder = folder.join(value?),
                ("-c", _) => settings.extend(value),
                (_, Some(to)) => folder = folder.join(to),
                _ => {}
            }
            rest = rest.get(if VALUED.contains(&option) { 2 } else { 1 }..).unwrap_or_default();
        }
        let (verb, rest) = rest.split_first()?;
        Some(Self { verb: text(verb)?, rest, folder, settings })
    }

    fn has(&self, options: &[&str]) -> bool {
        has(self.rest, options)
    }

    /// Returns the words that are neither options nor their values, up to `--`.
    fn named(&self, valued: &[&str]) -> Vec<&'a str> {
        let is_end = |it: &Word| text(it) == Some("--");
        let before = self.rest.split(is_end).next().unwrap_or_default();
        named(before, valued).into_iter().filter_map(text).collect()
    }

    fn paths(&self, words: &[Word]) -> Vec<Written> {
        words.iter().filter(|it| !is_option(it)).flat_map(|it| self.path(it)).collect()
    }

    fn path(&self, word: &Word) -> Vec<Written> {
        let from_top = match word {
            Word::Plain(text) | Word::Pattern(text) => {
                text.strip_prefix(":/").or_else(|| text.strip_prefix(":(top)"))
            }
            _ => None,
        };
        match (from_top, top(&self.folder)) {
            (Some(path), Some(top)) => written(&Word::Plain(path.to_owned()), top),
            _ => written(word, &self.folder),
        }
    }

    fn changed(&self, between: Between) -> Written {
        Written::Changed(self.folder.clone(), between)
    }

    fn to(&self, revision: &str) -> Written {
        let revision = if revision == "-" { "@{-1}" } else { revision };
        self.changed(Between::Revision(revision.to_owned()))
    }

    /// Returns everything below the top of the work tree.
    fn all(&self) -> Written {
        Written::Below(top(&self.folder).unwrap_or(&self.folder).to_owned(), Vec::new())
    }

    /// Returns the text behind an alias, if the word is no command of git's own.
    fn alias(&self, found: &mut Found) -> Option<String> {
        let plain = self.verb.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if OWN.contains(&self.verb) || !plain {
            return None;
        }
        let of_setting = |it: &&str| {
            let (name, value) = it.split_once('=')?;
            let name = name.strip_prefix("alias.")?;
            name.eq_ignore_ascii_case(self.verb).then(|| value.to_owned())
        };
        if let Some(value) = self.settings.iter().rev().find_map(of_setting) {
            return Some(value);
        }
        let until = found.may_ask()?;
        said_by_git(&self.folder, &["config", "--get", &format!("alias.{}", self.verb)], until)
    }

    /// Reads the text behind an alias, with the words after it.
    fn of_alias(&self, alias: &str, found: &mut Found) {
        let behind: String = self.rest.iter().filter_map(quoted).collect();
        found.deeper(|found| match alias.trim().strip_prefix('!') {
            Some(line) => {
                // The line gets the words as a script gets its arguments.
                let line = line.replace("\"$@\"", &behind).replace("$@", &behind).replace("\"$1\"", &behind);
                let line = format!("{line}{behind}");
                Reader::within(found).line(&line, top(&self.folder).unwrap_or(&self.folder));
            }
            None => {
                let words = parts(alias).into_iter().find_map(|it| match it {
                    Part::Command(words) if !words.is_empty() => Some(words),
                    _ => None,
                });
                let words = [words.unwrap_or_default().as_slice(), self.rest].concat();
                of_git(&words, &self.folder, found);
            }
        });
    }

    /// Checks whether it writes git's index or the stash.
    fn writes_index(&self) -> bool {
        const WRITERS: [&str; 19] = [
            "add",
            "am",
            "checkout",
            "cherry-pick",
            "commit",
            "merge",
            "mv",
            "pull",
            "read-tree",
            "rebase",
            "reset",
            "restore",
            "revert",
            "rm",
            "stage",
            "stash",
            "switch",
            "update-index",
            "bisect",
        ];
        match self.verb {
            "apply" => self.has(&["--index", "--cached", "-3", "--3way"]),
            "stash" => !self.named(&[]).first().is_some_and(|it| matches!(*it, "list" | "show")),
            verb => WRITERS.contains(&verb) && !self.has(&["--dry-run"]),
        }
    }

    /// Checks whether it continues or gives up an earlier command.
    fn goes_on(&self) -> bool {
        self.has(&["--abort", "--continue", "--quit", "--skip", "--edit-todo", "--show-current-patch"])
    }
}

/// Finds the writes of a command of git.
pub(super) fn of_git(rest: &[Word], folder: &Path, found: &mut Found) {
    let Some(git) = Command::read(rest, folder) else { return };
    if let Some(alias) = git.alias(found) {
        return git.of_alias(&alias, found);
    }
    if git.writes_index() {
        found.push(Written::Index(git.folder.clone()));
    }
    let from_file = git.has(&["--pathspec-from-file"]);
    if from_file && matches!(git.verb, "rm" | "restore" | "checkout" | "stash" | "reset") {
        found.push(git.all());
    }
    let into = values_of(git.rest, &["--output"], "");
    found.extend(into.into_iter().map(|it| Written::Path(git.folder.join(it))));
    match git.verb {
        "mv" if !git.has(&["-n", "--dry-run"]) => super::copies::of_one("mv", git.rest, &git.folder, found),
        "rm" if !git.has(&["--cached", "-n", "--dry-run"]) => found.extend(git.paths(git.rest)),
        "restore" if git.has(&["--worktree", "-W"]) || !git.has(&["--staged", "-S"]) => {
            found.extend(git.paths(git.rest));
        }
        "clean" if !git.has(&["-n", "--dry-run"]) => {
            let named = named(git.rest, &["-e", "--exclude"]);
            let named: Vec<_> = named.into_iter().flat_map(|it| git.path(it)).collect();
            // The command removes files that git does not know.
            let all = named.is_empty();
            found.extend(if all { vec![git.changed(Between::Untracked)] } else { named });
        }
        "checkout" | "switch" => of_checkout(&git, found),
        "reset" if git.has(&["--hard", "--merge", "--keep"]) => {
            found.push(git.changed(Between::Uncommitted));
            found.extend(git.named(&[]).first().map(|it| git.to(it)));
        }
        "stash" => of_stash(&git, found),
        "read-tree" if git.has(&["-u", "--reset"]) => {
            found.push(git.changed(Between::Uncommitted));
            found.extend(git.named(&[]).iter().map(|it| git.to(it)));
        }
        "checkout-index" => found.push(git.changed(Between::Uncommitted)),
        "bisect" => {
            found.push(git.changed(Between::Uncommitted));
            found.extend(git.named(&[]).iter().skip(1).map(|it| git.to(it)));
        }
        "sparse-checkout" if !git.has(&["list"]) => found.push(git.all()),
        "filter-branch" | "filter-repo" => found.push(git.all()),
        "merge" | "rebase" | "cherry-pick" | "revert" | "pull" if !git.goes_on() => of_join(&git, found),
        "apply" | "am" => of_apply(&git, found),
        "mergetool" | "quiltimport" => found.push(git.all()),
        "difftool" if git.has(&["-x", "--extcmd"]) => found.push(git.all()),
        "lfs" | "svn" => {
            let writes = ["pull", "checkout", "migrate", "rebase", "dcommit"];
            found.extend(git.named(&[]).first().filter(|it| writes.contains(it)).map(|_| git.all()));
        }
        "merge-file" if !git.has(&["-p", "--stdout"]) => {
            let named = git.named(&["-L", "--marker-size"]);
            found.extend(named.first().map(|it| Written::Path(git.folder.join(it))));
        }
        "interpret-trailers" if git.has(&["--in-place"]) => found.extend(git.paths(git.rest)),
        "config" if !git.has(&["--get", "--get-all", "--list", "-l", "--get-regexp"]) => {
            let file = values_of(git.rest, &["-f", "--file"], "");
            found.extend(file.into_iter().map(|it| Written::Path(git.folder.join(it))));
        }
        "archive" | "bundle" => {
            let made = git.named(&[]).get(1).filter(|_| git.verb == "bundle").copied();
            found.extend(made.map(|it| Written::Path(git.folder.join(it))));
            let into = values_of(git.rest, &["-o"], "");
            found.extend(into.into_iter().map(|it| Written::Path(git.folder.join(it))));
        }
        _ => {}
    }
}

fn of_checkout(git: &Command<'_>, found: &mut Found) {
    const BRANCH: &[&str] = &["-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"];
    if git.has(&["-f", "--force", "--discard-changes", "-m", "--merge"]) {
        found.push(git.changed(Between::Uncommitted));
    }
    let makes_branch = git.has(BRANCH) || git.has(&["-t", "--track"]);
    if makes_branch && git.has(&["--orphan"]) && git.verb == "switch" {
        return found.push(git.all());
    }
    let named = git.named(&[BRANCH, &["--conflict"]].concat());
    let behind = git.rest.iter().position(|it| text(it) == Some("--"));
    if let Some(behind) = behind.filter(|_| git.verb == "checkout") {
        return found.extend(git.paths(&git.rest[behind..]));
    }
    let there = |it: &&str| git.folder.join(it).symlink_metadata().is_ok();
    let patterns =
        || git.rest.iter().any(|it| matches!(it, Word::Pattern(_)) || text(it).is_some_and(is_magic));
    // Paths follow a revision.
    if !makes_branch && git.verb == "checkout" && named.len() > 1 {
        return found.extend(git.paths(git.rest));
    }
    // As in git, the name of a file counts as one, unless it is a revision.
    if !makes_branch && git.verb == "checkout" && (named.iter().any(there) || patterns()) {
        found.extend(git.paths(git.rest));
    }
    let is_path = named.first().is_some_and(|it| there(it) || is_magic(it));
    found.extend(named.first().filter(|_| makes_branch || !is_path).map(|it| git.to(it)));
}

/// Checks whether only git takes a word for names of files.
fn is_magic(word: &str) -> bool {
    word.starts_with(":/") || word.starts_with(":(") || word.contains(['*', '?'])
}

fn of_stash(git: &Command<'_>, found: &mut Found) {
    let named = git.named(&["-m", "--message", "--pathspec-from-file"]);
    match named.first().copied() {
        None | Some("push" | "save") => {
            found.push(git.changed(Between::Uncommitted));
            if git.has(&["-u", "--include-untracked", "-a", "--all"]) {
                found.push(git.changed(Between::Untracked));
            }
        }
        Some(verb @ ("pop" | "apply" | "branch")) => {
            let which = named.get(if verb == "branch" { 2 } else { 1 }).copied().unwrap_or("0");
            let is_number = which.bytes().all(|it| it.is_ascii_digit());
            let which = if is_number { format!("stash@{{{which}}}") } else { which.to_owned() };
            if verb == "branch" {
                found.push(git.to(&format!("{which}^")));
            }
            found.push(git.changed(Between::Stash(which)));
        }
        Some(_) => {}
    }
}

/// Finds the writes of a command that brings commits onto the present ones.
fn of_join(git: &Command<'_>, found: &mut Found) {
    let valued: &[&str] = match git.verb {
        "cherry-pick" | "revert" => &["-m", "--mainline", "-X", "--strategy", "--strategy-option"],
        "rebase" => {
            &["-s", "-X", "-x", "--exec", "--strategy", "--strategy-option", "--onto", "--whitespace"]
        }
        "pull" => &["-s", "-X", "-j", "-o", "--strategy", "--strategy-option", "--depth", "--jobs"],
        _ => {
            &["-m", "-F", "-s", "-X", "--message", "--file", "--strategy", "--strategy-option", "--into-name"]
        }
    };
    let named = git.named(valued);
    match (git.verb, named.as_slice()) {
        ("cherry-pick" | "revert", commits) => {
            let commits = commits.iter().map(|it| (*it).to_owned()).collect();
            found.push(git.changed(Between::Commits(commits)));
        }
        ("pull", [remote, branches @ ..]) if !branches.is_empty() => {
            let there = |it: &&str| {
                let branch = it.trim_start_matches('+').split(':').next().unwrap_or_default();
                git.to(&format!("{remote}/{branch}"))
            };
            found.extend(branches.iter().map(there));
        }
        ("rebase", named) => {
            for line in values_of(git.rest, &["-x", "--exec"], "") {
                let top = top(&git.folder).unwrap_or(&git.folder);
                found.deeper(|found| Reader::within(found).line(&line, top));
            }
            let onto = values_of(git.rest, &["--onto"], "");
            let onto = onto.first().map(String::as_str);
            found.extend(named.iter().skip(1).map(|it| git.to(it)));
            let upstream = named.first().copied().unwrap_or(UPSTREAM);
            if !(git.has(&["--root"]) && onto.is_none()) {
                found.push(git.to(onto.unwrap_or(upstream)));
            }
        }
        ("merge", named) => {
            let named = if named.is_empty() { &[UPSTREAM][..] } else { named };
            // Some strategies write more files than the other side has changed.
            let in_another_way = git.has(&["-s", "--strategy"]) || git.has(&["-X", "--strategy-option"]);
            found.extend(named.iter().map(|it| match in_another_way {
                true => git.to(it),
                false => git.changed(Between::Brought((*it).to_owned())),
            }));
        }
        _ => found.push(git.to(UPSTREAM)),
    }
}

/// Options of `git apply` and `git am` with a value.
const APPLY_VALUED: &[&str] =
    &["-p", "-C", "--directory", "--exclude", "--include", "--whitespace", "--build-fake-ancestor"];

fn applies(git: &Command<'_>) -> bool {
    matches!(git.verb, "apply" | "am")
        && !git.goes_on()
        && !git.has(&["--check", "--stat", "--cached", "--numstat", "--summary"])
}

/// Returns the folder at which the paths of a patch begin, and the number of leading folders to drop.
fn patched_from(git: &Command<'_>) -> (PathBuf, usize) {
    let at = match git.verb {
        "am" => top(&git.folder).unwrap_or(&git.folder).to_owned(),
        _ => git.folder.clone(),
    };
    let below = values_of(git.rest, &["--directory"], "");
    // As in git, this folder is relative to the top.
    let from = below.first().map(|it| top(&git.folder).unwrap_or(&git.folder).join(it));
    (from.unwrap_or(at), strip(git.rest, 1))
}

fn of_apply(git: &Command<'_>, found: &mut Found) {
    if !applies(git) {
        return;
    }
    let (at, strip) = patched_from(git);
    let files = git.named(APPLY_VALUED).into_iter().filter(|it| *it != "-");
    found.extend(files.map(|it| Written::Patched(git.folder.join(it), at.clone(), strip)));
}

/// Returns, for a command of git that applies a patch from its input, the patch's folder and the number of leading folders to drop.
pub(super) fn takes_patch(rest: &[Word], folder: &Path) -> Option<(PathBuf, usize)> {
    let git = Command::read(rest, folder)?;
    let reads = applies(&git) && git.named(APPLY_VALUED).iter().all(|it| *it == "-");
    reads.then(|| patched_from(&git))
}
