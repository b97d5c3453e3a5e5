//! Follows the calls of C and C++. A file knows all names of all files that it includes, directly or indirectly. A
//! name is looked up in the scopes around the call, in the base classes of a class, and in namespaces that a `using` names. A function
//! may be declared in a header and defined elsewhere: a call leads to both.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::c::key_of;
use crate::Target;
use crate::outline::{CalleeKind, Node, Outline, Take, Use};
use crate::resolve::Resolver;
use provost_syntax::{AROUND, COPIED, Kind, NAMED_BASE};

/// The most files that one file includes, directly or indirectly.
const INCLUDED_MAX: usize = 1_024;

/// The most files that are searched for the definition of one name. If more define it, the meant one is unknown.
const DEFINING_MAX: usize = 256;

/// The most definitions of one name that are reported.
const ALTERNATIVES_MAX: usize = 4;

/// The deepest chain of base classes, type names, and values of values.
const DEPTH_MAX: u32 = 24;

/// The symbols of one path, in the files that a file knows.
type Found = Rc<[(u32, u32)]>;

/// The results for one file so far.
#[derive(Default)]
pub(crate) struct Memo {
    included: BTreeMap<u32, Rc<BTreeSet<u32>>>,
    by_path: BTreeMap<Box<str>, Found>,
    guesses: BTreeMap<Box<str>, Option<Found>>,
    /// The steps that are left for the current call.
    steps_left: u32,
}

/// The most steps that one call may cost.
const STEPS_MAX: u32 = 4_000;

/// What a call leads to, and whether that is a guess.
pub(super) fn targets(resolver: &mut Resolver<'_>, one: &Use) -> Vec<(Target, bool)> {
    let files = resolver.files;
    let unknown = vec![(Target::Unknown(one.name), false)];
    let Some(outline) = files.outline(resolver.asking()) else { return unknown };
    resolver.memo.steps_left = STEPS_MAX;
    let (name, caller) = (outline.word(one.name), outline.path(one.caller));
    let mut names = Names { resolver, outline };
    let found = match one.way {
        CalleeKind::Bare => names.lookup(caller, name, 0),
        CalleeKind::Path { path, .. } => match outline.word(path).strip_prefix('.') {
            Some("") => names.at(name),
            Some(COPIED) => return names.made_before(caller, one, true),
            Some(top) => names.at(&format!("{top}.{name}")),
            None => match names.along(caller, outline.word(path), 0) {
                Some(of) => names.member(&of, name, 0),
                None => return names.guess(name).unwrap_or(unknown),
            },
        },
        CalleeKind::Instance(path) if outline.word(path).starts_with(NAMED_BASE) => {
            let written = outline.word(path).trim_start_matches(NAMED_BASE);
            match names.base_called(caller, name, &within(written, name)) {
                Some(found) => found,
                None => return Vec::new(),
            }
        }
        CalleeKind::Instance(path) => {
            let Some(of) = names.along(caller, outline.word(path), 0) else { return unknown };
            let found = names.member(&of, name, 0);
            if found.is_none() && names.gives_unknown(&of) {
                return names.guess(name).unwrap_or(unknown);
            }
            found
        }
        CalleeKind::Base => return names.made_before(caller, one, false),
        CalleeKind::Other { .. } => return names.guess(name).unwrap_or(unknown),
        _ => return unknown,
    };
    let told = match found {
        Some(found) => names.told(&found, false),
        // A function that no header declares is known by its name alone.
        None if one.way == CalleeKind::Bare => names.elsewhere(name),
        None => Vec::new(),
    };
    if told.is_empty() { unknown } else { told }
}

/// What a file defines, and where it is declared.
pub(super) fn declared(resolver: &mut Resolver<'_>) -> Vec<(u32, Target)> {
    let files = resolver.files;
    let Some(outline) = files.outline(resolver.asking()) else { return Vec::new() };
    let asking = resolver.asking();
    let mut edges = Vec::new();
    for (number, node) in (0_u32..).zip(&*outline.nodes) {
        if node.declared || !node.exported || !node.kind.is_callable() {
            continue;
        }
        resolver.memo.steps_left = STEPS_MAX;
        let mut names = Names { resolver, outline };
        let found = names.homes(outline.path(number)).iter().find_map(|path| {
            let found = names.at(path)?;
            let is_there = |(file, at): &&(u32, u32)| {
                *file != asking && names.node(*file, *at).is_some_and(|it| it.declared)
            };
            let others: Vec<(u32, u32)> = found.iter().filter(is_there).copied().collect();
            (!others.is_empty()).then_some(others)
        });
        let found = found.unwrap_or_default().into_iter().take(ALTERNATIVES_MAX);
        edges.extend(found.map(|(file, node)| (number, Target::Symbol { file, node })));
    }
    edges
}

