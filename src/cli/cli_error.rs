//! The one kind of error that people see: the failure, its cause, and the next step.

use std::fmt::Display;
use std::io;

use serde_json::{Value, json};

use super::forms::Form;
use super::{out, session};
use provost_client::{ClientError, keys::KeyError};
use provost_config::{Broken, pin::PinError, places::PlacesError};
use provost_store::StoreError;
use provost_vault::VaultError;

/// The command succeeded.
pub(super) const DONE: u8 = 0;
/// The command failed, or its request was denied.
pub(super) const FAILED: u8 = 1;
/// The command line is malformed.
pub(super) const USAGE: u8 = 2;
/// No daemon runs.
pub(super) const NOT_RUNNING: u8 = 3;
/// The daemon, or a safeguard of this program, refuses.
pub(super) const REFUSED: u8 = 4;
/// Another agent holds the lock or the place that would be written.
pub(super) const HELD: u8 = 5;
/// A check was impossible: whether another agent holds a place, or whether a signature still holds.
pub(super) const UNCHECKED: u8 = 6;
/// A branch was set aside, and the others were merged.
pub(super) const RETURNED: u8 = 7;
/// A database has lost acknowledged writes.
pub(super) const WENT_BACK: u8 = 8;
/// A worker ran out of time; `timeout` uses the same code.
pub(super) const TIMED_OUT: u8 = 124;
/// A signal has ended a worker: its number is added to this, as shells do.
pub(super) const SIGNALLED: u8 = 128;
/// Ctrl-C has ended the command, as shells number it.
pub(super) const INTERRUPTED: u8 = 130;
/// The reader of standard output has gone, as shells number it.
pub(super) const PIPE_CLOSED: u8 = 141;

/// An error for a person, with an exit code for programs.
#[derive(Debug)]
pub(super) struct CliError {
    what: String,
    cause: Option<String>,
    next: Option<String>,
    /// Further data for programs.
    data: Option<Value>,
    /// The form that the person typed; an old form has a hint.
    form: Option<&'static Form>,
    code: u8,
    /// Whether a program reads the error.
    json: bool,
}

impl CliError {
    /// Makes an error of a failure.
    pub(super) fn of(what: impl Display) -> Self {
        Self {
            what: what.to_string(),
            cause: None,
            next: None,
            data: None,
            form: None,
            code: FAILED,
            json: false,
        }
    }

    /// Makes an error of a refusal.
    pub(super) fn refusal(what: impl Display) -> Self {
        Self::of(what).with_code(REFUSED)
    }

    /// Makes an error that has only an exit code.
    pub(super) fn silent(code: u8) -> Self {
        Self { code, ..Self::of("") }
    }

    /// Makes an error of a failure to write standard output.
    pub(super) fn writing(err: io::Error) -> Self {
        match err.kind() {
            io::ErrorKind::BrokenPipe => Self::silent(PIPE_CLOSED),
            _ => Self::of("standard output cannot be written").because(err),
        }
    }

    pub(super) fn because(self, cause: impl Display) -> Self {
        Self { cause: Some(cause.to_string()), ..self }
    }

    /// The same error with a new subject; the old text becomes its cause.
    pub(super) fn about(self, what: impl Display) -> Self {
        Self { cause: Some(self.what), what: what.to_string(), ..self }
    }

    /// The same error with this next step, where it has none yet.
    pub(super) fn or_next(self, next: impl Into<String>) -> Self {
        Self { next: self.next.or_else(|| Some(next.into())), ..self }
    }

    pub(super) fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    pub(super) fn with_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// The same error about a command that was typed in this form.
    pub(super) fn typed_as(self, form: Option<&'static Form>) -> Self {
        Self { form, ..self }
    }

    /// The same error for a program, if `json` is set.
    pub(super) fn for_program(self, json: bool) -> Self {
        Self { json, ..self }
    }

    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// Returns the failure and its cause in one line.
    pub(super) fn in_short(&self) -> String {
        let cause = self.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
        out::one_line(&format!("{}{cause}", self.what), 400)
    }

    /// Checks whether the error is that no daemon runs.
    pub(super) fn is_not_running(&self) -> bool {
        self.code == NOT_RUNNING
    }

    /// Returns the error as text, for the program that has started this one in the background.
    pub(super) fn text(&self) -> String {
        let mut text = format!("error: {}", out::local_times(&out::plain(&self.what)));
        let cause = self.cause.as_deref().map(out::local_times);
        // Times in a command are not converted.
        for (label, more) in [("cause", &cause), ("try", &self.next)] {
            if let Some(more) = more {
                text.push_str(&format!("\n  {label}: {}", out::plain(more)));
            }
        }
        text
    }

