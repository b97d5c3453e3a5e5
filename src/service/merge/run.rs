//! A run of the queue: each branch is merged, held against everything that could keep it out, and checked;
//! then the trunk is moved. One that is not merged is set aside with its reason, and the next one goes on.
//!
//! Until the trunk is moved, nothing of the user's changes. A run that was broken off is begun again: an
//! entry that was being merged is merged again, and for one whose trunk was being moved, the trunk says what
//! has become of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::Provost;
use super::MergeError;
use super::compare::{ConflictKind, MergeConflict};
use super::owner::Owner;
use super::preview::{Looked, cut_off, look};
use super::study::Study;
use super::trunk::{Followed, Moved, Way, run_works_on};
use provost_base::limits::{MERGE_CHECK_TOLD_BYTES_MAX, MERGE_TRIES_MAX};
use provost_base::{AgentId, ApprovalId, Fence, TaskId, shell_word, task_command};
use provost_domain::command::{Delegated, MoveMerge, Status};
use provost_domain::{
    Answer, Delegate, Failure, JobContext, MergeEntry, MergeState, Principal, Refusal, Task, TaskState, Tool,
};
use provost_jail::{Stream, plain_text};
use provost_workspace::git_objects::Objects;
use provost_workspace::git_refs::Person;

/// Longer than any check may run or wait for a place; the end of its task is what counts.
const FOR_LONG: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Why a branch is not merged.
#[derive(Debug)]
pub(super) struct Aside {
    /// The cause in a word.
    cause: &'static str,
    /// The reason, in sentences.
    why: String,
    /// Whether the owner of the branch is the one to act.
    is_owners: bool,
}

impl Aside {
    fn of_person(cause: &'static str, why: impl Into<String>) -> Self {
        Self { cause, why: why.into(), is_owners: false }
    }

    fn of_owner(cause: &'static str, why: impl Into<String>) -> Self {
        Self { cause, why: why.into(), is_owners: true }
    }
}

/// How one try has ended.
enum Try {
    Moved {
        /// The commit at which the trunk was; `None` where it had the branch already.
        from: Option<String>,
        /// The commit at which it is.
        to: String,
        /// How the work trees have followed.
        followed: Followed,
    },
    /// The trunk was moved by another process.
    Again,
}

/// Why one try has come to nothing.
enum Stop {
    Aside(Aside),
    /// The core or git does not answer; then the entry stays as it is.
    Broken(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Broken(refusal)
    }
}

impl From<MergeError> for Stop {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Refused(refusal) => Self::Broken(refusal),
            MergeError::Unknown(why) => {
                Self::Aside(Aside::of_person("settings", MergeError::Unknown(why).to_string()))
            }
            error => Self::Aside(Aside::of_person("git", error.to_string())),
        }
    }
}

/// A merge that is ready to be checked.
struct Ready {
    looked: Looked,
    /// The commit at which the trunk was.
    trunk: String,
    /// The commit to which it would go.
    commit: String,
    user: Person,
}

impl Provost {
    /// Carries out a run of the queue that is owed.
    ///
    /// # Errors
    /// A [`Refusal`]; then the run is still owed.
    pub async fn carry_out_merges(&self, numbers: Vec<Fence>, asker: Principal) -> Result<(), Refusal> {
        let turn = self.0.merging.acquire().await;
        let _turn = turn.map_err(|_| Refusal::Unavailable { why: "it is shutting down".into() })?;
        for number in numbers {
            let entry = self.merges().await?.into_iter().find(|it| it.number == number);
            // One that was removed, or is over, is not begun again.
            let Some(entry) = entry.filter(|it| !it.state.is_over()) else { continue };
            self.merge_one(&entry, &asker).await?;
        }
        Ok(())
    }

