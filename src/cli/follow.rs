//! Follows a task to its end: its worker's output, its state, and its exit code.
//!
//! ```text
//!   awaiting, waiting, queued, assigned --> wait for a change of the task
//!   running                             --> wait for output
//!   finished                            --> the output that is left, and the end
//! ```

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use super::cli_error::{DONE, FAILED, INTERRUPTED, SIGNALLED, TIMED_OUT};
use super::{CliError, changes, out, tasks, up};
use provost_api::wire;
use provost_base::{task_command, visible_name};
use provost_client::{Client, ClientError};
use provost_jail::{Reader, Stream, Transcript};

/// The time that one request waits for news, in milliseconds; short enough to show that time passes.
const WAIT_MS: u64 = 10_000;

/// The time that the end of a cancelled task's run is waited for.
const LATE_MAX: Duration = Duration::from_secs(10);
const LATE_PAUSE: Duration = Duration::from_millis(200);

/// A running worker without output is one that connects by itself, or one that is just being started: this is the
/// first pause before the next request, and the longest.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 200..=5_000;

/// A task's follower and its options.
pub(super) struct Follow {
    pub(super) client: Client,
    /// Whether the output is shown unchanged.
    pub(super) raw: bool,
    /// Whether only the task is printed, at its end.
    pub(super) json: bool,
}

/// Longest end of a worker's standard error that is shown when its run fails, in bytes.
const ERRORS_BYTES_MAX: usize = 2_000;

/// The reader of a worker that writes messages; `None` for one that writes text.
type Messages = Option<Transcript>;

/// The part of a task that was shown already.
#[derive(Clone)]
struct Seen {
    task: String,
    state: String,
    /// Whether the task was seen at work.
    ran: bool,
    updated_at: Option<String>,
    output: u64,
    pause_ms: u64,
    /// The end of the standard error of a worker that writes messages, which is shown only if its run fails.
    errors: String,
    /// The attempt whose output is shown; the positions of the next attempt's output begin at zero.
    attempt: u32,
    /// Whether a note was printed that the task's host does not pass its output on.
    silence_told: bool,
    /// Whether the output on this terminal ends within a line, which must end before the next note.
    within_line: bool,
}

impl Seen {
    /// Records that text was shown.
    fn shown(&mut self, text: &str, is_beside_ours: bool) {
        if !text.is_empty() {
            self.within_line = is_beside_ours && !text.ends_with('\n');
        }
    }

    /// Ends a line that the worker has begun, before a note is printed.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.within_line) {
            out::note("");
        }
    }
}

impl Follow {
    /// Watches until the task has ended, and returns the exit code to end with. Ctrl-C leaves the task alone.
    ///
    /// `approval` is the one that the task waited for when it was accepted. The caller is told of it even if it is
    /// granted before the first look at the task.
    pub(super) async fn to_the_end(&self, task: &str, approval: Option<u64>) -> Result<u8, CliError> {
        tokio::select! {
            done = self.watch(task, approval) => done,
            _interrupted = tokio::signal::ctrl_c() => {
                let [watch, stop] = [("task show", "--wait"), ("task cancel", "")].map(|(it, flags)| task_command(it, task, flags));
                let task = visible_name(task, 400);
                out::note(format!("\ntask {task} goes on\n  watch it: {watch}\n  stop it:  {stop}"));
                Ok(INTERRUPTED)
            }
        }
    }

