//! The common behaviour of the doors over loopback HTTP: which callers they admit, and what load they bear.

mod admission;
mod bounds;
mod browser;
mod crowd;
mod input;
mod peers;
mod ports;
