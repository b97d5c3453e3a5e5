//! The A6s door, as editors use it.

mod applies;
mod artifacts;
mod code;
mod crowd;
mod door;
mod events;
mod fleet;
mod habits;
mod hostile;
mod jobs;
mod late;
mod owed;
mod own_editor;
mod patterns;
mod rounds;
mod said;
mod scans;
mod shown;
mod workflows;
