//! What the doors over loopback HTTP have in common: whom they let in, and what they bear.

mod admission;
mod bounds;
mod browser;
mod crowd;
mod input;
mod peers;
mod ports;
