//! Facts that hold for the sources, the documents and the tables, apart from all other tests.

mod dependencies;
mod docs;
mod endpoints;
mod layers;
mod looks;
mod metrics;
mod named_commands;
mod page;
mod pictures;
mod recipes;
mod refusals;
mod tidy;
mod walks;
