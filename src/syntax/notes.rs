//! The notes of a dialect during the walk, for later parts of the file and for its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use tree_sitter::Node;

use super::lang::Typedefs;
use super::reading::{Facts, offset};
use super::walk::{Decorators, Note, Walk};
use super::{Kind, Trouble};

/// The beginning of the name of a type that a file only extends, if it has the type from elsewhere: no name begins with it.
pub const ELSEWHERE: char = '^';

/// The end of a type's name if its value is in a container that may be empty: no name ends with it.
pub const HOLDS: char = '~';

/// The bounds of the parameters of a type, in order.
pub(super) type Bounds = Vec<Option<Box<str>>>;

/// The mark between the names of a path for a value taken out of a container. No name is equal to it.
pub const TAKEN_OUT: &str = "!!";

/// The mark between the names of classes that a value is of, all at once; those that come first are asked first. No name contains it.
pub const BOTH: &str = "&&";

/// The notes of a walk. A dialect that has no use for one leaves it empty.
#[derive(Default)]
pub(super) struct Notes {
    /// The word by which a symbol's code refers to the type around it, by the symbol's number.
    pub(super) stands_for: HashMap<u32, Box<str>>,
    pub(super) implementations: Vec<Implementation>,
    /// The first names of paths that may be those of modules.
    pub(super) heads: BTreeSet<Box<str>>,
    /// Symbols that begin with a node that has not come yet, by the node of their name.
    pub(super) to_come: HashMap<usize, ToCome>,
    /// The namespace of the following symbols, with dots.
    pub(super) namespace: Box<str>,
    /// Names that imports have introduced, each with the full name behind it.
    pub(super) taken: HashMap<Box<str>, Box<str>>,
    /// The types that doc comments name.
    pub(super) typedefs: Typedefs,
    /// Whether the file says, outside of comments, that a program has written it.
    pub(super) generated: bool,
    /// Namespaces, with the bytes of each; inner ones behind outer ones.
    pub(super) namespaces: Vec<(std::ops::Range<u32>, Box<str>)>,
    /// The known value of a lambda's parameter, by the lambda's node.
    pub(super) given: HashMap<usize, super::locals::Seen>,
    /// The type that is expected of a value, by the value's node, for values that have not come yet.
    pub(super) expected: HashMap<usize, super::locals::Seen>,
    /// The calls to which functions are passed as arguments, by the functions' nodes: the path of the called function, and the position.
    pub(super) given_to: HashMap<usize, (Box<str>, u8)>,
    /// The name that a choice by types examines, by the position of the choice.
    pub(super) subjects: HashMap<u32, Box<str>>,
    /// The bounds that the types of the file have for their parameters, in order, by the types' names; none before a method asks.
    pub(super) bounds: Option<BTreeMap<Box<str>, Bounds>>,
    /// Symbols whose code is a node that has not come yet.
    pub(super) bodies: HashMap<usize, u32>,
    /// The properties that a part of a type sets for all of its members, by the part's number: their access, and the conditions under
    /// which they exist.
    pub(super) for_members: HashMap<u32, (Box<str>, Box<str>)>,
    /// Declarations that may declare several symbols, by their beginning: the end of the shared part, and
    /// the symbols' numbers.
    pub(super) declared_by: BTreeMap<u32, (u32, Vec<u32>)>,
    /// Macros that were hidden from the grammar, in order.
    pub(super) masked: Vec<Range<u32>>,
    /// The paths of the namespaces so far.
    pub(super) namespace_paths: BTreeSet<Box<str>>,
    /// Unnamed scopes, whose symbols no other file knows.
    pub(super) nameless: Vec<Range<u32>>,
    /// Symbols that no other file knows, by number.
    pub(super) hidden: BTreeSet<u32>,
    /// The names that the body of a class has bound so far, each with the number of the class, and the position from which it is known.
    pub(super) in_class: HashMap<(u32, Box<str>), u32>,
    /// The symbols at the top of the file, by path, of those that were recorded up to a number: the first of each path.
    pub(super) tops: (HashMap<Box<str>, u32>, usize),
}

/// A part of a type that stands apart from it.
pub(super) struct Implementation {
    /// The symbol, as a number.
    pub(super) at: u32,
    /// The path of the type, as if it were defined beside this part.
    pub(super) of_type: Box<str>,
    /// The type as it is written, if it has a name.
    pub(super) path: Option<Box<str>>,
}

/// A symbol among tokens without a tree.
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

    /// The first symbol at the top of the file that has a path. However often it is asked, it looks at each symbol once.
    pub(super) fn at_top(&mut self, path: &str) -> Option<u32> {
        let (tops, known) = &mut self.notes.tops;
        for symbol in &self.facts.symbols[*known..] {
            if symbol.parent.is_none() {
                tops.entry(symbol.path.clone()).or_insert(offset(*known));
            }
            *known += 1;
        }
        tops.get(path).copied()
    }

    fn is_blank(&self, from: usize, to: usize) -> bool {
        self.source.get(from..to).is_some_and(|between| between.iter().all(u8::is_ascii_whitespace))
    }
}
