//! The part of a file that the graph keeps: names, ties to other files, and calls, without positions that move with
//! every keystroke.

use std::collections::{BTreeMap, BTreeSet};

use super::given::GivenClass;
use super::interned_names::{InternedNames, NameId, Writer};
use super::lang::{Rules, rules};
use provost_syntax::{
    AROUND, Call, Callee, ELSEWHERE, Export, Exported, Form, Given, Import, Imported, Kind, Language,
    Reading, Receiver, Symbol, Trouble, Unread,
};

/// The part of a file that matters for calls from and to other files. Made from a [`Reading`], without the
/// graph, so that it can be made on any thread.
#[derive(PartialEq, Eq, Debug)]
pub struct Outline {
    pub(super) language: Language,
    pub(super) words: InternedNames,
    /// The file's paths, each once, in order.
    pub(super) nodes: Box<[Node]>,
    /// The imported modules, each once.
    pub(super) specs: Box<[NameId]>,
    /// Imported names with their meaning, sorted by name.
    pub(super) bindings: Box<[Binding]>,
    /// Modules all of whose names are passed on, or taken in, with their positions among the imports of the file.
    pub(super) stars: Box<[(u32, u32)]>,
    pub(super) exports: Box<[Offer]>,
    /// The classes of the parameters of callbacks, as the file's functions declare them.
    pub(super) given: Box<[GivenClass]>,
    /// The number of names, from the first on, that concern facts which other files can see.
    shown_words: usize,
    pub(super) uses: Box<[Use]>,
    pub(super) unread: Gap,
    /// Why it was not read whole, in a few words for each reason.
    pub(super) reasons: Box<[&'static str]>,
}

/// The parts of a file that may be missing.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Gap {
    Nothing,
    /// Facts about these names may be missing.
    Beside(Box<[NameId]>),
    Anything,
}

/// A symbol without its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub(super) path: NameId,
    pub(super) name: NameId,
    pub(super) parent: Option<u32>,
    pub(super) kind: Kind,
    pub(super) declared: bool,
    /// Whether other files can see it.
    pub(super) exported: bool,
    pub(super) bases: Box<[NameId]>,
    /// The class of a variable's or a field's value; the empty name for a type of the language's own.
    pub(super) instance: Option<NameId>,
}

/// The part of a module that a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Take {
    Name(NameId),
    Module,
}

/// A name that an import makes known. For `import a.b` these are `a` and `a.b`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Binding {
    pub(super) local: NameId,
    pub(super) spec: u32,
    pub(super) take: Take,
    /// The module that the name may mean instead: `x` of `from . import x`.
    pub(super) or_module: Option<u32>,
    /// The function in which it is known; `None` if it is known in the whole file.
    pub(super) within: Option<u32>,
    /// Whether another binding of the same name may apply instead.
    pub(super) either: bool,
    /// The position of the import among those of the file.
    pub(super) at: u32,
}

/// A name under which other files can import a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    pub(super) name: NameId,
    pub(super) what: Offered,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offered {
    Local(NameId),
    Passed { spec: u32, take: Take },
}

/// A call of a symbol by another. Each pair is there once, in the order of first calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Use {
    pub(super) caller: u32,
    pub(super) name: NameId,
    pub(super) way: CalleeKind,
}

/// The way to find the called symbol. A guess is the only member of this file with the name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum CalleeKind {
    /// The symbol of this number in the file.
    Here(u32),
    /// A bare name that this file does not define.
    Bare,
    /// A name behind others, the first of which this file does not define.
    Path { path: NameId, guess: Option<u32> },
    /// A member of a class of this file, which can only inherit it from a class elsewhere.
    Member { of: u32, guess: Option<u32> },
    /// A member of the base classes of a class of this file.
    Above(u32),
    /// A member of an instance of the class of this name.
    Instance(NameId),
    /// A member of a callback's parameter, by the path that asks for the parameter's class.
    Given { class: NameId, guess: Option<u32> },
    /// The class itself of a base that has this name, which a constructor makes before its own code.
    Base,
    /// A target without a name in the repository.
    Nowhere,
    /// A member of a value of unknown type.
    Other { guess: Option<u32> },
}

