//! The doors of runs on Windows, where no worker is confined yet and none gets a door.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::domain::Task;
use crate::effects::OpenDoor;
use crate::protocols::devit::Devit;

/// A door that is refused, with the words in which the jail would refuse the run.
pub(super) fn opener(_like: &Devit, _folder: &Path, _inherit: bool) -> io::Result<OpenDoor> {
    let why = "workers can only be confined on Linux in this version";
    Ok(Arc::new(move |_: &Task, _| Err(io::Error::new(io::ErrorKind::Unsupported, why))))
}