    async fn watch(&self, task: &str, approval: Option<u64>) -> Result<u8, CliError> {
        let mut seen = Seen {
            task: task.to_owned(),
            state: String::new(),
            ran: false,
            updated_at: None,
            output: 0,
            pause_ms: *PAUSE_MS.start(),
            errors: String::new(),
            attempt: 1,
            silence_told: false,
            within_line: false,
        };
        if let Some(approval) = approval {
            seen.state = "awaiting".into();
            out::note(waiting_for(&self.client, approval).await);
        }
        let mut task = self.ask(&seen, 0).await?;
        let mut messages = self.messages_of(&task.worker).await;
        loop {
            if seen.attempt != task.attempt.unwrap_or(1) {
                // The remaining output of the earlier attempt is shown first.
                while !self.output(&mut seen, &mut messages, 0).await?.chunks.is_empty() {}
                (seen.attempt, seen.output) = (task.attempt.unwrap_or(1), 0);
            }
            self.status(&mut seen, &task).await;
            match task.state.as_str() {
                "completed" | "failed" | "cancelled" => break,
                "running" => {
                    let page = self.output(&mut seen, &mut messages, WAIT_MS).await?;
                    let wait_ms = if page.done { seen.pause_ms } else { 0 };
                    seen.pause_ms =
                        if page.done { wait_ms * 2 } else { 0 }.clamp(*PAUSE_MS.start(), *PAUSE_MS.end());
                    task = self.ask(&seen, wait_ms).await?;
                }
                _ => task = self.waited(&seen).await?,
            }
        }
        while !self.output(&mut seen, &mut messages, 0).await?.chunks.is_empty() {}
        if let Some(messages) = &mut messages {
            messages.finish();
            tell(messages)?;
        }
        seen.end_line();
        let until = tokio::time::Instant::now() + LATE_MAX;
        // The task's changes are known only when its run has ended.
        while seen.ran && task.may_still_run() && tokio::time::Instant::now() < until {
            tokio::time::sleep(LATE_PAUSE).await;
            task = self.ask(&Seen { updated_at: None, ..seen.clone() }, 0).await?;
        }
        if !self.json && !seen.ran && seen.output == 0 && may_have_written(&task) {
            out::note(
                "no output of it is there: it has written none, or it is gone; the daemon keeps the newest 32 MiB of ended runs, \
                 and only until it ends itself",
            );
        }
        if task.state != "completed" && !seen.errors.trim().is_empty() {
            out::note("the end of its standard error (all of it: --raw):");
            out::note(out::plain(seen.errors.trim_end()));
        }
        self.end(&task)
    }

    async fn ask(&self, seen: &Seen, wait_ms: u64) -> Result<wire::Task, ClientError> {
        let query =
            wire::TaskQuery { id: seen.task.clone(), seen: seen.updated_at.clone(), wait_ms: Some(wait_ms) };
        self.client.task(&query).await
    }

    /// Waits for a task that no worker works on yet.
    async fn waited(&self, seen: &Seen) -> Result<wire::Task, ClientError> {
        let mut progress = out::Progress::begin(seen.state.clone());
        let question = self.ask(seen, WAIT_MS);
        tokio::pin!(question);
        loop {
            tokio::select! {
                answer = &mut question => return answer,
                () = tokio::time::sleep(Duration::from_millis(250)) => progress.tick(),
            }
        }
    }

    /// Returns a reader of the worker's messages, if the person wants them as words.
    async fn messages_of(&self, worker: &str) -> Messages {
        if self.raw || self.json {
            return None;
        }
        // The output of an unknown worker is shown unchanged.
        let workers = self.client.about().await.ok()?.workers;
        let form = workers.into_iter().find(|it| it.id == worker)?.stream?;
        Reader::named(&form).map(Transcript::new)
    }

    async fn output(
        &self,
        seen: &mut Seen,
        messages: &mut Messages,
        wait_ms: u64,
    ) -> Result<wire::Output, CliError> {
        let query = wire::OutputQuery {
            id: seen.task.clone(),
            from: seen.output,
            wait_ms: Some(wait_ms),
            limit: None,
            // This program turns messages into words, unless the person wants them unchanged.
            in_words: false,
        };
        let page = self.client.output(&query).await?;
        seen.output = page.next;
        if let Some(note) = page.note.as_ref().filter(|_| !seen.silence_told) {
            seen.silence_told = true;
            seen.end_line();
            out::note(out::one_line(&format!("task {}: {note}", seen.task), 400));
        }
        if !self.json {
            page.chunks.iter().try_for_each(|chunk| self.show(chunk, messages, seen))?;
        }
        Ok(page)
    }

    fn show(&self, chunk: &wire::Chunk, messages: &mut Messages, seen: &mut Seen) -> Result<(), CliError> {
        if messages.is_some() && chunk.stream == "stderr" {
            keep_end(&mut seen.errors, &chunk.text);
            return Ok(());
        }
        if let Some(messages) = messages.as_mut().filter(|_| chunk.stream != "stderr") {
            messages.push(Stream::Out, chunk.text.as_bytes());
            return tell(messages);
        }
        let text = if self.raw { chunk.text.clone() } else { out::plain(&chunk.text) };
        if chunk.stream == "stderr" {
            seen.shown(&text, true);
            let _unheard = std::io::stderr().lock().write_all(text.as_bytes());
            return Ok(());
        }
        // A program that reads standard output gets no line end that the worker has not written.
        seen.shown(&text, std::io::stdout().is_terminal());
        out::text_as_is(&text)
    }

