//! The wit door.

pub(crate) mod coordination;
mod door;
mod input;
mod neighbours;
mod vectors;
mod weaknesses;
