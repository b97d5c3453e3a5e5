//! Reading code: the bytes of a file in, facts about it out.
//!
//! What is defined where ([`Symbol`]), with which contract ([`Signature`]), who calls whom ([`Call`]), and what comes
//! from and goes to other files ([`Import`], [`Export`]). Nothing here opens a file or looks at another one: paths,
//! and what an import leads to, are others' business. A file that cannot be read whole is read as far as is sound, and
//! the [`Reading`] says what is missing ([`Trouble`]).
//!
//! One parse by tree-sitter, one walk over its tree, no recursion. `lang/` knows what a node of a language means;
//! everything else knows none. To add a language, write `lang/<name>.rs` and its line in `language.rs`.
#![forbid(unsafe_code)]

mod built_in;
mod cache;
mod calls;
mod canon;
mod imports;
mod lang;
mod language;
mod locals;
mod reading;
mod signature;
mod symbols;
mod trouble;
mod walk;

pub use cache::Cache;
pub use calls::{Call, Callee, Edge, Form, Receiver, Target};
pub use imports::{Export, Exported, Import, ImportForm, Imported, ImportedName};
pub use language::{Language, language_of};
pub use reading::{Reading, Unread, read};
pub use signature::{NoSignature, Signature};
pub use symbols::{Kind, Symbol};
pub use trouble::{Patience, Trouble};