    /// Prints one line on standard error whenever the state changes.
    async fn status(&self, seen: &mut Seen, task: &wire::Task) {
        if seen.updated_at.as_deref() != Some(&task.updated_at) {
            seen.updated_at = Some(task.updated_at.clone());
        }
        if seen.state == task.state {
            return;
        }
        seen.state.clone_from(&task.state);
        seen.ran |= task.state == "running";
        seen.end_line();
        match (task.state.as_str(), task.approval) {
            ("awaiting", Some(approval)) => out::note(waiting_for(&self.client, approval).await),
            ("queued", _) if !up::is_watched() => {}
            ("retrying", _) => {
                let again = task.again_at.as_deref().map(tasks::short_time).unwrap_or_default();
                let attempt = seen.attempt;
                let text = format!("task {}: attempt {attempt} begins at {again}", seen.task);
                out::note(out::one_line(&text, 400));
            }
            ("waiting", _) => {
                let waits = task.waits_in_words().unwrap_or_else(|| "waits for other tasks".into());
                out::note(out::one_line(&format!("task {}: {waits}", seen.task), 400));
            }
            (state, _) if task.failure.is_some() => {
                let failure = tasks::failure_in_words(task).unwrap_or_default();
                out::note(format!("task {}: {state}. {failure}", out::one_line(&seen.task, 400)));
            }
            (state, _) => out::note(out::one_line(&format!("task {}: {state}", seen.task), 400)),
        }
    }

    fn end(&self, task: &wire::Task) -> Result<u8, CliError> {
        if task.tainted == Some(true) {
            out::note(format!(
                "tainted: it has left files that run later; look before you run anything: {}",
                task_command("task show", &task.id, "")
            ));
        }
        if self.json {
            out::json(task)?;
            return Ok(exit_code(task));
        }
        let changes = changes::of_task(task);
        if !changes.is_empty() {
            out::note(changes.trim_end());
        }
        // A worker that connects by itself has said everything in its report; so has a worker that speaks MCP, and
        // the daemon where it takes pictures.
        let kind = |note: &wire::Note| note.metadata.as_ref().is_some_and(|it| it["worker_type"] == "mcp");
        let spoken_to = task.notes.last().is_some_and(kind);
        if (task.worker_kind == "polling" || task.capture || spoken_to)
            && let Some(note) = task.notes.last().filter(|note| !note.summary.is_empty())
        {
            out::line(out::plain(&note.summary))?;
        }
        Ok(exit_code(task))
    }
}

/// Checks whether a task had a run, some time ago, whose output could have been read.
fn may_have_written(task: &wire::Task) -> bool {
    let lately = chrono::Utc::now() - chrono::TimeDelta::seconds(5);
    let is_long_over = chrono::DateTime::parse_from_rfc3339(&task.updated_at).is_ok_and(|at| at < lately);
    let has_run = task.state == "completed" || task.exit_code.is_some();
    task.worker_kind == "cli" && !task.capture && has_run && is_long_over
}

/// Appends to a text, and keeps only its end.
fn keep_end(errors: &mut String, text: &str) {
    errors.push_str(text);
    let from = errors.ceil_char_boundary(errors.len().saturating_sub(ERRORS_BYTES_MAX));
    errors.drain(..from);
}

/// Prints the new words of the messages.
fn tell(messages: &mut Transcript) -> Result<(), CliError> {
    messages.take_log().iter().try_for_each(out::line)
}

/// Returns the worker's exit code where one exists; a task that did not succeed never ends with zero. A run that ran
/// out of time, and one that a signal has ended, have the codes that `timeout` and shells use for them.
fn exit_code(task: &wire::Task) -> u8 {
    let failed = |kind: &str| task.failure.as_ref().and_then(|it| it.get(kind));
    if failed("run_timeout").is_some() {
        return TIMED_OUT;
    }
    let why = failed("worker_failed").and_then(|it| it.get("why")?.as_str());
    let signal = why.and_then(|it| it.strip_prefix("terminated by signal ")?.parse::<u8>().ok());
    if let Some(signal) = signal {
        return SIGNALLED.saturating_add(signal);
    }
    let least = if task.state == "completed" { DONE } else { FAILED };
    match tasks::exit_code(task) {
        None | Some(0) => least,
        Some(code) => u8::try_from(code.rem_euclid(256)).ok().filter(|code| *code != 0).unwrap_or(FAILED),
    }
}

/// Says how to answer the approval that a task waits for.
pub(super) async fn waiting_for(client: &Client, approval: u64) -> String {
    let known = client.approvals().await.unwrap_or_default();
    let waits = known.iter().find(|it| it.id == approval);
    let until = waits.map(|it| format!(", until {}", tasks::short_time(&it.expires_at))).unwrap_or_default();
    match waits.and_then(|it| provost_view::no_terminal(&it.by)) {
        None => {
            format!("waiting for approval {approval}: provost approve {approval}, in another terminal{until}")
        }
        Some(why) => format!("waiting for approval {approval}: {why}"),
    }
}
