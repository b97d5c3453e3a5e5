//! Applies: writes of agents' changes into the user's files, and undoing them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::cli_error::{DONE, FAILED, REFUSED};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::{meant, short_time};
use super::{CliError, RepoContext, changes, out};
use provost_api::wire;
use provost_base::{ApplyId, TaskId, task_command, visible, visible_name};

/// `provost task apply`.
#[derive(Args, Debug)]
pub(super) struct OfTask {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// Only these files, and what is in these folders; what is not written can be written later
    #[arg(value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Show the differences, and write nothing
    #[arg(long)]
    preview: bool,
}

/// `provost apply`.
#[derive(Subcommand, Debug)]
pub(super) enum Apply {
    /// List the applies to your files, the newest first
    #[command(after_help = "Examples:\n  provost apply list\n  provost apply list --json")]
    List,
    /// Restore the files from before an apply
    #[command(
        after_help = "Examples:\n  provost apply undo 7 --preview\n  provost apply undo 7\n  provost apply undo 7 --force\n  provost apply undo 8   # takes back the undo, which was apply 8\n\nA file that has changed since stays unchanged, and the exit code is 1."
    )]
    Undo(Undo),
}

/// `provost apply undo`.
#[derive(Args, Debug)]
pub(super) struct Undo {
    /// The number of the apply, as `provost apply list` shows it
    #[arg(value_parser = number)]
    apply: ApplyId,
    /// Also restore files that have changed since; their present content is kept, so this can be undone as well
    #[arg(long)]
    force: bool,
    /// Show the differences that would come back, and write nothing
    #[arg(long)]
    preview: bool,
}

fn number(typed: &str) -> Result<ApplyId, String> {
    typed.parse().map_err(|_| "an undo takes the number of an apply, which `provost apply list` shows".into())
}

