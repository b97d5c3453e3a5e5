//! The door of Agent Protocol.

mod conflicts;
mod door;
mod elsewhere;
mod files;
mod heartbeats;
mod options;
mod published;
mod stream;
mod vectors;
mod weaknesses;
