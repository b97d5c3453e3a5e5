//! Tools of hosts: finds out where the files lie that a call names, submits the permission request, and waits for the
//! answer as long as the host does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::{Base, Provost};
use provost_base::limits::HOOK_LINKS_MAX;
use provost_base::{is_absolute, normalised_path};
use provost_domain::command::{AskPermission, Permitted, WithdrawPermission};
use provost_domain::{
    Answer, Facts, Principal, Refusal, ToolCall, ToolFacts, ToolPath, folders_of, is_machinery, runs_later,
};
use provost_system::shared_real_path;

impl Provost {
    /// Asks whether a tool may be used, and waits for approval for this time; parked if that was not long enough. Files are
    /// those of the caller's work tree, or of the daemon's own.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn permission(
        &self,
        who: &Principal,
        verb: AskPermission,
        base: Option<&Base>,
        patience: Duration,
    ) -> Result<Answer<Permitted>, Refusal> {
        let until = Instant::now() + patience;
        let facts = self.call_facts(&verb, base.unwrap_or(self.base())).await?;
        let mut question = Question { provost: self, who, id: None };
        loop {
            let answer = self.engine().submit_judged(who, verb.clone(), facts.clone()).await?;
            let approval = match answer {
                Answer::Parked(approval) => approval,
                answer => {
                    question.id = None;
                    return Ok(answer);
                }
            };
            question.id = Some(verb.id.clone());
            let left = until.saturating_duration_since(Instant::now());
            // Asked again when it was answered: then the word is there, and is used up.
            if left.is_zero() || !self.answered(approval, left).await? {
                question.id = None;
                return Ok(Answer::Parked(approval));
            }
        }
    }
}

impl Provost {
    async fn call_facts(&self, verb: &AskPermission, base: &Base) -> Result<Facts, Refusal> {
        let top = base.root().place().path().to_owned();
        let verb = verb.clone();
        let look = move || tool_facts(&verb, &top);
        let tool = tokio::task::spawn_blocking(look).await;
        let tool = tool.map_err(|_| Refusal::Unavailable { why: "it is shutting down".into() })?;
        Ok(Facts { tool: Some(Box::new(tool)), ..Facts::default() })
    }
}

/// What a call names, from the top of a work tree. Looks at the file system.
fn tool_facts(verb: &AskPermission, top: &Path) -> ToolFacts {
    let arguments = verb.arguments.value();
    let call = ToolCall::read(&verb.tool, &arguments);
    let start = verb.folder.as_deref().map(Path::new);
    let named = folders_of(&arguments);
    let folders: Vec<PathBuf> = match (start, named.is_empty()) {
        (None, _) => Vec::new(),
        (Some(start), true) => vec![start.to_owned()],
        (Some(start), false) => named.into_iter().map(|it| start.join(it)).collect(),
    };
    let is_inside = |it: &PathBuf| {
        let real = shared_real_path(it).ok().filter(|it| it.starts_with(top));
        real.is_some_and(|it| !is_machinery(&below(&it, top)) && !has_other_repository(&it, top))
    };
    let inside = !folders.is_empty() && !is_bare(top) && folders.iter().all(is_inside);
    let folder = folders.first().map(PathBuf::as_path);
    let paths = call.paths.iter().map(|path| named_path(path, folder, top, &call)).collect();
    ToolFacts { inside, paths, complete: call.complete, open: call.open, more: call.more }
}

/// Whether one of the folders from this one up to the top, without the top, is itself a repository for git, or would become one
/// by what lies below: its configuration runs programs. The file system decides which spellings of a name it finds.
fn has_other_repository(folder: &Path, top: &Path) -> bool {
    let mut up = folder.ancestors().take_while(|it| *it != top);
    up.any(|it| is_there(&it.join(".git")) || is_bare(it))
}

