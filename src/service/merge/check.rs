//! The checks of a merge: each is a task of the user's in the jail, on the merged commit. If a rule wants a
//! person's approval for one, the entry waits for the answer.

use super::super::Provost;
use super::run::{Aside, FOR_LONG, Stop};
use provost_base::limits::MERGE_CHECK_TOLD_BYTES_MAX;
use provost_base::{AgentId, ApprovalId, Fence, TaskId, shell_word, task_command};
use provost_domain::command::{CancelTask, Delegated, Status};
use provost_domain::{
    Answer, Delegate, Failure, JobContext, MergeEntry, Principal, Refusal, Task, TaskState, Tool,
};
use provost_jail::{Stream, plain_text};

/// A check that waits for a person's approval.
#[derive(Debug)]
pub(super) struct AskedCheck {
    pub(super) number: Fence,
    pub(super) into: Box<str>,
    check: Box<str>,
    /// The check's place in the list of checks.
    at: usize,
    pub(super) task: TaskId,
    /// The commit of the trunk that the merged commit has as a parent.
    pub(super) trunk: String,
    /// The merged commit.
    pub(super) commit: String,
}

/// Returns whether a task waits for an approval.
pub(super) fn waits(task: &Task) -> bool {
    matches!(task.state, TaskState::Awaiting { .. })
}

impl Provost {
    /// Runs the configured checks on a commit, each as a task of the user who has begun the run. `asked` is the
    /// approved check with which the run continues.
    pub(super) async fn check(
        &self,
        entry: &MergeEntry,
        (trunk, commit): (&str, &str),
        asker: &Principal,
        (mut asked, waiting): (Option<AskedCheck>, &[AskedCheck]),
    ) -> Result<(), Stop> {
        let settings = self.merge_settings();
        let first = asked.as_ref().map_or(0, |it| it.at);
        for (at, check) in settings.checks.iter().enumerate().skip(first) {
            let step = format!("check {} of {}: {check}", at + 1, settings.checks.len());
            let is_asked = |it: &&AskedCheck| *it.into == *entry.into && *it.check == **check;
            let before = waiting.iter().find(is_asked).filter(|_| asked.is_none() && self.is_line(check));
            if let Some(before) = before {
                let step = format!("{step}; it waits behind entry {}, for its approval", before.number);
                self.step(entry, &step).await?;
                return Err(Stop::Behind);
            }
            self.step(entry, &step).await?;
            let task = match asked.take() {
                Some(asked) => asked.task,
                None => {
                    let (task, approval) = self.begin_check(entry, commit, check, asker).await?;
                    if let Some(approval) = approval {
                        let place = (at, trunk, commit);
                        return Err(self.asks(entry, (&step, check, approval), place, task).await?);
                    }
                    task
                }
            };
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

    /// Reports in the entry that a person must approve the check before it begins, with the command for that.
    async fn asks(
        &self,
        entry: &MergeEntry,
        (step, check, approval): (&str, &str, ApprovalId),
        (at, trunk, commit): (usize, &str, &str),
        task: TaskId,
    ) -> Result<Stop, Refusal> {
        self.step(entry, &format!("{step}; it waits for approval {approval}: provost approve {approval}"))
            .await?;
        Ok(Stop::Asked(Box::new(AskedCheck {
            number: entry.number,
            into: entry.into.clone(),
            check: check.into(),
            at,
            task,
            trunk: trunk.into(),
            commit: commit.into(),
        })))
    }

    /// Withdraws a check that waits for approval and is no longer needed.
    pub(super) async fn withdraw(&self, asked: Option<AskedCheck>) {
        let Some(AskedCheck { task, .. }) = asked else { return };
        let reason = "the trunk has moved since: it is asked again about what would be merged now".into();
        if let Err(why) = self.submit(self.system(), CancelTask { task, reason }).await {
            tracing::debug!(%why, "a check of a merge was over already");
        }
    }

    /// Returns whether a check is a command line, which is the same for each branch.
    fn is_line(&self, check: &str) -> bool {
        !AgentId::parse(check).is_ok_and(|it| self.profiles().contains_key(&it))
    }

    /// Returns why a failed check sets the branch aside. The branch's owner is told only the output of the check's command.
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
            Err(refusal @ (Refusal::Busy { .. } | Refusal::Unavailable { .. } | Refusal::Stopping)) => {
                Err(refusal.into())
            }
            Err(refusal) => Err(not_ok(format!("its check by {worker} does not begin: {refusal}"))),
        }
    }

    /// Returns how a check has ended, with the end of its output.
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
