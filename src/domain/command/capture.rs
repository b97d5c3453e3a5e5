//! Reports of the effects about pictures of the screen.

use serde::{Deserialize, Serialize};

use crate::{Failure, Picture, Principal};
use provost_base::{EffectId, TaskId};

/// Ask whether a picture that is about to be taken may still be taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginCapture {
    /// The owed effect that this carries out.
    pub effect: EffectId,
    /// The task whose result is the picture.
    pub task: TaskId,
    /// The principal that asked, as the effect names it.
    pub asker: Principal,
}

/// The answer: the picture may be taken. It is a refusal if it may not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureBegun;

/// Report that a picture was taken, or was not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndCapture {
    /// The owed effect that this settles.
    pub effect: EffectId,
    /// The task whose result is the picture.
    pub task: TaskId,
    /// The picture, or the reason why there is no picture.
    pub end: Shot,
}

/// The outcome of taking a picture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shot {
    /// The picture was taken and lies in its file.
    Taken(Picture),
    /// No picture was taken, for this reason.
    Failed(Failure),
}

/// The result is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureEnded {
    /// Whether the task was unfinished until now. A picture that will reach no agent is thrown away.
    pub heard: bool,
}