/// Names as one file resolves them.
struct Names<'r, 'g> {
    resolver: &'r mut Resolver<'g>,
    /// The outline of the file that asks.
    outline: &'g Outline,
}

/// The scope around a name.
fn around(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |it| it.0)
}

fn within(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

impl<'g> Names<'_, 'g> {
    fn node(&self, file: u32, node: u32) -> Option<&'g Node> {
        self.resolver.files.outline(file).map(|outline| &outline.nodes[node as usize])
    }

    fn step(&mut self) -> Option<()> {
        let left = &mut self.resolver.memo.steps_left;
        *left = left.checked_sub(1)?;
        Some(())
    }

    /// The files that a file includes, itself among them.
    fn included(&mut self, file: u32) -> Rc<BTreeSet<u32>> {
        if let Some(known) = self.resolver.memo.included.get(&file) {
            return known.clone();
        }
        let (mut seen, mut waiting) = (BTreeSet::from([file]), vec![file]);
        while let Some(at) = waiting.pop() {
            self.resolver.depends_on(at);
            let Some(outline) = self.resolver.files.outline(at) else { continue };
            for (spec, _) in &*outline.stars {
                let Some(to) = self.resolver.files.link(at, *spec) else { continue };
                if seen.len() < INCLUDED_MAX && seen.insert(to) {
                    waiting.push(to);
                }
            }
        }
        let seen = Rc::new(seen);
        self.resolver.memo.included.insert(file, seen.clone());
        seen
    }

    /// The symbols of a whole path that this file knows.
    fn at(&mut self, path: &str) -> Option<Found> {
        if let Some(known) = self.resolver.memo.by_path.get(path) {
            return (!known.is_empty()).then(|| known.clone());
        }
        self.step()?;
        let known = self.included(self.resolver.asking());
        let name = path.rsplit('.').next().unwrap_or(path);
        let listed = self.resolver.adding_among(&key_of(name), &known);
        let files = self.resolver.files;
        // The list has no local names of functions.
        let own = self.resolver.asking();
        let there = listed.into_iter().filter(|file| *file != own).chain([own]);
        let found: Found = there
            .filter_map(|file| Some((file, files.outline(file)?.node(path)?)))
            .collect::<Vec<_>>()
            .into();
        self.resolver.memo.by_path.insert(path.into(), found.clone());
        (!found.is_empty()).then_some(found)
    }

    /// What a path may be called in full: behind a `using namespace`, a definition leaves the namespace out.
    fn homes(&self, path: &str) -> Vec<String> {
        let mut found = vec![path.to_owned()];
        for (spec, _) in &*self.outline.stars {
            let text = self.outline.word(self.outline.specs[*spec as usize]);
            found.extend(text.strip_prefix("using:").map(|namespace| within(namespace, path)));
        }
        found
    }

    /// A name by the scopes around, from the inside out; then by what `using` says.
    fn lookup(&mut self, scope: &str, name: &str, depth: u32) -> Option<Found> {
        if depth > DEPTH_MAX {
            return None;
        }
        for home in self.homes(scope) {
            let mut scope: &str = &home;
            loop {
                if let Some(found) = self.at(&within(scope, name)) {
                    return Some(found);
                }
                if scope.is_empty() {
                    break;
                }
                if let Some(class) = self.at(scope)
                    && let Some(found) = self.above(&class, name, depth + 1)
                {
                    return Some(found);
                }
                scope = around(scope);
            }
        }
        let outline = self.outline;
        let binding = outline.bindings_named(name).last()?;
        let Take::Name(path) = binding.take else { return None };
        let path = outline.word(path);
        if path == name { None } else { self.along("", path, depth + 1) }
    }

    /// Names behind each other; the first one is looked up; the instance around is the class of the function.
    fn along(&mut self, scope: &str, path: &str, depth: u32) -> Option<Found> {
        let mut names = path.split('.');
        let first = names.next()?;
        let mut found =
            if first == AROUND { self.class_around(scope)? } else { self.meant(scope, first, depth)? };
        for name in names {
            found = self.member(&found, name, depth + 1)?;
        }
        Some(found)
    }

    /// A name before others: no constructor, which has the name of its class.
    fn meant(&mut self, scope: &str, name: &str, depth: u32) -> Option<Found> {
        let found = self.lookup(scope, name, depth)?;
        if !self.is_constructor(&found) {
            return Some(found);
        }
        let (file, node) = *found.first()?;
        let path = self.resolver.files.outline(file)?.path(node);
        self.at(around(path))
    }

    fn class_around(&mut self, caller: &str) -> Option<Found> {
        for home in self.homes(caller) {
            let mut scope: &str = around(&home);
            while !scope.is_empty() {
                if let Some(found) = self.at(scope)
                    && found
                        .iter()
                        .any(|(file, node)| self.node(*file, *node).is_some_and(|it| it.kind == Kind::Class))
                {
                    return Some(found);
                }
                scope = around(scope);
            }
        }
        None
    }

    /// A member of a class or a namespace, or of the type of a value.
    fn member(&mut self, of: &Found, name: &str, depth: u32) -> Option<Found> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.step()?;
        let (file, node) = *of.first()?;
        let files = self.resolver.files;
        let path = files.outline(file)?.path(node);
        let is_scope = of.iter().any(|(file, node)| {
            self.node(*file, *node).is_some_and(|it| it.kind.has_members() || it.instance.is_none())
        });
        if is_scope && let Some(found) = self.at(&within(path, name)) {
            return Some(found);
        }
        for (file, node) in of.iter().copied() {
            let Some(outline) = files.outline(file) else { continue };
            let Some(class) = outline.nodes[node as usize].instance.map(|it| outline.word(it)) else {
                continue;
            };
            if class.is_empty() {
                return None;
            }
            let found = self.along(around(path), class, depth + 1).filter(|found| found != of);
            if let Some(found) = found.and_then(|found| self.member(&found, name, depth + 1)) {
                return Some(found);
            }
        }
        self.above(of, name, depth + 1)
    }

    /// A member of the classes that one extends, or of the type that a name stands for.
    fn above(&mut self, of: &Found, name: &str, depth: u32) -> Option<Found> {
        self.bases(of, depth).into_iter().find_map(|base| self.member(&base, name, depth + 1))
    }

    fn bases(&mut self, of: &Found, depth: u32) -> Vec<Found> {
        let files = self.resolver.files;
        let mut all = Vec::new();
        if depth > DEPTH_MAX {
            return all;
        }
        for (file, node) in of.iter().copied() {
            let Some(outline) = files.outline(file) else { continue };
            let path = outline.path(node);
            for base in &*outline.nodes[node as usize].bases {
                let found = self.along(around(path), outline.word(*base), depth + 1);
                all.extend(found.filter(|found| found != of));
            }
        }
        all
    }

    /// What a constructor calls before its code: what makes a base, or a field that is an instance of a class. A value that a field gets may be
    /// a copy, which no constructor of the class has to make.
    fn made_before(&mut self, constructor: &str, one: &Use, may_be_copied: bool) -> Vec<(Target, bool)> {
        let (unknown, name) = (vec![(Target::Unknown(one.name), false)], self.outline.word(one.name));
        let (found, guess) = match self.base_called(constructor, name, name) {
            Some(Some(found)) => (found, false),
            Some(None) => return unknown,
            None => match self.field_made(constructor, name) {
                Some(made) => (made, may_be_copied),
                // It gives a value to a field.
                None => return Vec::new(),
            },
        };
        let told = self.told(&found, guess);
        if told.is_empty() { unknown } else { told }
    }

    /// Returns the constructor of the class that a field is an instance of, if that class declares one.
    fn field_made(&mut self, constructor: &str, name: &str) -> Option<Found> {
        let files = self.resolver.files;
        for (file, node) in self.class_around(constructor)?.iter().copied() {
            let Some(path) = files.outline(file).map(|outline| outline.path(node)) else { continue };
            let Some(field) = self.at(&within(path, name)) else { continue };
            for (file, node) in field.iter().copied() {
                let Some(outline) = files.outline(file) else { continue };
                let it = &outline.nodes[node as usize];
                let Some(class) = it.bases.first().filter(|_| it.kind == Kind::Field) else { continue };
                let class = outline.word(*class);
                let found = self.along(path, class, 1)?;
                let last = class.rsplit('.').next().unwrap_or(class);
                return self.member(&found, last, 1).filter(|made| self.is_constructor(made));
            }
        }
        None
    }

    /// What makes the base of this name for the class of a constructor; within, none of a base that no file defines. None where the class
    /// has no such base. The path is the name as it is written, which says which one of several bases of this name is meant.
    fn base_called(&mut self, constructor: &str, name: &str, written: &str) -> Option<Option<Found>> {
        let class = self.class_around(constructor)?;
        let files = self.resolver.files;
        let last = |path: &'g str| path.rsplit('.').next().unwrap_or(path);
        for (file, node) in class.iter().copied() {
            let Some(outline) = files.outline(file) else { continue };
            let path = outline.path(node);
            let bases = outline.nodes[node as usize].bases.iter().map(|base| outline.word(*base));
            let bases: Vec<&str> = bases.filter(|base| last(base) == name).collect();
            if !bases.is_empty() {
                let meant = if bases.len() > 1 { self.along(path, written, 1) } else { None };
                let found = bases.iter().find_map(|base| {
                    let found = self.along(around(path), base, 1);
                    found.filter(|it| bases.len() == 1 || meant.as_ref() == Some(it))
                });
                let Some(found) = found else { return Some(None) };
                let made = self.member(&found, name, 1).filter(|made| self.is_constructor(made));
                return Some(Some(made.unwrap_or(found)));
            }
            // Another constructor of its own.
            if last(path) == name {
                return Some(self.member(&class, name, 1).filter(|made| self.is_constructor(made)));
            }
        }
        None
    }

    fn is_constructor(&self, found: &Found) -> bool {
        let is_one = |(file, node): &(u32, u32)| {
            self.node(*file, *node).is_some_and(|it| it.kind == Kind::Constructor)
        };
        found.iter().any(is_one)
    }

    /// Whether a value is that of a function that does not say what it gives back.
    fn gives_unknown(&self, of: &Found) -> bool {
        of.iter().any(|(file, node)| {
            self.node(*file, *node).is_some_and(|it| !it.kind.has_members() && it.instance.is_none())
        })
    }

    // The answers for the definitions and declarations that were found.

    /// The definitions, wherever they are, and the declarations.
    fn told(&mut self, found: &Found, guess: bool) -> Vec<(Target, bool)> {
        let mut found = found.clone();
        // An instance of the type that a name stands for is made.
        for _ in 0..4 {
            let is_alias = found
                .iter()
                .all(|(file, node)| self.node(*file, *node).is_some_and(|it| it.kind == Kind::TypeAlias));
            match self.bases(&found, 0).into_iter().next().filter(|_| is_alias) {
                Some(base) => found = base,
                None => break,
            }
        }
        let all: Vec<((u32, u32), &Node)> = found
            .iter()
            .filter_map(|it| Some((*it, self.node(it.0, it.1)?)))
            .filter(|it| it.1.kind != Kind::Namespace)
            .collect();
        let Some((first, kind)) = all.first().map(|it| (it.0, it.1.kind)) else { return Vec::new() };
        let asking = self.resolver.asking();
        type Both<'n> = Vec<((u32, u32), &'n Node)>;
        let (declared, mut defined): (Both<'_>, Both<'_>) = all.iter().copied().partition(|it| it.1.declared);
        if defined.iter().any(|it| it.0.0 == asking) {
            defined.retain(|it| it.0.0 == asking);
        }
        let mut defined: Vec<(u32, u32)> = defined.into_iter().map(|it| it.0).collect();
        let mut is_sure = true;
        if defined.is_empty() && !kind.has_members() {
            let path = self.resolver.files.outline(first.0).map_or("", |outline| outline.path(first.1));
            let declaring: Vec<u32> = declared.iter().map(|it| it.0.0).collect();
            (defined, is_sure) = self.defined(path, &declaring);
        }
        let several = defined.len() > 1;
        defined.sort_by_key(|it| self.resolver.files.path(it.0));
        let symbol = |(file, node): (u32, u32)| Target::Symbol { file, node };
        let defined =
            defined.into_iter().take(ALTERNATIVES_MAX).map(|it| (symbol(it), guess || several || !is_sure));
        let mut declared: Vec<(u32, u32)> = declared.into_iter().map(|it| it.0).collect();
        declared.sort_by_key(|it| self.resolver.files.path(it.0));
        let declared = declared.into_iter().take(ALTERNATIVES_MAX).map(|it| (symbol(it), guess));
        defined.chain(declared).collect()
    }

    /// The definitions of what other files declare, and whether they include one of these files.
    fn defined(&mut self, path: &str, declaring: &[u32]) -> (Vec<(u32, u32)>, bool) {
        let files = self.resolver.files;
        let name = path.rsplit('.').next().unwrap_or(path);
        let listed = self.resolver.adding_at_most(&key_of(name), DEFINING_MAX);
        let mut all: Vec<(u32, u32)> = Vec::new();
        for file in listed {
            let Some(outline) = files.outline(file) else { continue };
            let mut at = outline.node(path);
            for (spec, _) in &*outline.stars {
                let namespace = outline.word(outline.specs[*spec as usize]).strip_prefix("using:");
                let rest = namespace.and_then(|it| path.strip_prefix(it)).and_then(|it| it.strip_prefix('.'));
                at = at.or_else(|| outline.node(rest?));
            }
            let Some(node) = at else { continue };
            self.resolver.depends_on(file);
            let it = &outline.nodes[node as usize];
            if !it.declared && it.exported {
                all.push((file, node));
            }
        }
        if declaring.is_empty() {
            return (all, false);
        }
        let includes = |names: &mut Self, file: u32| {
            let links = files.outline(file).map_or(&[][..], |outline| &outline.stars);
            let is_direct = links
                .iter()
                .any(|(spec, _)| files.link(file, *spec).is_some_and(|to| declaring.contains(&to)));
            is_direct || names.included(file).iter().any(|it| declaring.contains(it))
        };
        let sure: Vec<(u32, u32)> = all.iter().filter(|it| includes(self, it.0)).copied().collect();
        if sure.is_empty() { (all, false) } else { (sure, true) }
    }

    /// The only definition of a name at the top of a file that this file does not know.
    fn elsewhere(&mut self, name: &str) -> Vec<(Target, bool)> {
        let (all, _) = self.defined(name, &[]);
        match all[..] {
            [(file, node)] => vec![(Target::Symbol { file, node }, true)],
            _ => Vec::new(),
        }
    }

    /// The only member of a name that this file knows.
    fn guess(&mut self, name: &str) -> Option<Vec<(Target, bool)>> {
        if self.outline.language.has_built_in(name) {
            return None;
        }
        if !self.resolver.memo.guesses.contains_key(name) {
            let found = self.only_member(name);
            self.resolver.memo.guesses.insert(name.into(), found);
        }
        let found = self.resolver.memo.guesses.get(name).cloned().flatten()?;
        let told = self.told(&found, true);
        (!told.is_empty()).then_some(told)
    }

    fn only_member(&mut self, name: &str) -> Option<Found> {
        let known = self.included(self.resolver.asking());
        let files = self.resolver.files;
        let listed = self.resolver.adding_among(&key_of(name), &known);
        let mut paths: BTreeSet<&str> = BTreeSet::new();
        for file in listed {
            let Some(outline) = files.outline(file) else { continue };
            let is_it = |node: &&Node| {
                let of_class = node.parent.is_some_and(|it| outline.nodes[it as usize].kind.has_members());
                let is_member = matches!(node.kind, Kind::Method) || (node.kind == Kind::Field && of_class);
                is_member && outline.word(node.name) == name
            };
            paths.extend(outline.nodes.iter().filter(is_it).map(|node| outline.word(node.path)));
        }
        let only = paths.pop_first()?;
        if paths.is_empty() { self.at(only) } else { None }
    }
}
