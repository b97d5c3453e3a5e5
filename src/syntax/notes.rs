//! What a dialect notes during the walk, for what comes later in the file and for its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use tree_sitter::Node;

use super::reading::Facts;
use super::walk::{Decorators, Note, Walk};
use super::{Kind, Trouble};

/// With which the name of a type begins that a file only adds to, where it has it from elsewhere: no name does.
pub const ELSEWHERE: char = '^';

/// The end of a type's name where a value of it is held by something else, which may also be empty: no name ends so.
pub const HOLDS: char = '~';

/// Between the names of a path: what the part before it holds. No name is this one.
pub const TAKEN_OUT: &str = "!!";

/// The notes of a walk. A dialect that has no use for one leaves it empty.
#[derive(Default)]
pub(super) struct Notes {
    /// What a symbol's code calls the type around by a word of the language, by the symbol's number.
    pub(super) stands_for: HashMap<u32, Box<str>>,
    pub(super) implementations: Vec<Implementation>,
    /// Names with which paths begin, and which may be those of modules.
    pub(super) heads: BTreeSet<Box<str>>,
    /// Symbols that begin with a node that is still to come, by the node of their name.
    pub(super) to_come: HashMap<usize, ToCome>,
    /// The namespace that what follows is in, with dots.
    pub(super) namespace: Box<str>,
    /// Names that imports have given something from elsewhere, with what it is in full.
    pub(super) taken: HashMap<Box<str>, Box<str>>,
    /// The file says, otherwise than in a comment, that a program has written it.
    pub(super) generated: bool,
    /// Namespaces, with the bytes that are in each; inner ones behind outer ones.
    pub(super) namespaces: Vec<(std::ops::Range<u32>, Box<str>)>,
    /// What is known of that which a lambda is given, by its node.
    pub(super) given: HashMap<usize, super::locals::Seen>,
    /// To what functions are given as arguments, by their nodes: the path of what is called, and the place among the arguments.
    pub(super) given_to: HashMap<usize, (Box<str>, u8)>,
    /// The name that a choice by types is about, by the place of the choice.
    pub(super) subjects: HashMap<u32, Box<str>>,
    /// Symbols whose code is a node that is still to come.
    pub(super) bodies: HashMap<usize, u32>,
    /// What a part of a type says for all of its members, by the part's number: their access, and the conditions under which
    /// they are there.
    pub(super) for_members: HashMap<u32, (Box<str>, Box<str>)>,
    /// What each declaration declares that may declare several symbols, by where it begins: where what these share ends, and
    /// their numbers.
    pub(super) declared_by: BTreeMap<u32, (u32, Vec<u32>)>,
    /// Macros that the grammar was not shown, in order.
    pub(super) masked: Vec<Range<u32>>,
    /// Scopes without a name, what is in which no other file knows.
    pub(super) nameless: Vec<Range<u32>>,
    /// Symbols that no other file knows, by number.
    pub(super) hidden: BTreeSet<u32>,
}

/// A part of a type that stands apart from it.
pub(super) struct Implementation {
    /// The symbol, as a number.
    pub(super) at: u32,
    /// The path of the type, as if it were defined beside the part.
    pub(super) of_type: Box<str>,
    /// The type as it is written, if it has a name.
    pub(super) path: Option<Box<str>>,
}

/// A symbol among tokens that are no tree.
pub(super) struct ToCome {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) body: Option<usize>,
}

impl Walk<'_> {
    /// Leaves everything out that was read, if the file says that a program has written it; whether it does.
    pub(super) fn leave_out_generated(&mut self) -> bool {
        if self.notes.generated {
            self.facts = Facts { trouble: vec![Trouble::Generated], ..Facts::default() };
        }
        self.notes.generated
    }

    /// Remembers an attribute, or a comment, of what follows it at the same depth. One that does not count begins nothing, and
    /// may stand between others.
    pub(super) fn attribute(&mut self, node: Node<'_>, counts: bool) {
        let depth = self.above.len();
        let (start, end) = (node.start_byte(), node.end_byte());
        let goes_on =
            self.decorators.as_ref().is_some_and(|it| it.depth == depth && self.is_blank(it.end, start));
        match &mut self.decorators {
            Some(known) if goes_on => known.end = end,
            _ if counts => {
                let first_call = self.facts.calls.len();
                self.decorators = Some(Decorators { depth, start, end, first_call, note: Note::None });
            }
            _ => {}
        }
    }

    /// What begins here has the attributes directly before it, and no others.
    pub(super) fn attributes_end(&mut self, at: usize) {
        let depth = self.above.len();
        let ends = self.decorators.as_ref().is_some_and(|it| it.depth != depth || !self.is_blank(it.end, at));
        if ends {
            self.decorators = None;
        }
    }

    /// What begins here is the first thing within the current node, and has the attributes directly before that.
    pub(super) fn attributes_go_in(&mut self, at: usize) {
        self.attributes_end(at);
        if let Some(known) = &mut self.decorators {
            known.depth += 1;
            known.end = at;
        }
    }

    fn is_blank(&self, from: usize, to: usize) -> bool {
        self.source.get(from..to).is_some_and(|between| between.iter().all(u8::is_ascii_whitespace))
    }
}
