//! The steps around an agent's run: fix commands, checks and review. A6s 6.2, optimize and review.
//!
//! Commands run in the job's private copy, in the agent's jail, without network and secrets. The artifacts are the
//! state after the last fix command; changes of checks and reviewers are discarded.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::phases::{RunContext, in_phase};
use super::runner::{JobRunner, Stop};
use super::runs::{Ran, RunRequest};
use crate::ChecksConfig;
use crate::prompts::fenced;
use provost_base::JobId;
use provost_base::limits::CHECK_TOLD_BYTES_MAX;
use provost_domain::{Artifact, Failure, JobResult, PhaseName};

/// A command line, split into words.
type Command = [Box<str>];

impl JobRunner {
    /// Returns the agent's checks in the present configuration. A worker that is no agent has none.
    pub(super) fn around(&self) -> ChecksConfig {
        let agents = self.service.configured();
        let agent = agents.get(&self.job.worker).filter(|_| self.order.by_agent);
        agent.map(|agent| agent.checks.clone()).unwrap_or_default()
    }

    /// Returns the job whose copy all its runs share; `None` if its only run has a copy of its own.
    pub(super) fn copy(&self, around: &ChecksConfig) -> Option<JobId> {
        let alone =
            around.fix.is_empty() && around.check.is_empty() && around.reviewer.is_none() && !around.pipeline;
        (!alone).then(|| self.job.id.clone())
    }

    /// Runs the fix commands, and returns the last answer.
    pub(super) async fn optimize(
        &self,
        known: &RunContext<'_>,
        around: &ChecksConfig,
        mut answer: String,
        kept: &mut JobResult,
    ) -> Result<String, Stop> {
        const PHASE: PhaseName = PhaseName::Optimize;
        self.begin(PHASE).await?;
        let of = around.fix.len() + usize::from(around.pipeline);
        let mut done = 0;
        if around.pipeline {
            self.set_part(done, of);
            let run = self.run_of(known, around, PHASE, &answer)?;
            let ran = self.run(RunRequest { harvest: true, ..run }).await;
            answer = ran.and_then(|ran| self.keep(ran, kept)).map_err(in_phase(PHASE))?;
            done += 1;
        }
        for command in &around.fix {
            self.set_part(done, of);
            let ran = self.run(self.command(around, PHASE, command, true)).await;
            let ran = ran.and_then(|ran| passed(command, ran)).map_err(in_phase(PHASE))?;
            self.keep_files(ran, kept);
            done += 1;
        }
        self.set_part(0, 1);
        self.finish(PHASE).await?;
        Ok(answer)
    }

    /// Reviews the changes: by the check commands, and by the reviewer.
    pub(super) async fn review(
        &self,
        known: &RunContext<'_>,
        around: &ChecksConfig,
        answer: &str,
        kept: &mut JobResult,
    ) -> Result<(), Stop> {
        const PHASE: PhaseName = PhaseName::Review;
        self.begin(PHASE).await?;
        let reviewed = around.reviewer.is_some() || around.pipeline;
        let of = 1 + around.check.len() + usize::from(reviewed);
        // The changes were collected with the run that made them.
        let changed = changes(&kept.artifacts);
        if kept.artifacts.is_empty() && !answer.trim().is_empty() && self.order.by_agent {
            let name = format!("exec_{}", self.job.id);
            kept.artifacts.push(self.log(&name, answer));
        }
        let mut checks = Checks::default();
        for (number, command) in around.check.iter().enumerate() {
            self.set_part(1 + number, of);
            let ran = self.run(self.command(around, PHASE, command, false)).await?;
            checks.tell(command, ran)?;
        }
        if !around.check.is_empty() {
            kept.artifacts.push(self.log("checks", &checks.told()));
        }
        let mut failed = checks.failed;
        if reviewed {
            self.set_part(of - 1, of);
            let why = self.reviewed(known, around, &[answer, &changed].join("\n\n"), kept).await?;
            // In a pipeline, the reviewer's run is the phase.
            match why {
                Some(why) if around.pipeline => return Err(in_phase(PHASE)(Stop::Failed(why))),
                why => failed = failed.or(why),
            }
        }
        self.set_part(0, 1);
        match failed.filter(|_| around.required) {
            Some(why) => Err(in_phase(PHASE)(Stop::Failed(why))),
            None => self.finish(PHASE).await,
        }
    }

    /// Asks the reviewer about the changes; returns the reason of a failure.
    async fn reviewed(
        &self,
        known: &RunContext<'_>,
        around: &ChecksConfig,
        done: &str,
        kept: &mut JobResult,
    ) -> Result<Option<String>, Stop> {
        let run = self.run_of(known, around, PhaseName::Review, done)?;
        let ran = self.run(run).await?;
        let said = ran.answer.clone();
        let (text, why) = match ran.done() {
            Ok(_) => (said, None),
            Err(Stop::Failed(why)) => (format!("The reviewer failed: {why}\n\n{said}"), Some(why)),
            Err(stop) => return Err(stop),
        };
        kept.artifacts.push(self.log("review", &text));
        Ok(why)
    }

