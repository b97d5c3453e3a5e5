//! Artifacts: kept, compared, written into the workspace and taken back.

mod apply;
mod at_rest;
mod crash;
mod in_parts;
mod merge;
mod policy;
mod preview;
mod together;
mod undo;
