//! The local names of functions, and the classes of their values, as far as the file shows them.
//!
//! A walk collects them; once everything was read, they determine the receiver of each call. A name that a
//! parameter or a variable has taken is no import, and an instance of a known class has the
//! methods of that class.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use super::calls::Near;
use super::{Call, Kind, Reading, Receiver};
use provost_base::limits::{NAMESAKES_MAX, SOURCE_FACTS_MAX};

/// The value of a name, as far as the file shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// No value yet: `null`, or no assignment.
    Unset,
    /// A value of unknown type.
    Unknown,
    /// A value of one of the language's own types: a list, a string.
    BuiltIn,
    /// An instance of the class of this name, as it is written: `Store`, `ns.Store`.
    Of(Box<str>),
    /// Values of several classes, or of a class that a parameter or a variable holds.
    Several,
}

impl Seen {
    /// The receiver of a call of one of its members, if it is known.
    pub(super) fn receiver(self) -> Option<Receiver> {
        match self {
            Self::Of(class) => Some(Receiver::Instance(class)),
            Self::BuiltIn => Some(Receiver::BuiltIn),
            Self::Several => Some(Receiver::Several),
            Self::Unset | Self::Unknown => None,
        }
    }

    /// The value of a name that may have either.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unset, seen) | (seen, Self::Unset) => seen,
            (one, other) if one == other => one,
            (Self::Several, _) | (_, Self::Several) => Self::Several,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Of(_) | Self::BuiltIn, Self::Of(_) | Self::BuiltIn) => Self::Several,
        }
    }
}

/// The known part of a value, and whether its type is written, so that no assignment changes it.
#[derive(Clone, Debug)]
struct InferredValue {
    seen: Seen,
    typed: bool,
}

impl InferredValue {
    fn more(&mut self, seen: Seen, typed: bool) {
        let before = std::mem::replace(&mut self.seen, Seen::Unknown);
        self.seen = match () {
            // Of several methods of one name each has a type of its own.
            () if typed && self.typed && before != seen => Seen::Several,
            () if typed => seen,
            () if self.typed => before,
            () => before.or(seen),
        };
        self.typed |= typed;
    }
}

/// A parameter or a variable of a function; `this.x` for a field that is set in the methods of a class.
#[derive(Debug)]
struct Local {
    name: Box<str>,
    /// The part of the file in which it is known, in bytes.
    scope: Range<u32>,
    known: InferredValue,
}

/// An assignment to a name that is not known as a local.
#[derive(Debug)]
struct Assigned {
    name: Box<str>,
    at: u32,
    /// The symbol around the assignment, as a number; `None` at the top of the file.
    owner: Option<u32>,
    seen: Seen,
}

/// All locals of a file.
#[derive(Default, Debug)]
pub(super) struct Locals {
    all: Vec<Local>,
    by_name: HashMap<Box<str>, Vec<u32>>,
    /// The known values of symbols: constants and fields.
    values: Vec<(u32, InferredValue)>,
    assigned: Vec<Assigned>,
    /// Outer names that functions assign to, each with the part of the file in which
    /// the name is an outer one.
    outside: HashMap<Box<str>, Vec<Range<u32>>>,
}

impl Locals {
    /// Takes a local in, or a further value of one.
    pub(super) fn add(&mut self, name: &str, scope: Range<u32>, seen: Seen, typed: bool) {
        if self.all.len() >= SOURCE_FACTS_MAX || name.is_empty() {
            return;
        }
        let same = self.named(name).find(|at| self.all[*at as usize].scope == scope);
        if let Some(same) = same {
            return self.all[same as usize].known.more(seen, typed);
        }
        let at = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(Local { name: name.into(), scope, known: InferredValue { seen, typed } });
        match self.by_name.get_mut(name) {
            Some(all) => all.push(at),
            None => drop(self.by_name.insert(name.into(), vec![at])),
        }
    }

    /// Takes in what is seen of the value of a symbol.
    pub(super) fn value(&mut self, symbol: u32, seen: Seen, typed: bool) {
        self.values.push((symbol, InferredValue { seen, typed }));
    }

    /// Takes in that a name is given a value at a place, within a symbol.
    pub(super) fn assign(&mut self, name: &str, at: u32, owner: Option<u32>, seen: Seen) {
        match self.around(name, at) {
            Some(known) => self.all[known as usize].known.more(seen, false),
            None if self.assigned.len() < SOURCE_FACTS_MAX => {
                self.assigned.push(Assigned { name: name.into(), at, owner, seen });
            }
            None => {}
        }
    }

