//! The changes that a run has made in its private copy: shown as differences, summed up, discarded.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::cli_error::{DONE, FAILED};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::meant;
use super::{CliError, RepoContext, diff_colours, out};
use provost_api::wire;
use provost_base::{TaskId, shell_word, task_command, visible_name};

/// `provost task diff`.
#[derive(Args, Debug)]
pub(super) struct Diff {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// Only these files, and what is in these folders
    #[arg(value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Count the changed lines of each file, instead of showing them
    #[arg(long)]
    stat: bool,
}

/// `provost task discard`.
#[derive(Args, Debug)]
pub(super) struct Discard {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Columns for the signs of one file in a summary.
const SIGNS_MAX: u64 = 30;

/// The number of characters of a commit's name that are shown.
const COMMIT_CHARS: usize = 12;

/// The longest path that is shown in a line, in characters.
const PATH_CHARS: usize = 400;

/// Returns paths in the daemon's form; they may be typed in any folder of the repository.
pub(super) fn paths(here: &RepoContext, typed: &[PathBuf]) -> Result<Vec<String>, CliError> {
    let one = |path: &PathBuf| match here.path(path)? {
        top if top.is_empty() => Ok(".".to_owned()),
        path => Ok(path),
    };
    typed.iter().map(one).collect()
}

pub(super) fn diff(here: &RepoContext, asked: &Diff) -> Result<u8, CliError> {
    let paths = paths(here, &asked.paths)?;
    let (task, files) = wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, None)?).await?;
        let task = meant(&client, &asked.id).await?;
        let request = wire::OfTask { task: task.id.clone(), paths, seen: None };
        let files = client.preview_task(&request).await?;
        Ok((task, files))
    })?;
    if here.json {
        return out::json(&files).map(|()| DONE);
    }
    let written: Vec<&wire::Previewed> = files.iter().filter(|it| it.action != "skip").collect();
    if asked.stat {
        let rows: Vec<Row> = written.iter().map(|it| Row::of(it)).collect();
        out::text_as_is(&summed_up(&rows, &Sum::of(&rows)))?;
    } else {
        written.iter().try_for_each(|it| patch(it))?;
        let counted = written.iter().filter(|it| it.extent.as_deref() == Some("counted")).count();
        if counted > 0 {
            let typed = task_command("task diff", &task.id, "--stat");
            out::note(format!(
                "{counted} differences are too long to be shown; `{typed}` counts the lines of all files"
            ));
        }
    }
    for it in files.iter().filter(|it| it.action == "skip") {
        let why = it.reason.as_deref().unwrap_or("the file says that already");
        out::note(visible_name(&format!("skip {}: {why}", it.path), 800));
        // A person can read this difference; a program that takes the patch does not get it.
        if let Some(diff) = it.diff.as_deref().filter(|_| std::io::stdout().is_terminal() && !asked.stat) {
            out::text_as_is(&diff_colours::drawn(diff))?;
        }
    }
    for it in &task.changes_kept().left_out {
        out::note(visible_name(&format!("not kept: {it}"), 800));
    }
    if written.is_empty() {
        out::note("an apply would write nothing");
    }
    Ok(DONE)
}

/// Prints one file's difference. Changes that `git apply` could not carry out are reported beside the patch.
fn patch(it: &wire::Previewed) -> Result<(), CliError> {
    let tell = |text: &str| out::note(visible_name(text, 800));
    if it.runs_later {
        tell(&format!("{} runs later, or tells agents what to do", it.path));
    }
    match (it.extent.as_deref(), &it.diff) {
        (Some("binary"), _) => tell(&format!("binary: {} ({})", it.path, it.action)),
        (Some("counted"), _) => {
            let (added, removed) = (it.added, it.removed);
            tell(&format!("{}: too long to be shown, {added} lines come and {removed} go", it.path));
        }
        (_, Some(diff)) if std::io::stdout().is_terminal() => out::text_as_is(&diff_colours::drawn(diff))?,
        // A program gets the difference unchanged.
        (_, Some(diff)) => out::text_as_is(diff)?,
        (_, None) => {}
    }
    Ok(())
}

/// One file of a summary.
struct Row {
    path: String,
    is_binary: bool,
    added: u64,
    removed: u64,
}