    async fn merge_one(&self, entry: &Arc<MergeEntry>, asker: &Principal) -> Result<(), Refusal> {
        if let MergeState::Moving { from, to, .. } = &entry.state {
            let way = Way { branch: &entry.into, from, to };
            match self.settle_trunk(&way).await {
                Ok(Some(followed)) => {
                    self.follow_moves_of(from, to).await?;
                    return self.merged(entry, Some(from), (to, &followed)).await;
                }
                Ok(None) => {}
                Err(error) => return self.set_aside(entry, None, unsettled(&error)).await,
            }
        }
        for _ in 0..MERGE_TRIES_MAX {
            self.step(entry, "merging").await?;
            let mut owner = None;
            match self.try_once(entry, asker, &mut owner).await {
                Ok(Try::Moved { from, to, followed }) => {
                    return self.merged(entry, from.as_deref(), (&to, &followed)).await;
                }
                Ok(Try::Again) => {}
                Err(Stop::Aside(aside)) => return self.set_aside(entry, owner.as_ref(), aside).await,
                Err(Stop::Broken(refusal)) => return Err(refusal),
            }
        }
        let why = format!(
            "{} was moved by others {MERGE_TRIES_MAX} times while the branch was being checked; add it to the queue again",
            entry.into
        );
        self.set_aside(entry, None, Aside::of_person("trunk_moves", why)).await
    }

    /// Says where an entry stands.
    async fn move_entry(&self, number: Fence, to: MergeState) -> Result<(), Refusal> {
        self.submit(self.system(), MoveMerge { number, to }).await.map(drop)
    }

    async fn step(&self, entry: &MergeEntry, step: &str) -> Result<(), Refusal> {
        self.move_entry(entry.number, MergeState::Working { step: step.into() }).await
    }

    /// Puts on record that a branch is in the trunk. What runs have committed there is on record first, so that
    /// a start that finds the entry unfinished says it again.
    async fn merged(
        &self,
        entry: &MergeEntry,
        from: Option<&str>,
        (to, followed): (&str, &Followed),
    ) -> Result<(), Refusal> {
        self.note_merged(entry, from).await?;
        let note = followed.note();
        let at = self.engine().now();
        self.move_entry(entry.number, MergeState::Merged { to: to.into(), at, note: note.into() }).await
    }

    async fn set_aside(
        &self,
        entry: &MergeEntry,
        owner: Option<&Owner>,
        aside: Aside,
    ) -> Result<(), Refusal> {
        let owner = owner.filter(|_| aside.is_owners);
        let head = format!("Branch {} is not merged into {}: ", entry.branch, entry.into);
        let end = owner.map(|it| format!("\n{}", it.why_told(&entry.branch))).unwrap_or_default();
        let why = format!("{head}{}{end}", aside.why).into();
        let at = self.engine().now();
        let told = owner.filter(|it| it.is_known && !it.is_away).map(|it| it.agent.clone());
        let state = MergeState::SetAside { cause: aside.cause.into(), why, told, at };
        self.move_entry(entry.number, state).await
    }

    async fn try_once(
        &self,
        entry: &Arc<MergeEntry>,
        asker: &Principal,
        owner: &mut Option<Owner>,
    ) -> Result<Try, Stop> {
        let ready = self.made_ready(entry, owner).await?;
        let ready = match ready {
            Ok(ready) => ready,
            Err(trunk) => {
                return Ok(Try::Moved { from: None, to: trunk, followed: Followed::default() });
            }
        };
        let gathered = self.gathered(Arc::new(ready.looked.changes.clone())).await?;
        let mut conflicts = ready.looked.conflicts.clone();
        conflicts.extend(gathered.contracts);
        let passes = entry.passes;
        conflicts.retain(|it| it.kind == ConflictKind::Text || !passes.symbols);
        if !conflicts.is_empty() {
            let rebase = self.rebase_of(entry).await;
            return Err(Stop::Aside(conflicting(entry, &ready.trunk, &conflicts, &rebase)));
        }
        if !gathered.held.is_empty() && !passes.held {
            let why = format!(
                "agents hold what it touches: {}. Wait until they have given it back, or, as a person, merge with --with-held.",
                gathered.held.join("; ")
            );
            return Err(Stop::Aside(Aside::of_owner("held", why)));
        }
        let settings = self.settings_among(vec![ready.looked.changes.clone()]).await?.concat();
        if !settings.is_empty() && !passes.settings {
            let why = format!(
                "it changes files that run later, that the configuration protects, or that tell agents what to do: {}. Look at them, and merge with --with-settings.",
                settings.join(", ")
            );
            return Err(Stop::Aside(Aside::of_person("settings", why)));
        }
        if self.work_trees().is_held(&entry.into) {
            let why = run_works_on(&entry.into).to_string();
            return Err(Stop::Aside(Aside::of_person("in_the_way", why)));
        }
        if !passes.unchecked {
            self.check(entry, (&ready.trunk, &ready.commit), asker).await?;
        }
        let way = Way { branch: &entry.into, from: &ready.trunk, to: &ready.commit };
        self.step(entry, "moving the trunk").await?;
        match self.move_trunk(entry, &way, &ready.user).await {
            Ok(Moved::Yes(followed)) => {
                self.follow_moves(gathered.moves).await?;
                Ok(Try::Moved { from: Some(ready.trunk), to: ready.commit, followed })
            }
            Ok(Moved::No) => Ok(Try::Again),
            Err(MergeError::Refused(refusal)) => Err(refusal.into()),
            Err(error) => Err(Stop::Aside(Aside::of_person("in_the_way", error.to_string()))),
        }
    }

