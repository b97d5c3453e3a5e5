//! The meaning of nodes, one module for each language. The rest of `syntax` asks a [`Dialect`]
//! and knows no grammar.
#![forbid(unsafe_code)]

mod c;
mod c_classes;
mod c_declarators;
pub(super) mod c_grammar;
mod c_macros;
pub(super) mod c_mask;
mod c_mask_macros;
mod c_mask_nested;
mod c_mask_newer;
mod c_mask_values;
mod c_mask_words;
mod c_tokens;
mod c_types;
mod c_words;
mod children;
mod comments;
pub(super) mod csharp;
pub(super) mod csharp_mask;
mod csharp_names;
mod csharp_types;
pub(super) mod ecma;
mod ecma_classes;
mod ecma_doc_imports;
mod ecma_doc_types;
mod ecma_docs;
mod ecma_given;
mod ecma_locals;
pub(super) mod ecma_mask;
mod ecma_modules;
mod ecma_names;
pub(super) mod go;
mod go_types;
pub(super) mod java;
pub(super) mod java_mask;
mod java_types;
pub(super) mod kotlin;
mod kotlin_contexts;
pub(super) mod kotlin_mask;
mod kotlin_mask_bodies;
mod kotlin_types;
pub(super) mod php;
mod php_calls;
pub(super) mod php_known;
pub(super) mod php_mask;
mod php_names;
mod php_types;
pub(super) mod python;
mod python_locals;
mod python_modules;
pub(super) mod ruby;
mod ruby_calls;
pub(super) mod ruby_known;
mod ruby_locals;
pub(super) mod ruby_mask;
pub(super) mod rust;
mod rust_known;
mod rust_macros;
pub(super) mod rust_mask;
mod rust_modules;
mod rust_types;
pub(super) mod swift;
mod swift_expected;
pub(super) mod swift_known;
mod swift_locals;
pub(super) mod swift_mask;
mod swift_members;
mod swift_modules;
mod swift_properties;
mod swift_signatures;
mod swift_types;

pub use c_types::{AROUND, COPIED, NAMED_BASE};
pub(super) use children::Inside;
pub(super) use ecma_doc_imports::Typedefs;
use tree_sitter::Node;

use super::canon::Role;
use super::walk::Walk;

/// A family of languages that are read alike.
pub(super) struct Dialect {
    /// The names of the nodes that it uses; their numbers count from 1.
    pub(super) kinds: &'static [&'static str],
    /// Names of the fields that it asks for; their numbers count from 0.
    pub(super) fields: &'static [&'static str],
    /// The part of a node in the form of a signature.
    pub(super) role: fn(&str) -> Role,
    /// Takes the facts from a node before its children are visited. Returns whether to visit them.
    pub(super) enter: fn(&mut Walk<'_>, Node<'_>, u8) -> bool,
    /// Called once, after all nodes were visited.
    pub(super) finish: fn(&mut Walk<'_>),
}

/// An enumeration of names in a grammar.
macro_rules! names {
    ($(#[$doc:meta])* enum $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(super) enum $name { $($variant),+ }

        impl $name {
            pub(super) const NAMES: &[&str] = &[$($text),+];
        }
    };
}

/// The same for nodes, whose numbers count from 1: `Kind::of(number)`, `Kind::at(walk, node)`.
macro_rules! kinds {
    ($(#[$doc:meta])* enum $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        names! { $(#[$doc])* enum $name { $($variant = $text),+ } }

        impl $name {
            const ALL: &[Self] = &[$(Self::$variant),+];

            pub(super) fn of(number: u8) -> Option<Self> {
                number.checked_sub(1).and_then(|at| Self::ALL.get(usize::from(at))).copied()
            }

            pub(super) fn at(walk: &Walk<'_>, node: Node<'_>) -> Option<Self> {
                Self::of(walk.kind_of(node))
            }
        }

        impl $crate::lang::children::Numbered for $name {
            fn numbered(number: u8) -> Option<Self> {
                Self::of(number)
            }
        }
    };
}
use {kinds, names};