    /// Writes the error to standard error, so that standard output has answers only.
    pub(super) fn report(&self) {
        if self.what.is_empty() {
            return;
        }
        if self.json {
            let (cause, next) = (&self.cause, &self.next);
            let mut said = json!({ "error": self.what, "cause": cause, "try": next, "exit_code": self.code });
            if let Some(data) = &self.data {
                said["data"] = data.clone();
            }
            if let Some(hint) = self.form.and_then(Form::hint) {
                said["hint"] = hint.into();
            }
            out::note(said);
        } else {
            out::note(self.text());
        }
    }
}

impl From<ClientError> for CliError {
    fn from(err: ClientError) -> Self {
        match err {
            ClientError::NotRunning(_) | ClientError::Broken(_) if session::is_shut_in() => {
                Self::refusal("the sandbox of this shell keeps commands from reaching the daemon")
                    .because(err)
                    .next("Provost's tools instead, which reach it: lock_acquire, lock_release, locks_list and the others")
            }
            ClientError::NotRunning(socket) => Self::of("no daemon runs for this repository")
                .because(format!("no process listens at {}", socket.display()))
                .next("provost up")
                .with_code(NOT_RUNNING),
            ClientError::Foreign { .. } => Self::refusal(&err)
                .because("nothing was sent, since another user could be listening")
                .next("remove it if it is yours, then: provost up"),
            ClientError::Version(_) => Self::refusal(&err).next("provost down && provost up"),
            ClientError::Refused { status, fault } => {
                let code = match fault.error.as_str() {
                    "lock_conflict" | "would_deadlock" | "held_elsewhere" | "file_held" => HELD,
                    "denied" => FAILED,
                    _ if matches!(status, 404 | 500..) => FAILED,
                    _ => REFUSED,
                };
                let spoken = fault.data.as_ref().and_then(|it| it.get("spoken")?.as_str().map(str::to_owned));
                let error = Self { data: fault.data, ..Self::of(&fault.message).with_code(code) };
                if let Some(spoken) = spoken {
                    return error.because(not_a_persons(&spoken)).next(elsewhere());
                }
                match fault.hint {
                    Some(hint) => error.next(hint),
                    None => error,
                }
            }
            ClientError::Ended(fault) => {
                let error = Self::of(&fault.message).with_code(FAILED);
                match fault.hint {
                    Some(hint) => error.next(hint),
                    None => error,
                }
            }
            ClientError::Slow => Self::of(&err).next("provost doctor, and look at the daemon's log"),
            ClientError::Broken(_) => Self::of(&err).next("provost status; if it hangs: provost doctor"),
        }
    }
}

/// Says why a command in this terminal is not a person's.
fn not_a_persons(agent: &str) -> String {
    let agent = out::one_line(agent, 60);
    format!(
        "{agent} has spoken as an agent in this terminal, so that no command in it counts as a person's any more"
    )
}

/// Returns the next step with the command as it was typed, for a terminal in which no agent has spoken.
fn elsewhere() -> String {
    let words = std::env::args_os().skip(1).map(|it| provost_base::shell_word(&it.to_string_lossy()));
    let words: Vec<String> = std::iter::once("provost".to_owned()).chain(words).collect();
    let typed = out::one_line(&words.join(" "), 400);
    format!(
        "open a terminal of your own beside this one, in which no agent has run, and type in this folder: {typed}"
    )
}

impl From<PlacesError> for CliError {
    fn from(err: PlacesError) -> Self {
        Self::of("there is no safe place for Provost's files").because(err).next("provost doctor")
    }
}

impl From<Broken> for CliError {
    fn from(err: Broken) -> Self {
        Self::of("the configuration cannot be used")
            .because(err.note)
            .next("correct it, or remove it to get the default; `provost doctor` checks again")
    }
}

impl From<PinError> for CliError {
    fn from(err: PinError) -> Self {
        Self::refusal("files of the repository cannot be used").because(err).next("provost config allow")
    }
}

impl From<KeyError> for CliError {
    fn from(err: KeyError) -> Self {
        Self::refusal("the key ring refuses").because(err).next("provost key list, or provost doctor")
    }
}

impl From<VaultError> for CliError {
    fn from(err: VaultError) -> Self {
        if let VaultError::Login { why, .. } = &err {
            let next = why.command().to_owned();
            return Self::refusal("the log-in cannot be used").because(err).next(next);
        }
        Self::refusal("the secret is not kept, or not found").because(err).next("provost secret list")
    }
}

impl From<StoreError> for CliError {
    fn from(err: StoreError) -> Self {
        Self::of("the journal cannot be read").because(err).next("provost doctor")
    }
}