impl Row {
    fn of(it: &wire::Previewed) -> Self {
        let is_binary = it.extent.as_deref() == Some("binary");
        Self { path: it.path.clone(), is_binary, added: it.added, removed: it.removed }
    }
}

impl From<&wire::ChangedLines> for Row {
    fn from(it: &wire::ChangedLines) -> Self {
        let is_binary = it.kind == "binary";
        Self { path: it.path.clone(), is_binary, added: it.added, removed: it.removed }
    }
}

/// The totals over all changed files, including those that are not named.
struct Sum {
    files: u64,
    added: u64,
    removed: u64,
}

impl Sum {
    fn of(rows: &[Row]) -> Self {
        let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum();
        Self { files: rows.len() as u64, added: sum(|it| it.added), removed: sum(|it| it.removed) }
    }
}

/// Writes files with their changed lines, as `git diff --stat` does.
fn summed_up(rows: &[Row], all: &Sum) -> String {
    let paths: Vec<String> = rows.iter().map(|it| visible_name(&it.path, PATH_CHARS)).collect();
    let width = paths.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    let most = rows.iter().map(|it| it.added + it.removed).max().unwrap_or(0);
    let digits = most.to_string().len().max(3);
    // Each sign stands for the same number of lines, and every change has a sign.
    let signs = |lines: u64| match most <= SIGNS_MAX {
        true => lines,
        false => (lines * SIGNS_MAX).div_ceil(most),
    };
    let mut text = String::new();
    for (it, path) in rows.iter().zip(&paths) {
        let lines = if it.is_binary { "Bin".to_owned() } else { (it.added + it.removed).to_string() };
        let [plus, minus] = [("+", it.added), ("-", it.removed)]
            .map(|(sign, lines)| sign.repeat(usize::try_from(signs(lines)).unwrap_or_default()));
        let line = format!(" {path:<width$} | {lines:>digits$} {plus}{minus}");
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    let more = all.files.saturating_sub(rows.len() as u64);
    if more > 0 {
        text.push_str(&format!(" and {more} more\n"));
    }
    let of = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let &Sum { files, added, removed } = all;
    let files = of(files, "file changed", "files changed");
    let added = (added > 0).then(|| of(added, "insertion(+)", "insertions(+)"));
    let removed = (removed > 0).then(|| of(removed, "deletion(-)", "deletions(-)"));
    let parts: Vec<String> = std::iter::once(files).chain(added).chain(removed).collect();
    text.push_str(&format!(" {}\n", parts.join(", ")));
    text
}

/// Says what a task has changed, and which commands act on the changes; empty where nothing was changed.
pub(super) fn of_task(task: &wire::Task) -> String {
    let (kept, mut text) = (task.changes_kept(), String::new());
    if kept.can_apply {
        let rows: Vec<Row> = kept.files.iter().map(Row::from).collect();
        let names = kept.names(|it| visible_name(it, PATH_CHARS));
        let place = if task.worktree.is_some() { "its work tree" } else { "its private copy" };
        text.push_str(&format!("changed in {place}: {names}\n"));
        let named = Sum::of(&rows);
        let all = task.changes.as_ref().map_or(named, |it| Sum {
            files: it.files.into(),
            added: it.added,
            removed: it.removed,
        });
        text.push_str(&summed_up(&rows, &all));
    }
    for it in &kept.left_out {
        text.push_str(&format!("not kept: {}\n", visible_name(it, 800)));
    }
    text.push_str(&in_work_tree(task));
    let Some(changes) = &task.changes else { return text + &if_older(task, kept.can_apply) };
    if changes.state != "kept" {
        text.push_str(&format!("its changes: {}\n", changes.in_words()));
    }
    let says = ["show them:    ", "write them:   ", "discard them: "];
    for (says, command) in says.iter().zip(&changes.next) {
        text.push_str(&format!("{says}{}\n", visible_name(command, PATH_CHARS)));
    }
    text
}

/// Says which changes are committed in a work tree, and which commands act on them.
fn in_work_tree(task: &wire::Task) -> String {
    let Some(tree) = task.in_work_tree() else { return String::new() };
    let [branch, path] = [&tree.branch, &tree.path].map(|it| visible_name(it, PATH_CHARS));
    let mut text = String::new();
    match (&tree.commit, &tree.failed) {
        (Some(commit), _) => {
            let short = commit.get(..COMMIT_CHARS).unwrap_or(commit);
            // A removed work tree leaves its branch behind.
            let place = if Path::new(&tree.path).is_dir() { format!(", in {path}") } else { String::new() };
            text.push_str(&format!("committed:    {short} on branch {branch}{place}\n"));
        }
        (None, Some(why)) => text.push_str(&format!("not committed: {}\n", visible_name(why, 800))),
        (None, None) if tree.removed => {
            text.push_str(&format!("committed:    nothing; branch {branch} and its work tree are removed\n"));
        }
        (None, None) => text.push_str(&format!("committed:    nothing on branch {branch}, in {path}\n")),
    }
    for (file, why) in &tree.not_committed {
        text.push_str(&format!("not committed: {}\n", visible_name(&format!("{file}: {why}"), 800)));
    }
    if !tree.ignored.is_empty() {
        let more =
            if tree.ignored_more > 0 { format!(" and {} more", tree.ignored_more) } else { String::new() };
        let says = "which git ignores by a rule in a .gitignore that the run has written";
        let named = visible_name(&tree.ignored.join(", "), 800);
        text.push_str(&format!("not committed: {named}{more}, {says}\n"));
    }
    let is_merged = task.changes.as_ref().is_some_and(|it| it.state == "merged");
    if let Some(next) = tree.next.as_ref().filter(|_| !is_merged) {
        text.push_str(&format!("merge it:     {}\n", visible_name(next, PATH_CHARS)));
    }
    text
}

/// Names the task at the end of a line about its changes.
pub(super) fn of_whom(task: &wire::Task) -> String {
    let [id, by] = [&task.id, &task.asked_by].map(|it| visible_name(it, PATH_CHARS));
    format!(" of task {id}, which {by} has asked for")
}

/// Does the same for a task that an earlier version has recorded.
fn if_older(task: &wire::Task, can_apply: bool) -> String {
    match can_apply {
        true => format!("write them:   {}\n", task_command("apply", &task.id, "")),
        false => String::new(),
    }
}

pub(super) fn discard(here: &RepoContext, asked: &Discard) -> Result<u8, CliError> {
    let task = wait_for(async {
        let client = here.daemon(None).await?;
        let task = meant(&client, &asked.id).await?;
        if !asked.yes && task.changes.is_none() && !task.changes_kept().can_apply {
            // Without kept changes, this request fails and says so; a person is asked only about changes that exist.
            let whole = wire::OfTask { task: task.id.clone(), paths: Vec::new(), seen: None };
            client.preview_task(&whole).await?;
        }
        Ok(task)
    })?;
    if !asked.yes {
        confirm(&task)?;
    }
    let (whose, task_tree) = (of_whom(&task), task.worktree.clone());
    let (request, asker) = (wire::Discard { task: task.id }, IdentityArgs::named(here, None)?);
    let done = wait_for(async { Ok(here.daemon(asker).await?.discard_task(&request).await?) })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    if let Some(tree) = task_tree {
        let typed = format!("provost worktree remove {} --branch --force", shell_word(&tree));
        out::note(format!(
            "what is committed on branch {} stays there; `{typed}` removes it, with all else on that branch",
            visible_name(&tree, PATH_CHARS)
        ));
    }
    let files =
        if done.files == 1 { "1 changed file".into() } else { format!("{} changed files", done.files) };
    out::line(match done.already {
        true => format!("discarded before: {files}{whose}"),
        false => format!("discarded: {files}{whose}"),
    })?;
    Ok(DONE)
}

/// Waits until the person at the terminal confirms.
fn confirm(task: &wire::Task) -> Result<(), CliError> {
    let id = visible_name(&task.id, PATH_CHARS);
    if !std::io::stdin().is_terminal() {
        return Err(CliError::refusal("there is no person to ask, and what is discarded is gone for good")
            .because("standard input is no terminal")
            .next(task_command("discard", &task.id, "--yes")));
    }
    out::note(of_task(task).trim_end());
    out::note(format!("Discard what task {id} has changed? It is gone for good. [y/N]"));
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(CliError::of("not discarded").with_code(FAILED)),
    }
}