/// Whether a folder has the parts of a repository without a work tree.
fn is_bare(folder: &Path) -> bool {
    let has = |name: &str| is_there(&folder.join(name));
    has("commondir") || (has("HEAD") && (has("objects") || has("refs")))
}

/// Whether something may be there, as a link too.
fn is_there(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    !path.symlink_metadata().is_err_and(|it| matches!(it.kind(), NotFound | NotADirectory))
}

/// Whether a write to a path within a work tree lies in a repository within it, or completes one.
fn changes_repository(path: &Path, top: &Path) -> bool {
    let is_part = |it: &Path| {
        let named = |name: &str| it.file_name().is_some_and(|it| it.eq_ignore_ascii_case(name));
        (named("objects") || named("refs"))
            && it.parent().is_some_and(|it| it != top && is_there(&it.join("HEAD")))
    };
    has_other_repository(path, top) || path.ancestors().take_while(|it| *it != top).any(is_part)
}

fn named_path(path: &str, folder: Option<&Path>, top: &Path, call: &ToolCall) -> ToolPath {
    let home = || provost_system::HOME.iter().find_map(std::env::var_os).map(PathBuf::from);
    let home = || path.strip_prefix("~/").and_then(|below| Some(home()?.join(below)));
    let whole = match is_absolute(path) {
        true => Some(PathBuf::from(path)),
        false => home().or_else(|| folder.map(|it| it.join(path))),
    };
    let real = whole.filter(|it| it.is_absolute()).and_then(leads_to);
    let text = real.as_deref().and_then(Path::to_str).map(normalised_path);
    // What a host makes of a tilde or a variable is not known.
    let is_plain = (cfg!(windows) || !path.contains('\\'))
        && !path.starts_with('~')
        && !path.contains(['$', '%'])
        && !path.chars().any(char::is_control);
    let inside = real.as_deref().filter(|it| it.starts_with(top)).map(|it| below(it, top));
    let runs = |text: &String| match (&inside, &real) {
        (Some(below), Some(real)) => runs_later(below, true) || changes_repository(real, top),
        _ => runs_later(text, false),
    };
    let may_be_touched = |it: &String| !(is_machinery(it) || (call.writes && runs(it)));
    let sure = call.complete && is_plain && text.as_ref().is_some_and(may_be_touched);
    ToolPath {
        at: inside.into_iter().chain(text).map(Into::into).collect(),
        spelled: normalised_path(path).into(),
        sure,
    }
}

/// Where a path leads, links followed, as far as it is there. `None` where that is another place for each process.
fn leads_to(mut there: PathBuf) -> Option<PathBuf> {
    let (mut rest, mut links) = (Vec::new(), 0);
    loop {
        if there.starts_with("/proc") {
            return None;
        }
        if let Ok(real) = shared_real_path(&there) {
            return Some(rest.iter().rev().fold(real, |path: PathBuf, name: &OsString| path.join(name)));
        }
        // A link to what is not there yet is written through all the same.
        match std::fs::read_link(&there) {
            Ok(to) if links < HOOK_LINKS_MAX => {
                links += 1;
                there = there.parent()?.join(to);
            }
            Ok(_) => return None,
            Err(_) => {
                rest.push(there.file_name()?.to_owned());
                there = there.parent()?.to_owned();
            }
        }
    }
}

/// A path from the top that it lies below; empty for the top itself.
fn below(path: &Path, top: &Path) -> String {
    let below = path.strip_prefix(top).unwrap_or(path).to_string_lossy();
    below.replace(std::path::MAIN_SEPARATOR, "/")
}

/// A question that waits, and is taken back when its asker hangs up.
struct Question<'a> {
    provost: &'a Provost,
    who: &'a Principal,
    id: Option<Box<str>>,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (provost, who) = (self.provost.clone(), self.who.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // One that cannot be taken back now ends with its time.
                let _ = provost.submit(&who, WithdrawPermission { id }).await;
            });
        }
    }
}
