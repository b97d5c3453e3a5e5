//! Reports of the effects about pictures of the screen.

use serde::{Deserialize, Serialize};

use crate::{Failure, Picture, Principal};
use provost_base::{EffectId, TaskId};

/// A picture is about to be taken: may it still?
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BeginCapture {
    /// The owed effect this carries out.
    pub effect: EffectId,
    /// The task that the picture is the result of.
    pub task: TaskId,
    /// The principal that asked, as the effect has it.
    pub asker: Principal,
}

/// The picture may be taken. The answer is a refusal where it may not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureBegun;

/// A picture was taken, or was not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndCapture {
    /// The owed effect this settles.
    pub effect: EffectId,
    /// The task that the picture is the result of.
    pub task: TaskId,
    /// The picture, or why there is none.
    pub end: Shot,
}

/// How the taking of a picture ended.
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
