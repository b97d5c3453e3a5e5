//! Code as it is read: symbols, calls, imports, and the index over a repository.

mod changes;
mod doc_comments;
mod edited;
mod enclosing;
mod enclosing_c;
mod found_again;
mod found_elsewhere;
mod given;
mod graph;
mod index;
mod languages;
mod members;
mod named;
mod questions;
mod receivers;
mod syntax;
mod tokens;
mod touched;
