//! What of the tests holds on Windows: the same files, over a named pipe. `scripts/windows-check` builds this for
//! Windows and runs it; elsewhere there is nothing in it.
#![cfg(windows)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

#[path = "../it/descriptor.rs"]
mod descriptor;
#[path = "../it/devit_document.rs"]
mod devit_document;
#[path = "../it/devit_door.rs"]
mod devit_door;
#[path = "../it/devit_fields.rs"]
mod devit_fields;
#[path = "../it/frames.rs"]
mod frames;
mod hooks;
mod jail;
mod pipe;
#[path = "../it/replay.rs"]
mod replay;
#[path = "../it/support.rs"]
mod support;
mod workers;