impl Outline {
    /// The parts of a reading that the graph keeps.
    pub fn of(reading: &Reading) -> Self {
        let mut maker = Maker::new(reading);
        reading.imports.iter().enumerate().for_each(|(at, import)| maker.import(at, import));
        reading.exports.iter().for_each(|export| maker.export(export));
        maker.bindings.sort_by(|a, b| a.0.cmp(&b.0));
        let given = GivenClass::all(reading, &maker.node_of, &mut maker.words);
        let shown_words = maker.words.len();
        let uses = maker.uses();
        let unread = match reading.unread() {
            Unread::Nothing => Gap::Nothing,
            Unread::Beside(names) => Gap::Beside(names.iter().map(|name| maker.words.word(name)).collect()),
            Unread::Anything => Gap::Anything,
        };
        Self {
            language: reading.language,
            nodes: maker.nodes.into(),
            specs: maker.specs.into(),
            bindings: maker.bindings.into_iter().map(|(_, binding)| binding).collect(),
            stars: maker.stars.into(),
            exports: maker.exports.into(),
            given,
            shown_words,
            uses,
            words: maker.words.done(),
            unread,
            reasons: reading
                .trouble
                .iter()
                .map(Trouble::reason)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        }
    }

    /// Of a file of source that was not read, since it is too long. A reading of nothing says the language.
    pub fn too_long(nothing: &Reading) -> Self {
        let reasons = [Trouble::TooLarge { bytes: 0 }.reason()].into();
        Self { unread: Gap::Anything, reasons, ..Self::of(nothing) }
    }

    pub(super) fn word(&self, word: NameId) -> &str {
        self.words.get(word)
    }

    pub(super) fn path(&self, node: u32) -> &str {
        self.word(self.nodes[node as usize].path)
    }

    /// The module rules of its language.
    pub(super) fn rules(&self) -> &'static Rules {
        rules(self.language)
    }

    /// The symbol of a path.
    pub(super) fn node(&self, path: &str) -> Option<u32> {
        let found = self.nodes.binary_search_by(|node| self.word(node.path).cmp(path)).ok()?;
        u32::try_from(found).ok()
    }

    /// Imports that make a name known.
    pub(super) fn bindings_named<'o>(&'o self, name: &str) -> impl Iterator<Item = &'o Binding> + use<'o> {
        let from = self.bindings.partition_point(|it| self.word(it.local) < name);
        let many = self.bindings[from..].partition_point(|it| self.word(it.local) == name);
        self.bindings[from..from + many].iter()
    }

    /// The one that makes it known in the whole file.
    pub(super) fn binding_at_top(&self, name: &str) -> Option<&Binding> {
        self.bindings_named(name).filter(|it| it.within.is_none()).last()
    }

    /// The last one that makes it known within a symbol.
    pub(super) fn binding_within(&self, node: u32, name: &str) -> Option<&Binding> {
        self.bindings_named(name).filter(|it| it.within == Some(node)).last()
    }

    /// Whether something at the top of the file has this name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.node(name).is_some() || self.binding_at_top(name).is_some()
    }

    /// The symbols inside of one, by their names.
    pub(super) fn inside(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let before = format!("{}.", self.path(node));
        let from = self.nodes.partition_point(|it| *self.word(it.path) < *before);
        let many = self.nodes[from..].iter().take_while(|it| self.word(it.path).starts_with(&before)).count();
        (from..from + many).map(number)
    }

    /// The types of other files to which this one adds members, by name, where its language allows that.
    pub(super) fn adds(&self) -> BTreeSet<Box<str>> {
        if self.rules().added.is_none() {
            return BTreeSet::new();
        }
        let mut found: BTreeSet<&str> = BTreeSet::new();
        for node in &*self.nodes {
            let path = self.word(node.path);
            let first = path.split('.').next().unwrap_or(path);
            let from_elsewhere = |of: u32| {
                self.nodes[of as usize].bases.iter().any(|base| self.word(*base).starts_with(ELSEWHERE))
            };
            if first != path && self.node(first).is_none_or(from_elsewhere) {
                found.insert(first);
            }
        }
        found.into_iter().map(Into::into).collect()
    }

    /// The paths of what is in no other symbol.
    pub(super) fn tops(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|node| node.parent.is_none()).map(|node| self.word(node.path))
    }

    /// A member that a type has in this file: its own, or one that something it implements brings.
    pub(super) fn member_of_type(&self, of: &str, name: &str) -> Option<u32> {
        let whole = format!("{of}.{name}");
        if let Some(node) = self.node(&whole) {
            return Some(node);
        }
        let before = format!("{of}.");
        let from = self.nodes.partition_point(|it| *self.word(it.path) < *before);
        let mut inside = self.nodes[from..].iter().take_while(|it| self.word(it.path).starts_with(&before));
        let is_it = |it: &Node| self.word(it.name) == name && it.kind.is_callable();
        inside.position(is_it).map(|at| number(from + at))
    }

    /// Whether calls of what has one of these names may be missing.
    pub(super) fn may_lack(&self, names: &BTreeSet<&str>) -> bool {
        match &self.unread {
            Gap::Nothing => false,
            Gap::Beside(lost) => lost.iter().any(|word| names.contains(self.word(*word))),
            Gap::Anything => true,
        }
    }

    /// Whether others see the same in both.
    pub(super) fn shows_the_same(&self, other: &Self) -> bool {
        self.language == other.language
            && self.shown_words == other.shown_words
            && self.nodes == other.nodes
            && self.specs == other.specs
            && self.bindings == other.bindings
            && self.stars == other.stars
            && self.exports == other.exports
            && self.given == other.given
            && self.words.agree(&other.words, self.shown_words)
    }

    /// About how many bytes the outline takes.
    pub fn weight(&self) -> usize {
        let bases: usize = self.nodes.iter().map(|node| size_of_val(&*node.bases)).sum();
        size_of::<Self>()
            + self.words.weight()
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.specs)
            + size_of_val(&*self.bindings)
            + size_of_val(&*self.exports)
            + size_of_val(&*self.given)
            + size_of_val(&*self.uses)
            + size_of_val(&*self.reasons)
            + match &self.unread {
                Gap::Beside(lost) => size_of_val(&**lost),
                Gap::Nothing | Gap::Anything => 0,
            }
            + bases
    }
}

