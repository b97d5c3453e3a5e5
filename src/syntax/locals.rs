//! Names that functions have for themselves, and the classes of what they stand for, as far as the file shows.
//!
//! A walk collects them; once everything was read, they say what stands before each call. A name that a parameter or a
//! variable has taken is no import, and the instance of a class that can be seen has the methods of that class.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use super::{Call, Kind, Reading, Receiver};
use crate::base::limits::{NAMESAKES_MAX, SOURCE_FACTS_MAX};

/// What is seen of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// No value yet: `null`, or nothing.
    Unset,
    /// Some value.
    Unknown,
    /// A value of a type that the language brings: a list, a string.
    BuiltIn,
    /// An instance of the class of this name, as it is written: `Store`, `ns.Store`.
    Of(Box<str>),
}

impl Seen {
    /// What stands before a call of one of its members, if it is known.
    pub(super) fn receiver(self) -> Option<Receiver> {
        match self {
            Self::Of(class) => Some(Receiver::Instance(class)),
            Self::BuiltIn => Some(Receiver::BuiltIn),
            Self::Unset | Self::Unknown => None,
        }
    }
}

/// A parameter or a variable of a function; `this.x` for a field that is set in the methods of a class.
#[derive(Debug)]
struct Local {
    name: Box<str>,
    /// The part of the file that knows it, in bytes.
    scope: Range<u32>,
    seen: Seen,
    /// Its type stands there, so that no assignment changes it.
    typed: bool,
}

/// All locals of a file.
#[derive(Default, Debug)]
pub(super) struct Locals {
    all: Vec<Local>,
    by_name: HashMap<Box<str>, Vec<u32>>,
}

impl Locals {
    /// Takes a local in, or a further value of one.
    pub(super) fn add(&mut self, name: &str, scope: Range<u32>, seen: Seen, typed: bool) {
        if self.all.len() >= SOURCE_FACTS_MAX || name.is_empty() {
            return;
        }
        let same = self.named(name).find(|at| self.all[*at as usize].scope == scope);
        if let Some(same) = same {
            return self.more(same, seen, typed);
        }
        let at = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(Local { name: name.into(), scope, seen, typed });
        self.by_name.entry(name.into()).or_default().push(at);
    }

    /// Takes in that a name is given a value at a place.
    pub(super) fn assign(&mut self, name: &str, at: u32, seen: Seen) {
        if let Some(known) = self.around(name, at) {
            self.more(known, seen, false);
        }
    }

    /// What is known so far of a name at a place.
    pub(super) fn seen(&self, name: &str, at: u32) -> Option<&Seen> {
        self.around(name, at).map(|known| &self.all[known as usize].seen)
    }

    fn more(&mut self, known: u32, seen: Seen, typed: bool) {
        let local = &mut self.all[known as usize];
        local.seen = match (&local.seen, seen) {
            (_, seen) if typed => seen,
            (before, _) if local.typed => before.clone(),
            (Seen::Unset, seen) => seen,
            (before, Seen::Unset) => before.clone(),
            (before, seen) if *before == seen => seen,
            _ => Seen::Unknown,
        };
        local.typed |= typed;
    }

    /// The last ones of a name, the latest first.
    fn named(&self, name: &str) -> impl Iterator<Item = u32> + '_ {
        self.by_name.get(name).into_iter().flatten().rev().take(NAMESAKES_MAX).copied()
    }

    /// The innermost one around a place, during the walk, when outer ones have come before inner ones.
    fn around(&self, name: &str, at: u32) -> Option<u32> {
        self.named(name).find(|known| self.all[*known as usize].scope.contains(&at))
    }
}

/// Locals in order, for questions about any place. Scopes of one name lie within each other or apart.
struct Sorted {
    all: Vec<Local>,
    /// The next outer one of the same name.
    outer: Vec<Option<u32>>,
}

impl Sorted {
    fn of(locals: Locals) -> Self {
        let mut all = locals.all;
        all.sort_by(|a, b| {
            (&a.name, a.scope.start, Reverse(a.scope.end)).cmp(&(
                &b.name,
                b.scope.start,
                Reverse(b.scope.end),
            ))
        });
        let mut outer = Vec::with_capacity(all.len());
        let mut open: Vec<u32> = Vec::new();
        for (at, local) in (0..).zip(&all) {
            while open.last().is_some_and(|last| {
                let last = &all[*last as usize];
                last.name != local.name || last.scope.end <= local.scope.start
            }) {
                open.pop();
            }
            outer.push(open.last().copied());
            open.push(at);
        }
        Self { all, outer }
    }

    /// The innermost local of a name around a place.
    fn around(&self, name: &str, at: u32) -> Option<&Local> {
        let behind = self.all.partition_point(|it| (&*it.name, it.scope.start) <= (name, at));
        let mut next = behind.checked_sub(1).and_then(|last| u32::try_from(last).ok());
        while let Some(number) = next {
            let local = &self.all[number as usize];
            if *local.name != *name {
                return None;
            }
            if local.scope.contains(&at) {
                return Some(local);
            }
            next = self.outer[number as usize];
        }
        None
    }
}

/// Says of each call what the locals make of the name that it begins with.
pub(super) fn settle(reading: &mut Reading, locals: Locals) {
    let locals = Sorted::of(locals);
    let mut calls = std::mem::take(&mut reading.calls);
    for call in &mut calls {
        if let Some(receiver) = settled(reading, &locals, call) {
            call.callee.receiver = receiver;
        }
    }
    reading.calls = calls;
}

/// What stands before a call, where that is something else than what is written there.
fn settled(reading: &Reading, locals: &Sorted, call: &Call) -> Option<Receiver> {
    match &call.callee.receiver {
        Receiver::None => local(reading, locals, call, &call.callee.name).map(|_| Receiver::Local),
        Receiver::Path(path) => match path.split_once('.') {
            Some(("this", field)) => Some(of_field(reading, locals, call, path, field)),
            Some((first, _)) => local(reading, locals, call, first).map(|_| Receiver::Other),
            None => match local(reading, locals, call, path) {
                Some(local) => Some(local.seen.clone().receiver().unwrap_or(Receiver::Other)),
                None => {
                    let found = reading.in_scope(call.caller, path)?;
                    reading.symbols[found as usize].instance.clone()
                }
            },
        },
        _ => None,
    }
}

/// The local that a name stands for at a call, unless something that is defined within its reach has the name.
fn local<'l>(reading: &Reading, locals: &'l Sorted, call: &Call, name: &str) -> Option<&'l Local> {
    let local = locals.around(name, call.at)?;
    let found = reading.in_scope(call.caller, name);
    let nearer = found.is_some_and(|at| local.scope.contains(&reading.symbols[at as usize].range.start));
    (!nearer).then_some(local)
}

/// What `this.x` is before a call.
fn of_field(reading: &Reading, locals: &Sorted, call: &Call, path: &str, field: &str) -> Receiver {
    if field.contains('.') {
        return Receiver::Other;
    }
    let declared = reading.class_around(call.caller).and_then(|class| {
        let symbol = &reading.symbols[reading.child(Some(class), field)? as usize];
        let is_value = matches!(symbol.kind, Kind::Field | Kind::Variable);
        symbol.instance.clone().filter(|_| is_value)
    });
    let set = || locals.around(path, call.at).and_then(|local| local.seen.clone().receiver());
    declared.or_else(set).unwrap_or(Receiver::Other)
}
