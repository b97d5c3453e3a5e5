//! The broker door, the commands that use it, and what it sees of work trees.

mod cli;
mod crowded;
mod door;
mod git;
mod intake;
mod log;
mod reading;
mod repeats;
mod vectors;
mod watching;
mod weaknesses;