pub(super) fn of_files(here: &RepoContext, asked: &Apply) -> Result<u8, CliError> {
    match asked {
        Apply::List => list(here),
        Apply::Undo(it) => undo(here, it),
    }
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let applies = wait_for(async { Ok(here.daemon(None).await?.applies().await?) })?;
    if here.json {
        return out::json(&applies).map(|()| DONE);
    }
    if applies.is_empty() {
        out::note("no apply has been made");
        return Ok(DONE);
    }
    let mut rows = vec![["APPLY", "WHEN", "FOR", "STATE", "FILES"].map(String::from)];
    rows.extend(applies.iter().map(|it| {
        let undone = it.undone_by.map(|by| format!(", undone by {by}")).unwrap_or_default();
        let undoes = it.undoes.map(|undoes| format!(", undoes {undoes}")).unwrap_or_default();
        let errors = if it.errors > 0 { format!(", {} not written", it.errors) } else { String::new() };
        [
            it.apply.to_string(),
            short_time(&it.at),
            out::one_line(&it.by, 30),
            format!("{}{undoes}{undone}{errors}", it.state),
            files(&it.files),
        ]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

/// Names the first few files.
fn files(all: &[wire::AppliedFile]) -> String {
    const NAMED: usize = 3;
    let sign = |it: &wire::AppliedFile| match it.how.as_str() {
        "created" => '+',
        "deleted" => '-',
        _ => '~',
    };
    let named = all.iter().take(NAMED).map(|it| format!("{}{}", sign(it), visible_name(&it.path, 60)));
    let more = all.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let text = named.chain(more).collect::<Vec<_>>().join(" ");
    if text.is_empty() { "-".into() } else { text }
}

fn undo(here: &RepoContext, asked: &Undo) -> Result<u8, CliError> {
    if asked.preview {
        return would_undo(here, asked);
    }
    let request = wire::Undo { apply: asked.apply.0, force: asked.force, seen: None };
    let asker = IdentityArgs::named(here, None)?;
    let done = wait_for(async { Ok(here.daemon(asker).await?.undo(&request).await?) })?;
    if here.json {
        return in_json(&done);
    }
    let counts = counted(&done, "as before already")?;
    out::line(format!("brought back: {counts}"))?;
    for error in &done.errors {
        out::note(visible_name(&format!("left alone: {error}"), 800));
    }
    if done.errors.is_empty() {
        return Ok(DONE);
    }
    let next = if asked.force {
        "provost apply list"
    } else {
        "provost undo with --force, to replace their present content"
    };
    Err(CliError::of(format!("{} of the files are not restored", done.errors.len())).next(next))
}

fn would_undo(here: &RepoContext, asked: &Undo) -> Result<u8, CliError> {
    let request =
        wire::ViewApply { apply: Some(asked.apply.0), force: asked.force, ..wire::ViewApply::default() };
    let found = wait_for(async { Ok(here.daemon(None).await?.view_apply(&request).await?) })?;
    if here.json {
        return out::json(&found).map(|()| DONE);
    }
    out::text_as_is(&visible(&found.diff))?;
    for error in &found.errors {
        out::note(visible_name(&format!("left alone: {error}"), 800));
    }
    if found.files == 0 {
        out::note("an undo would write nothing");
    }
    Ok(DONE)
}

pub(super) fn apply(here: &RepoContext, asked: &OfTask) -> Result<u8, CliError> {
    let mut request = wire::OfTask { paths: changes::paths(here, &asked.paths)?, ..wire::OfTask::default() };
    if asked.preview {
        let files = wait_for(async {
            let client = here.daemon(IdentityArgs::named(here, None)?).await?;
            request.task = meant(&client, &asked.id).await?.id;
            Ok(client.preview_task(&request).await?)
        })?;
        return if here.json { out::json(&files).map(|()| DONE) } else { previewed(&files) };
    }
    // In an agent's shell the agent asks for the apply, and not the person at its terminal.
    let asker = IdentityArgs::named(here, None)?;
    let (task, done) = wait_for(async {
        let client = here.daemon(asker).await?;
        let task = meant(&client, &asked.id).await?;
        request.task.clone_from(&task.id);
        Ok((task, client.apply_task(&request).await?))
    })?;
    if here.json {
        return in_json(&done);
    }
    let counts = counted(&done, "unchanged, since the files have this content already")?;
    out::line(format!("written: {counts},{}", changes::of_whom(&task)))?;
    for error in &done.errors {
        out::note(visible_name(&format!("left alone: {error}"), 800));
    }
    let discard = task_command("discard", &request.task, "");
    if done.errors.is_empty() {
        if done.applied == 0 {
            out::note(format!("nothing is left to write; to forget the changes: {discard}"));
        }
        return Ok(DONE);
    }
    let short = format!("{} of the files are not written", done.errors.len());
    let diff = task_command("task diff", &request.task, "");
    Err(CliError::of(short).next(match done.applied {
        0 => format!("{diff}; to drop these changes: {discard}"),
        _ => diff,
    }))
}

fn previewed(files: &[wire::Previewed]) -> Result<u8, CliError> {
    for file in files {
        let later = file.runs_later.then(|| " (runs later)".to_owned());
        let why = file.reason.as_ref().map(|why| format!(": {why}")).or(later).unwrap_or_default();
        out::note(visible_name(&format!("{} {}{why}", file.action, file.path), 800));
        if let Some(diff) = &file.diff {
            out::text_as_is(&visible(diff))?;
        }
    }
    Ok(DONE)
}

fn in_json(done: &wire::Applied) -> Result<u8, CliError> {
    out::json(done)?;
    let whole = done.state == "applied" && done.errors.is_empty();
    match done.state.as_str() {
        "awaiting" => Err(CliError::silent(REFUSED)),
        _ if whole => Ok(DONE),
        _ => Err(CliError::silent(FAILED)),
    }
}

/// Returns the number of files that an apply has written, and the apply's number; an error if it has written none.
fn counted(done: &wire::Applied, skipped: &str) -> Result<String, CliError> {
    match done.state.as_str() {
        "awaiting" => {
            let approval = done.approval.unwrap_or_default();
            return Err(CliError::refusal("this waits for approval")
                .because(format!("approval {approval}"))
                .next(super::approvals::then_again(approval)));
        }
        "denied" => {
            let word = |text: &Option<String>| out::one_line(text.as_deref().unwrap_or("unknown"), 400);
            return Err(CliError::of("denied by policy")
                .because(format!("rule {}: {}", word(&done.rule), word(&done.reason)))
                .next("provost policy explain --action apply"));
        }
        _ => {}
    }
    let number = done.apply.map(|it| format!("; this was apply {it}")).unwrap_or_default();
    let same = if done.skipped > 0 { format!(", {} {skipped}", done.skipped) } else { String::new() };
    Ok(format!("{}{same}{number}", done.applied))
}