    /// Takes in that a name is given a value at a place, for all parts of a scope around the place in which more is known of the name.
    pub(super) fn assign_within(&mut self, scope: &Range<u32>, name: &str, at: u32, seen: &Seen) {
        let is_part = |it: &Range<u32>| it.contains(&at) && scope.start <= it.start && it != scope;
        let parts: Vec<u32> = self.named(name).filter(|it| is_part(&self.all[*it as usize].scope)).collect();
        for part in parts {
            self.all[part as usize].known.more(seen.clone(), false);
        }
    }

    /// Takes in that a function assigns to a name from outside of it.
    pub(super) fn assigns_outside(&mut self, name: &str, scope: Range<u32>) {
        self.outside.entry(name.into()).or_default().push(scope);
    }

    /// Whether a name is one from outside of the function around.
    pub(super) fn is_outside(&self, name: &str, at: u32) -> bool {
        let scopes = self.outside.get(name).into_iter().flatten();
        scopes.rev().take(NAMESAKES_MAX).any(|scope| scope.contains(&at))
    }

    /// The value of a name at a place, as far as it is known by now.
    pub(super) fn seen(&self, name: &str, at: u32) -> Option<&Seen> {
        self.around(name, at).map(|known| &self.all[known as usize].known.seen)
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

/// The locals in order, for queries about any place. Scopes of one name are nested or disjoint.
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
        self.number_around(name, at).map(|number| &self.all[number as usize])
    }

    fn number_around(&self, name: &str, at: u32) -> Option<u32> {
        let behind = self.all.partition_point(|it| (&*it.name, it.scope.start) <= (name, at));
        let mut next = behind.checked_sub(1).and_then(|last| u32::try_from(last).ok());
        while let Some(number) = next {
            let local = &self.all[number as usize];
            if *local.name != *name {
                return None;
            }
            if local.scope.contains(&at) {
                return Some(number);
            }
            next = self.outer[number as usize];
        }
        None
    }
}

/// Says of each call what the locals make of the name that it begins with.
pub(super) fn settle(reading: &mut Reading, mut locals: Locals) {
    let (values, assigned) = (std::mem::take(&mut locals.values), std::mem::take(&mut locals.assigned));
    let mut locals = Sorted::of(locals);
    settle_values(reading, &mut locals, values, assigned);
    let mut calls = std::mem::take(&mut reading.calls);
    for call in &mut calls {
        if let Some(receiver) = settled(reading, &locals, call) {
            call.callee.receiver = receiver;
        }
    }
    reading.calls = calls;
}

/// Says of constants and fields what they are by all the values that the file gives them.
fn settle_values(
    reading: &mut Reading,
    locals: &mut Sorted,
    values: Vec<(u32, InferredValue)>,
    assigned: Vec<Assigned>,
) {
    let symbols: Vec<u32> = values.iter().map(|(symbol, _)| *symbol).collect();
    let mut all: HashMap<Box<str>, InferredValue> = HashMap::new();
    for (symbol, known) in values {
        let symbol = &reading.symbols[symbol as usize];
        match all.get_mut(&symbol.path) {
            Some(before) => before.more(known.seen, known.typed),
            None => drop(all.insert(symbol.path.clone(), known)),
        }
    }
    for it in assigned {
        if let Some(local) = locals.number_around(&it.name, it.at) {
            locals.all[local as usize].known.more(it.seen, false);
        } else if let Some(found) = reading.in_scope(it.owner, &it.name)
            && let Some(known) = all.get_mut(&reading.symbols[found as usize].path)
        {
            known.more(it.seen, false);
        }
    }
    for symbol in symbols {
        let it = &reading.symbols[symbol as usize];
        let Some(known) = all.get_mut(&it.path) else { continue };
        if let Some(set) = locals.around(&format!("this.{}", it.name()), it.range.start) {
            known.more(set.known.seen.clone(), set.known.typed);
        }
        reading.symbols[symbol as usize].instance = known.seen.clone().receiver();
    }
}