struct Maker<'a> {
    reading: &'a Reading,
    words: Writer,
    nodes: Vec<Node>,
    /// The paths of the nodes, in their order.
    paths: Vec<&'a str>,
    /// The node of each of the reading's symbols.
    node_of: Vec<u32>,
    specs: Vec<NameId>,
    spec_of: BTreeMap<Box<str>, u32>,
    bindings: Vec<(Box<str>, Binding)>,
    stars: Vec<(u32, u32)>,
    exports: Vec<Offer>,
    /// The module of each import of the reading.
    modules: Vec<u32>,
}

pub(super) fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl<'a> Maker<'a> {
    fn new(reading: &'a Reading) -> Self {
        let mut words = Writer::default();
        let mut by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, symbol) in reading.symbols.iter().enumerate() {
            by_path.entry(&symbol.path).or_default().push(at);
        }
        let mut node_of = vec![0; reading.symbols.len()];
        for (node, all) in by_path.values().enumerate() {
            all.iter().for_each(|at| node_of[*at] = number(node));
        }
        let nodes = by_path
            .iter()
            .map(|(path, all)| {
                let symbols = || all.iter().map(|at| &reading.symbols[*at]);
                // The definition speaks for its overloads.
                let is_one = |it: &&Symbol| !it.declared && !it.overload;
                // A method speaks for a field of its name.
                let method = symbols().find(|it| it.kind.is_callable() && is_one(it));
                let method = method.filter(|_| reading.language.has_open_types());
                let first = method.or(symbols().find(is_one)).unwrap_or(&reading.symbols[all[0]]);
                Node {
                    path: words.word(path),
                    name: words.word(first.name()),
                    parent: first.parent.map(|parent| node_of[parent as usize]),
                    kind: first.kind,
                    declared: symbols().all(|it| it.declared),
                    exported: first.exported,
                    bases: first.bases.iter().map(|base| words.word(base)).collect(),
                    instance: match &first.instance {
                        Some(Receiver::Instance(class)) => Some(words.word(class)),
                        Some(_) => Some(words.word("")),
                        None => None,
                    },
                }
            })
            .collect();
        Self {
            reading,
            words,
            nodes,
            paths: by_path.into_keys().collect(),
            node_of,
            specs: Vec::new(),
            spec_of: BTreeMap::new(),
            bindings: Vec::new(),
            stars: Vec::new(),
            exports: Vec::new(),
            modules: Vec::new(),
        }
    }

    fn spec(&mut self, text: &str) -> u32 {
        if let Some(spec) = self.spec_of.get(text) {
            return *spec;
        }
        let spec = number(self.specs.len());
        self.specs.push(self.words.word(text));
        self.spec_of.insert(text.into(), spec);
        spec
    }

    fn import(&mut self, at: usize, import: &Import) {
        debug_assert_eq!(at, self.modules.len());
        let module = self.spec(&import.from);
        self.modules.push(module);
        let or_module = rules(self.reading.language).or_module;
        let within = import.within.map(|symbol| self.node_of[symbol as usize]);
        let passed_on = import.form == provost_syntax::ImportForm::ReExport;
        for name in &import.names {
            let take = match &name.imported {
                Imported::Name(name) => Take::Name(self.words.word(name)),
                Imported::Module | Imported::Root => Take::Module,
                // An import that is passed on is in the exports, too.
                Imported::Everything if passed_on => continue,
                Imported::Everything => {
                    self.stars.push((module, number(at)));
                    continue;
                }
            };
            let Some(local) = name.local.as_deref().filter(|_| !passed_on) else { continue };
            if name.imported == Imported::Root {
                let mut ends: Vec<usize> = import.from.match_indices('.').map(|(dot, _)| dot).collect();
                ends.push(import.from.len());
                for end in ends {
                    let part = &import.from[..end];
                    let spec = self.spec(part);
                    self.bind(part, (spec, Take::Module, None), (within, import.either), at);
                }
                continue;
            }
            let or_module = match &name.imported {
                Imported::Name(name) => or_module(&import.from, name).map(|spec| self.spec(&spec)),
                _ => None,
            };
            self.bind(local, (module, take, or_module), (within, import.either), at);
        }
    }

    fn bind(
        &mut self,
        local: &str,
        (spec, take, or_module): (u32, Take, Option<u32>),
        (within, either): (Option<u32>, bool),
        at: usize,
    ) {
        let local_word = self.words.word(local);
        let binding = Binding { local: local_word, spec, take, or_module, within, either, at: number(at) };
        self.bindings.push((local.into(), binding));
    }

    fn export(&mut self, export: &Export) {
        let what = match &export.what {
            Exported::Local(local) => Offered::Local(self.words.word(local)),
            Exported::Passed { import, imported } => {
                let Some(spec) = self.modules.get(*import as usize).copied() else { return };
                match imported {
                    Imported::Everything => {
                        self.stars.push((spec, *import));
                        return;
                    }
                    Imported::Name(name) => Offered::Passed { spec, take: Take::Name(self.words.word(name)) },
                    Imported::Module | Imported::Root => Offered::Passed { spec, take: Take::Module },
                }
            }
        };
        let name = self.words.word(&export.name);
        self.exports.push(Offer { name, what });
    }

    fn uses(&mut self) -> Box<[Use]> {
        let mut seen = std::collections::BTreeSet::new();
        let mut uses = Vec::new();
        for call in &self.reading.calls {
            let Some(caller) = call.caller else { continue };
            let way = self.way(call);
            let name = self.words.word(&call.callee.name);
            let one = Use { caller: self.node_of[caller as usize], name, way };
            if seen.insert(one) {
                uses.push(one);
            }
        }
        uses.into()
    }

    /// As it is written, for those who follow calls by themselves.
    fn way_as_written(&mut self, call: &Call) -> CalleeKind {
        match &call.callee.receiver {
            Receiver::None => CalleeKind::Bare,
            Receiver::This => CalleeKind::Instance(self.words.word(AROUND)),
            Receiver::Path(path) => CalleeKind::Path { path: self.words.word(path), guess: None },
            // From the top, however the names begin.
            Receiver::Within(path) => {
                CalleeKind::Path { path: self.words.word(&format!(".{path}")), guess: None }
            }
            Receiver::Instance(class) => CalleeKind::Instance(self.words.word(class)),
            Receiver::Other => CalleeKind::Other { guess: None },
            Receiver::Super => CalleeKind::Base,
            Receiver::BuiltIn | Receiver::Several | Receiver::Local => CalleeKind::Nowhere,
        }
    }

    fn way(&mut self, call: &Call) -> CalleeKind {
        if rules(self.reading.language).follows.is_some() {
            return self.way_as_written(call);
        }
        let found = self.reading.resolve(call).map(|at| self.node_of[at as usize]);
        match &call.callee.receiver {
            Receiver::None => match found.filter(|found| !self.is_imported(*found)) {
                Some(found) => CalleeKind::Here(found),
                None => CalleeKind::Bare,
            },
            Receiver::This | Receiver::Super => match (found, self.class_around(call.caller)) {
                (found, None) => found.map_or(CalleeKind::Other { guess: None }, CalleeKind::Here),
                // Other files may have more of the class, and of those above it.
                (_, Some(of)) if call.callee.receiver == Receiver::Super => CalleeKind::Above(of),
                (found, Some(of)) => match found.filter(|it| self.nodes[*it as usize].parent == Some(of)) {
                    Some(found) => CalleeKind::Here(found),
                    None => CalleeKind::Member { of, guess: None },
                },
            },
            Receiver::Path(path) => self.way_along(call, path, found),
            Receiver::Within(path) => match found.filter(|found| !self.is_imported(*found)) {
                Some(found) => CalleeKind::Here(found),
                None if path.is_empty() => CalleeKind::Bare,
                None => CalleeKind::Path { path: self.words.word(path), guess: None },
            },
            Receiver::Instance(class) if Given::is_asked_for(class) => {
                CalleeKind::Given { class: self.words.word(class), guess: found }
            }
            Receiver::Instance(class) => CalleeKind::Instance(self.words.word(class)),
            Receiver::BuiltIn | Receiver::Several | Receiver::Local => CalleeKind::Nowhere,
            Receiver::Other => CalleeKind::Other { guess: found },
        }
    }

    /// `a.b.f()`: whether `a.b` is something of this file, and `f` for certain its member.
    fn way_along(&mut self, call: &Call, path: &str, found: Option<u32>) -> CalleeKind {
        let mut names = path.split('.');
        let first = Callee {
            name: names.next().unwrap_or_default().into(),
            receiver: Receiver::None,
            form: Form::Plain,
        };
        let first = self.reading.resolve(&Call { caller: call.caller, callee: first, at: call.at });
        let Some(first) = first.filter(|first| !self.is_imported(self.node_of[*first as usize])) else {
            return CalleeKind::Path { path: self.words.word(path), guess: found };
        };
        let mut of = self.paths[self.node_of[first as usize] as usize].to_owned();
        for name in names {
            of = format!("{of}.{name}");
        }
        let Some(node) = self.node(&of) else {
            // Another file may have more of it.
            return match rules(self.reading.language).around {
                Some(_) => CalleeKind::Path { path: self.words.word(path), guess: found },
                None => CalleeKind::Other { guess: found },
            };
        };
        let inner = format!("{of}.{}", call.callee.name);
        match found {
            Some(found) if *self.paths[found as usize] == *inner => CalleeKind::Here(found),
            found => CalleeKind::Member { of: node, guess: found },
        }
    }

    /// Whether a constant is only the name of something from elsewhere: `const { f } = require("./f")`.
    fn is_imported(&self, node: u32) -> bool {
        let path = self.paths[node as usize];
        let from = self.bindings.partition_point(|(local, _)| **local < *path);
        let mut named = self.bindings[from..].iter().take_while(|(local, _)| **local == *path);
        self.nodes[node as usize].kind == Kind::Variable && named.any(|(_, it)| it.within.is_none())
    }

    fn node(&self, path: &str) -> Option<u32> {
        self.paths.binary_search(&path).ok().map(number)
    }

    /// The class, or the object, that is `this` for a caller.
    fn class_around(&self, caller: Option<u32>) -> Option<u32> {
        let symbols = &self.reading.symbols;
        let mut around = caller;
        while let Some(at) = around {
            let symbol = &symbols[at as usize];
            let of_object =
                |of: &u32| symbol.kind == Kind::Method && symbols[*of as usize].kind == Kind::Variable;
            let in_type = |of: &u32| {
                symbol.kind == Kind::Method
                    && matches!(symbols[*of as usize].kind, Kind::Enum | Kind::Interface)
            };
            let is_open = symbol.kind.has_members() && self.reading.language.has_open_types();
            if symbol.kind == Kind::Class || is_open {
                return Some(self.node_of[at as usize]);
            }
            if let Some(of) = symbol.parent.filter(in_type) {
                return Some(self.node_of[of as usize]);
            }
            if let Some(object) = symbol.parent.filter(of_object) {
                return Some(self.node_of[object as usize]);
            }
            around = symbol.parent;
        }
        None
    }
}
