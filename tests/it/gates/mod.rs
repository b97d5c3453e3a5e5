//! What holds for the sources, the documents and the tables, whatever is tested elsewhere.

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
mod tidy;
mod walks;
