//! Compares artifacts with the user's files, and writes them. A6s 6.8.
//!
//! The service decides what is written, alike for all doors; this module only translates into the protocol's words.

use tokio::sync::OwnedSemaphorePermit;

use super::A6s;
use super::envelope::{A6sError, Said};
use super::session::Session;
use super::wire::{Applied, OfArtifacts, Previewed, Previews};
use provost_base::Digest;
use provost_base::limits::{A6S_ARTIFACTS_BYTES_AT_ONCE_MAX, A6S_REASONS_BYTES_MAX};
use provost_domain::{Answer, Artifact};
use provost_service::{Action, Applied as Done, ApplyError, Previewed as Compared};

/// The unit in which contents are counted, in bytes.
pub(super) const UNIT: usize = 1 << 10;

impl A6s {
    /// Answers `artifacts.preview`. Changes nothing.
    pub(super) async fn preview(&self, session: &Session, asked: OfArtifacts) -> Result<Said, A6sError> {
        let _room = self.room_for(&asked)?;
        let found = self.provost().preview(&session.who, artifacts(asked)?).await.map_err(fault)?;
        let said = || Said::new(&Previews { files: found.into_iter().map(previewed).collect() });
        // Writing all differences together may take a while.
        let said = tokio::task::spawn_blocking(said).await;
        said.map_err(|_| A6sError::new("Provost is stopping; nothing was changed"))?
    }

    /// Answers `artifacts.apply`. The apply goes on to its end even if the editor has gone. If it needs approval,
    /// it waits for as long as editors wait for an answer: Emacs throws away artifacts that it could not apply.
    pub(super) async fn apply(&self, session: &Session, asked: OfArtifacts) -> Result<Said, A6sError> {
        // The contents are in memory twice.
        let _room = (self.room_for(&asked)?, self.room_for(&asked)?);
        let (provost, artifacts) = (self.provost(), artifacts(asked)?);
        let first = provost.apply(&session.who, artifacts.clone()).await.map_err(fault)?;
        let answer = match first {
            Answer::Parked(id) if provost.answered(id, self.quirks().apply_wait).await? => {
                provost.apply(&session.who, artifacts).await.map_err(fault)?
            }
            answer => answer,
        };
        match answer {
            Answer::Done(Done { applied: 0, errors, .. }) if !errors.is_empty() => {
                Err(A6sError::new(nothing_written(&errors)))
            }
            Answer::Done(Done { applied, skipped, errors, apply }) => {
                Said::new(&Applied { applied, skipped, errors, apply: apply.map(|it| it.0) })
            }
            Answer::Parked(id) => Err(A6sError::new(format!(
                "Waits for approval {id}; nothing is written yet. After the approval (`provost approve {id}`), apply the same artifacts again"
            ))),
            Answer::Denied(denial) => Err(A6sError::new(format!(
                "Denied by rule {}: {}. Nothing is written",
                denial.rule, denial.reason
            ))),
        }
    }

    /// Takes permits for contents: they are held while files are compared and written, and many requests may do so at once.
    fn room_for(&self, asked: &OfArtifacts) -> Result<OwnedSemaphorePermit, A6sError> {
        let bytes: usize = asked.artifacts.0.iter().map(|it| it.content.len() + UNIT).sum();
        self.artifact_room(bytes.div_ceil(UNIT)).ok_or_else(|| {
            let most = A6S_ARTIFACTS_BYTES_AT_ONCE_MAX >> 20;
            A6sError::new(format!(
                "Artifacts of {most} MiB are being processed already; try again in a moment"
            ))
        })
    }
}

fn artifacts(asked: OfArtifacts) -> Result<Vec<Artifact>, A6sError> {
    let one = |it: super::wire::Artifact| {
        let base_hash = it.base_hash.map(Digest::try_from).transpose();
        Ok(Artifact {
            base_hash: base_hash
                .map_err(|why| A6sError::new(format!("artifacts: the baseHash of {}: {why}", it.path)))?,
            id: it.id.into(),
            kind: it.kind.into(),
            path: it.path.into(),
            content: it.content.into(),
            language: it.language.into(),
            // The daemon finds the rest by the artifact's id.
            mode: None,
            base_mode: None,
        })
    };
    asked.artifacts.0.into_iter().map(one).collect()
}

fn previewed(it: Compared) -> Previewed {
    let action = match it.action {
        Action::Create => "create",
        Action::Modify => "modify",
        Action::Skip => "skip",
    };
    // Editors show the difference of a file, and no other data about it.
    let diff = it.diff.map(|it| it.text);
    let diff = match &it.reason {
        Some(why) => Some(format!("{} is not written: {why}\n{}", it.path, diff.unwrap_or_default())),
        None => diff,
    };
    Previewed { path: it.path, action, diff, reason: it.reason }
}

/// Returns the error for an apply that has written nothing. Editors only count the errors in an answer, and show
/// the error of a failed call.
fn nothing_written(errors: &[String]) -> String {
    let mut text = "Nothing was written".to_owned();
    let mut left = A6S_REASONS_BYTES_MAX;
    for (number, why) in errors.iter().enumerate() {
        if why.len() > left {
            text.push_str(&format!("\n{} more", errors.len() - number));
            break;
        }
        left -= why.len();
        text.push('\n');
        text.push_str(why);
    }
    text
}

/// Turns an error of the service into one of the protocol; nothing has changed then.
fn fault(fault: ApplyError) -> A6sError {
    match fault {
        ApplyError::Refused(refusal) => refusal.into(),
        fault => A6sError::new(fault.to_string()),
    }
}
