//! The tests that hold on Windows: the same files, over a named pipe. `scripts/windows-check` builds this for Windows
//! and runs it; elsewhere it is empty.
#![cfg(windows)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; that holds for what it is built of"
)]

#[path = "../it/jail/descriptor.rs"]
mod descriptor;
#[path = "../it/doors/devit/document.rs"]
mod devit_document;
#[path = "../it/doors/devit/door.rs"]
mod devit_door;
#[path = "../it/doors/devit/fields.rs"]
mod devit_fields;
#[path = "../it/core/frames.rs"]
mod frames;
mod hooks;
mod jail;
mod pipe;
#[path = "../it/core/replay.rs"]
mod replay;
#[path = "../it/support/world.rs"]
mod support;
mod workers;