    /// Merges it among the objects. `Err` in the answer is the commit of a trunk that has it already.
    async fn made_ready(
        &self,
        entry: &Arc<MergeEntry>,
        owner: &mut Option<Owner>,
    ) -> Result<Result<Ready, String>, Stop> {
        let (cache, of) = (self.index().cache().clone(), entry.clone());
        let looked = self.with_objects(move |objects| looked_at(objects, &of, &cache)).await?;
        let (trunk, user, looked) = looked.map_err(Stop::Aside)?;
        if looked.is_merged {
            return Ok(Err(trunk));
        }
        *owner = self.owner_of(&looked.branch, &looked.makers).await?;
        let (of, at, by) = (entry.clone(), trunk.clone(), user.clone());
        let makers = looked.makers.clone();
        let (tree, is_ahead) = (looked.tree.clone(), looked.is_ahead);
        let commit = self
            .with_objects(move |objects| match tree {
                Some(tree) if !is_ahead => {
                    let message = message(&of, &makers, &by);
                    Ok(objects.commit(&tree, &[&at, &of.commit], (&by, &message))?)
                }
                _ => Ok(of.commit.to_string()),
            })
            .await?;
        Ok(Ok(Ready { looked, trunk, commit, user }))
    }

    /// Runs the configured checks on a commit, each as a task of the user who has begun the run.
    async fn check(
        &self,
        entry: &MergeEntry,
        (trunk, commit): (&str, &str),
        asker: &Principal,
    ) -> Result<(), Stop> {
        let settings = self.merge_settings();
        for (at, check) in settings.checks.iter().enumerate() {
            let step = format!("check {} of {}: {check}", at + 1, settings.checks.len());
            self.step(entry, &step).await?;
            let (task, approval) = self.begin_check(entry, commit, check, asker).await?;
            if let Some(approval) = approval {
                self.wait_for_approval(entry, (&step, &task, approval)).await?;
            }
            let done = loop {
                let now = self.task_after(&task, |it| !it.state.is_finished(), FOR_LONG).await?;
                if now.state.is_finished() {
                    break now;
                }
            };
            if !matches!(done.state, TaskState::Finished { status: Status::Completed, .. }) {
                let rebase = self.rebase_of(entry).await;
                return Err(Stop::Aside(self.failed_check((entry, trunk, &rebase), check, &done)));
            }
        }
        Ok(())
    }

    /// The command that rebases a branch on the trunk: in the work tree that has it, where there is one.
    async fn rebase_of(&self, entry: &MergeEntry) -> String {
        let branch = entry.branch.to_string();
        let folder = self.with_objects(move |objects| {
            let trees = objects.repository().work_trees()?;
            Ok(trees.into_iter().find(|it| it.branch.as_deref() == Some(branch.as_str())).map(|it| it.top))
        });
        let (into, branch) = (shell_word(&entry.into), shell_word(&entry.branch));
        match folder.await.ok().flatten() {
            Some(top) => format!("git -C {} rebase {into}", shell_word(&top.to_string_lossy())),
            None => format!("git rebase {into} {branch}"),
        }
    }

