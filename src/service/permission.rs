//! Tools of hosts: finds the places of the files that a call names, submits the permission request, and waits for
//! the answer as long as the host does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::{Base, Provost};
use provost_base::limits::HOOK_LINKS_MAX;
use provost_base::{is_absolute, normalised_path, plain_path};
use provost_domain::command::{AskPermission, Permitted, WithdrawPermission};
use provost_domain::{
    Answer, Facts, Principal, Refusal, ToolCall, ToolFacts, ToolPath, folders_of, is_machinery,
    is_of_processes, is_stream, runs_later,
};
use provost_system::shared_real_path;

impl Provost {
    /// Asks whether a tool may be used, and waits for an approval for `patience`; the answer is parked if none
    /// came. Paths mean files of the caller's work tree, or of the daemon's own checkout.
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
            // The caller may leave while the engine decides. A request that is refused at once may have the id of another one that waits.
            let has_waited = question.id.replace(verb.id.clone()).is_some();
            let answer = self.engine().submit_judged(who, verb.clone(), facts.clone()).await;
            let approval = match answer {
                Ok(Answer::Parked(approval)) => approval,
                Err(refusal) if has_waited => return Err(refusal),
                answer => {
                    question.id = None;
                    return answer;
                }
            };
            let left = until.saturating_duration_since(Instant::now());
            // An answered request is submitted again: then the core has the answer, and uses it up.
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
        let tool = tool.map_err(|_| Refusal::Stopping)?;
        Ok(Facts { tool: Some(Box::new(tool)), ..Facts::default() })
    }
}

/// Returns the facts about the files that a call names, from the top of a work tree. Reads the file system.
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

/// Checks whether one of the folders from this one up to the top, without the top, is itself a repository for git, or would become one
/// with the files below: its configuration runs programs. The file system decides which spellings of a name it finds.
fn has_other_repository(folder: &Path, top: &Path) -> bool {
    let mut up = folder.ancestors().take_while(|it| *it != top);
    up.any(|it| is_there(&it.join(".git")) || is_bare(it))
}

/// Checks whether a folder has the parts of a repository without a work tree.
fn is_bare(folder: &Path) -> bool {
    let has = |name: &str| is_there(&folder.join(name));
    has("commondir") || (has("HEAD") && (has("objects") || has("refs")))
}

/// Checks whether a file, folder or link may exist at a path.
fn is_there(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    !path.symlink_metadata().is_err_and(|it| matches!(it.kind(), NotFound | NotADirectory))
}

/// Checks whether a write to a path in a work tree is within a nested repository, or completes one.
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
    let whole = whole.filter(|it| it.is_absolute());
    // The system follows each step; a host may normalize the words first. A refusing rule need not know which of the two happens.
    let leads = whole.as_deref().map(|it| leads_to(it.to_owned()));
    let plain = whole.as_deref().map(|it| leads_to(plain_path(it)));
    let anywhere = [&leads, &plain].into_iter().any(|it| matches!(it, Some(Lead::Anywhere)));
    let (real, plain) = (leads.and_then(Lead::path), plain.and_then(Lead::path));
    let text = |it: &PathBuf| it.to_str().map(normalised_path);
    let is_one = real.is_some() && real == plain;
    // The daemon does not know how a host expands a tilde or a variable.
    let is_plain = (cfg!(windows) || !path.contains('\\'))
        && !path.starts_with('~')
        && !path.contains(['$', '%'])
        && !path.chars().any(char::is_control);
    let inside = |it: &PathBuf| it.starts_with(top).then(|| below(it, top));
    let runs = |real: &PathBuf, text: &str| match inside(real) {
        Some(below) => runs_later(&below, true) || changes_repository(real, top),
        None => runs_later(text, false),
    };
    let may_be_touched = |real: &PathBuf| {
        text(real).is_some_and(|it| !(is_machinery(&it) || (call.writes && runs(real, &it))))
    };
    let sure = call.complete && is_plain && is_one && !anywhere && real.as_ref().is_some_and(may_be_touched);
    let places = real.iter().chain(plain.iter().filter(|_| !is_one));
    ToolPath {
        at: places.flat_map(|it| inside(it).into_iter().chain(text(it))).map(Into::into).collect(),
        spelled: normalised_path(path).into(),
        sure,
        anywhere,
    }
}

/// The target of a path.
enum Lead {
    /// This place, with links followed, as far as it exists.
    To(PathBuf),
    /// No place: a folder from which it goes up does not exist.
    Nowhere,
    /// A place that differs between processes, or that lies behind too many links.
    Anywhere,
}

impl Lead {
    fn path(self) -> Option<PathBuf> {
        match self {
            Lead::To(path) => Some(path),
            Lead::Nowhere | Lead::Anywhere => None,
        }
    }
}

fn leads_to(mut there: PathBuf) -> Lead {
    let (mut rest, mut links): (Vec<OsString>, _) = (Vec::new(), 0);
    let whole = |there: &Path, rest: &[OsString]| {
        rest.iter().rev().fold(there.to_owned(), |path: PathBuf, name| path.join(name))
    };
    loop {
        let path = whole(&there, &rest);
        if path.to_str().is_some_and(is_stream) {
            return Lead::To(path);
        }
        let is_shared = |path: &Path| path.to_str().is_some_and(|it| !is_of_processes(it));
        if !is_shared(&path) {
            return Lead::Anywhere;
        }
        if let Ok(real) = shared_real_path(&there) {
            let real = whole(&real, &rest);
            return if is_shared(&real) { Lead::To(real) } else { Lead::Anywhere };
        }
        // A write through a link to a missing file still creates the file.
        match std::fs::read_link(&there) {
            Ok(to) if links < HOOK_LINKS_MAX => {
                links += 1;
                match there.parent() {
                    Some(parent) => there = parent.join(to),
                    None => return Lead::Nowhere,
                }
            }
            Ok(_) => return Lead::Anywhere,
            Err(_) => {
                let (Some(name), Some(parent)) = (there.file_name(), there.parent()) else {
                    return Lead::Nowhere;
                };
                rest.push(name.to_owned());
                there = parent.to_owned();
            }
        }
    }
}

/// Returns a path as relative to the top above it; empty for the top itself.
fn below(path: &Path, top: &Path) -> String {
    let below = path.strip_prefix(top).unwrap_or(path).to_string_lossy();
    below.replace(std::path::MAIN_SEPARATOR, "/")
}

/// A permission request that waits, and is withdrawn when its asker disconnects.
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
                // A request that cannot be withdrawn now ends after its time.
                let _ = provost.submit(&who, WithdrawPermission { id }).await;
            });
        }
    }
}
