//! What holds for the sources, the documents and the tables, whatever is tested elsewhere.

mod dependencies;
mod docs;
mod endpoints;
mod layers;
mod named_commands;
mod recipes;
mod tidy;
mod walks;