/// The receiver of a call, where it is another one than the written one.
fn settled(reading: &Reading, locals: &Sorted, call: &Call) -> Option<Receiver> {
    match &call.callee.receiver {
        Receiver::None if !reading.language.calls_variables() => None,
        Receiver::None => local(reading, locals, call, &call.callee.name).map(|_| Receiver::Local),
        Receiver::Path(path) => match path.split_once('.') {
            Some(("this", field)) => Some(of_field(reading, locals, call, path, field)),
            Some((first, rest)) => match local(reading, locals, call, first) {
                Some(local) => Some(match &local.known.seen {
                    // The types of fields are written where they are.
                    Seen::Of(class) if reading.language.has_typed_members() => {
                        Receiver::Instance(format!("{class}.{rest}").into())
                    }
                    _ => Receiver::Other,
                }),
                None => of_member(reading, call, first, rest),
            },
            None => match local(reading, locals, call, path) {
                Some(local) => Some(local.known.seen.clone().receiver().unwrap_or(Receiver::Other)),
                None => {
                    let found = reading.in_scope(call.caller, path)?;
                    let symbol = &reading.symbols[found as usize];
                    // Else it is looked up from there.
                    symbol
                        .instance
                        .clone()
                        .filter(|it| means_the_same(reading, call.caller, symbol.parent, it))
                }
            },
        },
        Receiver::Instance(class) => {
            let first = class.split('.').next().unwrap_or(class);
            local(reading, locals, call, first).map(|_| Receiver::Several)
        }
        _ => None,
    }
}

/// `a.b` before a call, where `a` is a member that is known by its name alone.
fn of_member(reading: &Reading, call: &Call, first: &str, rest: &str) -> Option<Receiver> {
    if !reading.language.has_open_types() {
        return None;
    }
    let symbol = &reading.symbols[reading.in_scope(call.caller, first)? as usize];
    match &symbol.instance {
        Some(it @ Receiver::Instance(class)) if means_the_same(reading, call.caller, symbol.parent, it) => {
            Some(Receiver::Instance(format!("{class}.{rest}").into()))
        }
        _ => None,
    }
}

/// Whether the class of a value is the same one for a caller and where the value is.
fn means_the_same(reading: &Reading, caller: Option<u32>, there: Option<u32>, value: &Receiver) -> bool {
    let Receiver::Instance(class) = value else { return true };
    let first = class.split('.').next().unwrap_or(class);
    reading.nearest(caller, first) == reading.nearest(there, first)
}

/// The local that a name stands for at a call, unless something that is defined within its reach has the name.
fn local<'l>(reading: &Reading, locals: &'l Sorted, call: &Call, name: &str) -> Option<&'l Local> {
    let local = locals.around(name, call.at)?;
    let begins = |at: u32| reading.symbols[at as usize].range.start;
    let nearer = match reading.nearest(call.caller, name) {
        Near::Symbol(found) => local.scope.contains(&begins(found)),
        Near::Import { within, .. } => local.scope.contains(&begins(within)),
        Near::Nothing => false,
    };
    (!nearer).then_some(local)
}

/// The value of `this.x` before a call.
fn of_field(reading: &Reading, locals: &Sorted, call: &Call, path: &str, field: &str) -> Receiver {
    let (field, rest) = field.split_once('.').unwrap_or((field, ""));
    let path =
        if rest.is_empty() { path } else { path.strip_suffix(rest).unwrap_or(path).trim_end_matches('.') };
    let class = reading.class_around(call.caller);
    let declared = class.and_then(|class| {
        let symbol = &reading.symbols[reading.child(Some(class), field)? as usize];
        matches!(symbol.kind, Kind::Field | Kind::Variable | Kind::Getter).then(|| symbol.instance.clone())
    });
    let set = || locals.around(path, call.at).and_then(|local| local.known.seen.clone().receiver());
    let above = || {
        let class = &reading.symbols[class? as usize];
        let is_elsewhere = reading.language.has_typed_members() && class.kind.has_members();
        is_elsewhere.then(|| Receiver::Instance(format!("{}.{field}", class.name()).into()))
    };
    let known = match &declared {
        Some(declared) => declared.clone(),
        // A class above may say it.
        None => set().or_else(above),
    };
    // The value in the class has been compared with the values that its methods set.
    match known {
        Some(value) if means_the_same(reading, call.caller, class, &value) => match value {
            value if rest.is_empty() => value,
            Receiver::Instance(of) if reading.language.has_typed_members() => {
                Receiver::Instance(format!("{of}.{rest}").into())
            }
            _ => Receiver::Other,
        },
        Some(_) if !rest.is_empty() => Receiver::Other,
        Some(_) => Receiver::Several,
        None => Receiver::Other,
    }
}