    /// A person has to answer before the check begins: the entry says which command does that.
    async fn wait_for_approval(
        &self,
        entry: &MergeEntry,
        (step, task, approval): (&str, &TaskId, ApprovalId),
    ) -> Result<(), Refusal> {
        let waits = |it: &Task| matches!(it.state, TaskState::Awaiting { .. });
        self.step(entry, &format!("{step}; it waits for approval {approval}: provost approve {approval}"))
            .await?;
        while waits(&*self.task_after(task, waits, FOR_LONG).await?) {}
        self.step(entry, step).await
    }

    /// Why a check that has not passed sets the branch aside. Of the owner is only what its command has said itself.
    fn failed_check(
        &self,
        (entry, trunk, rebase): (&MergeEntry, &str, &str),
        check: &str,
        done: &Task,
    ) -> Aside {
        let (show, said) = (task_command("task show", done.id().as_str(), ""), self.last_words(done));
        let again = format!(
            "`{show}` says more; add the branch again: `provost merge queue add {}`",
            shell_word(&entry.branch)
        );
        match &done.failure {
            Some(failure) if failure.is_denial() => Aside::of_person(
                "check_denied",
                format!("the check {check:?} was not let run: {said}\n{again}."),
            ),
            Some(Failure::WorkerFailed { .. } | Failure::RunTimeout { .. }) => {
                let why = format!(
                    "the check {check:?} fails on the merged tree with {} at {trunk}: {said}\nRebase it with `{rebase}`, run the \
                     check, and mend it. `{show}` has its output.",
                    entry.into
                );
                Aside::of_owner("check", why)
            }
            _ => Aside::of_person(
                "check",
                format!("the check {check:?} has not run to its end: {said}\n{again}."),
            ),
        }
    }

    async fn begin_check(
        &self,
        entry: &MergeEntry,
        commit: &str,
        check: &str,
        asker: &Principal,
    ) -> Result<(TaskId, Option<ApprovalId>), Stop> {
        let settings = self.merge_settings();
        let named = AgentId::parse(check).ok().filter(|it| self.profiles().contains_key(it));
        let goal = match &named {
            Some(_) => format!("check the merge of {} into {}", entry.branch, entry.into),
            None => check.to_owned(),
        };
        let worker = named.unwrap_or_else(shell);
        let id = format!("merge-{}-{}", entry.number, uuid::Uuid::new_v4().simple());
        let not_ok = |why: String| Stop::Aside(Aside::of_person("check", why));
        let task = TaskId::parse(&id).map_err(|err| not_ok(format!("its check has no id: it {err}")))?;
        let context = JobContext {
            job: id.as_str().into(),
            method: "merge".into(),
            phase: "check".into(),
            schema: None,
            harvest: false,
            copy: None,
            command: None,
            commit: Some(commit.into()),
        };
        let verb = Delegate {
            tool: Tool { name: "devit_delegate".into(), ..Tool::default() },
            errand: Some(Box::new(context)),
            ..Delegate::of(task.clone(), goal.into(), worker.clone(), settings.check_timeout)
        };
        match self.delegate(asker, verb).await {
            Ok(Answer::Done(Delegated { task, .. })) => Ok((task, None)),
            Ok(Answer::Parked(approval)) => Ok((task, Some(approval))),
            Ok(Answer::Denied(denial)) => {
                let why = format!("its check was denied by rule {}: {}", denial.rule, denial.reason);
                Err(Stop::Aside(Aside::of_person("check_denied", why)))
            }
            Err(refusal @ (Refusal::Busy { .. } | Refusal::Unavailable { .. })) => Err(refusal.into()),
            Err(refusal) => Err(not_ok(format!("its check by {worker} does not begin: {refusal}"))),
        }
    }

    /// How a check has ended, and the end of what it has said.
    fn last_words(&self, task: &Task) -> String {
        let summary = task.notes.last().map(|it| it.report.summary.to_string()).unwrap_or_default();
        let live = self.outputs().get(task.id());
        let text = |stream| live.as_ref().map(|it| plain_text(&it.text(stream))).unwrap_or_default();
        let said = [text(Stream::Out), text(Stream::Err)].map(|it| it.trim().to_owned()).join("\n");
        let end = said.ceil_char_boundary(said.len().saturating_sub(MERGE_CHECK_TOLD_BYTES_MAX));
        [summary.trim(), said[end..].trim()].join("\n").trim().to_owned()
    }
}

