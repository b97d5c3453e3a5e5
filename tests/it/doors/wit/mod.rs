//! The wit door.

mod coordination;
mod door;
mod input;
mod neighbours;
mod vectors;
mod weaknesses;
