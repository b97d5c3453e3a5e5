//! Parsing: takes the bytes of a file and returns facts about it.
//!
//! The facts are definitions ([`Symbol`]) with their contracts ([`Signature`]), calls ([`Call`]), and ties to
//! other files ([`Import`], [`Export`]). This module opens no file; other modules resolve paths and imports.
//! If a file cannot be read completely, the module reads its sound part, and the [`Reading`] says what is
//! missing ([`Trouble`]).
//!
//! One parse by tree-sitter, one walk over its tree, no recursion. Only `lang/` knows the meaning of a
//! language's nodes. To add a language, write `lang/<name>.rs` and its line in
//! `language.rs`; the compiler then asks for its module rules in the graph.
#![forbid(unsafe_code)]

mod built_in;
mod built_in_jvm;
mod cache;
mod calls;
mod canon;
mod full_names;
mod generated;
mod generated_heads;
mod given;
mod imports;
mod knowledge;
mod lang;
mod language;
mod locals;
mod notes;
mod reading;
mod signature;
mod symbols;
mod together;
mod tokens;
mod touched;
mod trouble;
mod values;
mod walk;
mod within;

pub use cache::Cache;
pub use calls::{Call, Callee, Edge, Form, Receiver, Target, keep_last};
pub use given::Given;
pub use imports::{Export, Exported, Import, ImportForm, Imported, ImportedName};
pub use knowledge::Knowledge;
pub use lang::{AROUND, COPIED, NAMED_BASE};
pub use language::{Language, language_of};
pub use notes::{BOTH, ELSEWHERE, HOLDS, TAKEN_OUT};
pub use reading::{Reading, Unread, read};
pub use signature::{NoSignature, Signature};
pub use symbols::{Kind, Symbol};
pub use tokens::{Token, TokenKind, tokens};
pub use touched::{Moves, Version, touched};
pub use trouble::{ParseDeadline, Trouble};