fn shell() -> AgentId {
    AgentId::parse("shell").expect("a constant that is a valid id")
}

fn unsettled(error: &MergeError) -> Aside {
    Aside::of_person("unsettled", format!("the trunk was being moved when the daemon ended, and {error}"))
}

/// Looks at one entry with the trunk as it is now.
fn looked_at(
    objects: &Objects,
    entry: &MergeEntry,
    cache: &provost_syntax::Cache,
) -> Result<Result<(String, Person, Looked), Aside>, MergeError> {
    let repository = objects.repository();
    let Some(user) = repository.user()? else {
        let why =
            "git does not know who you are; set user.name and user.email: git config --global user.name NAME";
        return Ok(Err(Aside::of_person("no_user", why)));
    };
    let word = shell_word(&entry.branch);
    let again = format!("look at it, and add it again: `provost merge queue add {word}`");
    match repository.commit_of(&entry.branch) {
        Ok(now) if *now == *entry.commit => {}
        Ok(now) => {
            let why = format!("it was at {} when it was added, and is at {now} now; {again}", entry.commit);
            return Ok(Err(Aside::of_person("branch_moved", why)));
        }
        Err(error) => return Ok(Err(Aside::of_person("branch_gone", error.to_string()))),
    }
    let trunk = match repository.branch_name(&entry.into) {
        Ok(name) if *name != *entry.into => {
            let why = format!("{} is another name of {name} by now (git symbolic-ref); {again}", entry.into);
            return Ok(Err(Aside::of_person("no_trunk", why)));
        }
        Ok(_) => repository.commit_of(&entry.into),
        Err(error) => Err(error),
    };
    let trunk = match trunk {
        Ok(trunk) => trunk,
        Err(error) => return Ok(Err(Aside::of_person("no_trunk", error.to_string()))),
    };
    if repository.is_shallow() && objects.base_of(&trunk, &entry.commit)?.is_none() {
        return Ok(Err(Aside::of_person("shallow", cut_off(&entry.branch, &entry.into))));
    }
    let (mut study, mut sides) = (Study::new(objects, cache), BTreeMap::new());
    let names = (&*entry.into, trunk.as_str());
    let looked = look(&mut study, objects, names, (&entry.branch, &entry.commit), &mut sides)?;
    Ok(Ok((trunk, user, looked)))
}

/// What the owner of a branch reads of its conflicts.
fn conflicting(entry: &MergeEntry, trunk: &str, conflicts: &[MergeConflict], rebase: &str) -> Aside {
    let mut text = String::new();
    for it in conflicts {
        let file = if it.file.is_empty() { String::new() } else { format!(" {}", it.file) };
        text.push_str(&format!("\n- {}{file}: {}", it.kind.as_str(), it.text));
    }
    let kind = conflicts.iter().map(|it| it.kind).max().unwrap_or(ConflictKind::Text);
    let cause = if conflicts.iter().any(|it| it.kind == ConflictKind::Text) { "text" } else { kind.as_str() };
    let next = match cause {
        "contract" => "keep the signature, or agree on another one with the other party",
        _ => "settle each of these",
    };
    let why = format!(
        "it conflicts with {} at {trunk}:{text}\nRebase it with `{rebase}`, {next}, and add it again: \
         `provost merge queue add {}`.",
        entry.into,
        shell_word(&entry.branch)
    );
    Aside::of_owner(cause, why)
}

/// The message of a merge, with those who have made what is merged.
fn message(entry: &MergeEntry, makers: &super::owner::Makers, user: &Person) -> String {
    let mut text = format!("Merge branch '{}' into {}\n\n", entry.branch, entry.into);
    let own = format!("{} <{}>", user.name, user.email);
    let authors = makers.authors.iter().filter(|it| **it != own).take(20);
    authors.for_each(|it| text.push_str(&format!("Co-authored-by: {it}\n")));
    makers.agents.iter().take(20).for_each(|it| text.push_str(&format!("Provost-Agent: {it}\n")));
    makers.tasks.iter().take(20).for_each(|it| text.push_str(&format!("Provost-Task: {it}\n")));
    text.push_str(&format!("Provost-Merge: {}\n", entry.number));
    text
}