    /// Returns the request to run a command in the place of the job's agent.
    fn command(
        &self,
        around: &ChecksConfig,
        phase: PhaseName,
        command: &Command,
        harvest: bool,
    ) -> RunRequest {
        let (prompt, command) = (line_of(command).into(), Some(command.to_vec()));
        RunRequest { phase, prompt, command, copy: self.copy(around), harvest, ..self.whole_run() }
    }

    /// Returns a text for people as an artifact, which is not written to any file.
    pub(super) fn log(&self, name: &str, text: &str) -> Artifact {
        Artifact {
            id: format!("art_{}_{name}", self.job.id).into(),
            kind: "log".into(),
            path: format!(".provost/{name}.md").into(),
            content: text.into(),
            language: "markdown".into(),
            base_hash: None,
            mode: None,
            base_mode: None,
        }
    }

    /// Sets which part of the phase the next runs are.
    pub(super) fn set_part(&self, done: usize, of: usize) {
        let (done, of) = (u32::try_from(done).unwrap_or(0), u32::try_from(of).unwrap_or(1));
        self.parts.store(u64::from(done) << 32 | u64::from(of.max(1)), Ordering::Relaxed);
    }

    /// Returns the progress of a phase, given that of its present run.
    pub(super) fn of_phase(&self, percent: u8) -> u8 {
        let parts = self.parts.load(Ordering::Relaxed);
        let (done, of) = (parts >> 32, (parts & u64::from(u32::MAX)).max(1));
        u8::try_from((done * 100 + u64::from(percent)) / of).unwrap_or(100)
    }

    /// Reports that so many steps of a phase are done.
    pub(super) fn part(&self, phase: PhaseName, done: u32, of: u32) {
        let percent = u8::try_from(done * 100 / of.max(1)).unwrap_or(100);
        self.service.pulses().tell(&self.job, self.has_phases().then_some(phase), percent);
    }
}

/// The output of checks, and the number that have passed.
#[derive(Default)]
struct Checks {
    text: String,
    passed: usize,
    all: usize,
    /// The first check that failed, and how.
    failed: Option<String>,
}

impl Checks {
    fn tell(&mut self, command: &Command, ran: Ran) -> Result<(), Stop> {
        let said = [ran.answer.trim_end(), ran.last_words.trim_end()].join("\n");
        self.all += 1;
        let how = match passed(command, ran) {
            Ok(_) => {
                self.passed += 1;
                "passed".to_owned()
            }
            Err(Stop::Failed(why)) => {
                let how = why.lines().next().unwrap_or_default().to_owned();
                self.failed.get_or_insert(why);
                how
            }
            Err(stop) => return Err(stop),
        };
        let (command, said) = (line_of(command), said.trim());
        let end = &said[said.ceil_char_boundary(said.len().saturating_sub(CHECK_TOLD_BYTES_MAX))..];
        let _infallible = write!(self.text, "\n## {}\n\n{how}\n", fenced_line(&command));
        if !end.is_empty() {
            let _infallible = write!(self.text, "\n{}\n", fenced(end, "", false));
        }
        Ok(())
    }

    fn told(&self) -> String {
        format!("# Checks\n\n{} of {} passed.\n{}", self.passed, self.all, self.text)
    }
}

/// Checks that a command has succeeded.
fn passed(command: &Command, ran: Ran) -> Result<Ran, Stop> {
    let how = match &ran.task.failure {
        Some(Failure::WorkerFailed { why }) => why.to_string(),
        _ => ran.summary().unwrap_or("it gave no reason").to_owned(),
    };
    let last_words = ran.last_words.clone();
    ran.done().map_err(|stop| match stop {
        Stop::Failed(_) => {
            let why = format!("{} failed: {how}\n{last_words}", fenced_line(&line_of(command)));
            Stop::Failed(why.trim_end().to_owned())
        }
        stop => stop,
    })
}

/// Returns a command as people write it.
fn line_of(command: &Command) -> String {
    let word = |word: &str| {
        let plain = !word.is_empty()
            && word.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&it));
        if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    command.iter().map(|it| word(it)).collect::<Vec<_>>().join(" ")
}

/// Returns a line as code for a heading.
fn fenced_line(line: &str) -> String {
    format!("`{}`", line.replace(|c: char| c.is_control() || c == '`', "?"))
}

/// Lists the changed files, one on each line.
fn changes(artifacts: &[Artifact]) -> String {
    let mut text = String::from("Files that have changed:\n");
    for artifact in artifacts {
        let how = if &*artifact.kind == "delete" { "removed" } else { "written" };
        let _infallible = writeln!(text, "- {} ({how})", artifact.path);
    }
    text
}
