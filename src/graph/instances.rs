//! Classes of values: the meaning of a class's name at its place, and the target of a call on an instance of the class.

use super::Target;
use super::interned_names::NameId;
use super::outline::{Outline, Use};
use super::resolve::{Resolver, Value};
use provost_syntax::{BOTH, ELSEWHERE, Given, HOLDS, Kind, TAKEN_OUT};

/// The highest number of type aliases, each for the next, that are followed.
const ALIASES_MAX: usize = 8;

impl<'g> Resolver<'g> {
    /// The target of a call of a member, on an instance of a class. Of a value of several classes at once, the first one counts that
    /// has the member.
    pub(super) fn of_classes(&mut self, one: &Use, written: &str) -> (Target, bool) {
        let name = self.outline.word(one.name);
        let (before, last) = written.rsplit_once(BOTH).map_or((None, written), |(a, b)| (Some(a), b));
        for written in before.into_iter().flat_map(|it| it.split(BOTH)) {
            let class = self.class(self.at, self.outline, Some(one.caller), written, 0);
            if class.is_some_and(|class| self.member(class, name, 0).is_some()) {
                return self.of_instance(one, written, class);
            }
        }
        let class = self.class(self.at, self.outline, Some(one.caller), last, 0);
        self.of_instance(one, last, class)
    }

    /// What a call of a member leads to, on an instance of a class whose name is known; whether that is a guess. Where the code of a
    /// class is guessed for what an interface declares, the declaration is noted.
    pub(super) fn of_instance(&mut self, one: &Use, written: &str, class: Option<Value>) -> (Target, bool) {
        let name = self.outline.word(one.name);
        if self.outline.language.has_typed_members() && class.is_some_and(|it| self.gives_unknown(it)) {
            return self.guess_of(one, class, None);
        }
        if class.is_none() && self.outline.rules().guesses_behind_unknown && written.contains('.') {
            return self.guess_of(one, None, None);
        }
        let found = class.and_then(|class| self.member(class, name, 0));
        let found = found.or_else(|| self.extension(written, name).filter(|_| class.is_none()));
        let found = found.or_else(|| self.of_library(written, name).filter(|_| class.is_none()));
        let is_open = match found.or(class) {
            // An interface declares the member, and some class has its code.
            Some(Value::Symbol { file, node }) => self.is_open(file, node, found.is_some()),
            Some(Value::Module(_)) => true,
            None => false,
        };
        let declared = found.and_then(|found| self.called(found));
        if is_open {
            let (target, guess) = match (self.outline.rules().code_of, found) {
                (Some(look), Some(Value::Symbol { file, node })) => {
                    let code = look(self, (file, node)).and_then(|code| self.called(code));
                    code.map_or((Target::Unknown(one.name), false), |code| (code, true))
                }
                _ => self.guess_of(one, class, None),
            };
            return match (target, declared) {
                (Target::Unknown(_), Some(declared)) => (declared, false),
                _ => {
                    self.declared = declared.filter(|_| self.outline.rules().declaration_counts);
                    (target, guess)
                }
            };
        }
        if let Some(code) = found.and_then(|found| self.in_place_of(found)) {
            self.declared = declared;
            return (code, true);
        }
        (declared.unwrap_or(Target::Unknown(one.name)), false)
    }

    /// The only code that a class has in place of what an interface does for classes without any.
    fn in_place_of(&mut self, found: Value) -> Option<Target> {
        let (look, Value::Symbol { file, node }) = (self.outline.rules().code_of?, found) else {
            return None;
        };
        let outline = self.files.outline(file)?;
        let around = &outline.nodes[outline.nodes[node as usize].parent? as usize];
        if around.kind != Kind::Interface {
            return None;
        }
        look(self, (file, node)).and_then(|code| self.called(code))
    }

    /// The class that a name means in a file, at a place within a symbol.
    pub(super) fn class(
        &mut self,
        file: u32,
        outline: &'g Outline,
        around: Option<u32>,
        name: &str,
        depth: u32,
    ) -> Option<Value> {
        let mut names = name.split('.');
        let Some(first) = self.in_file(file, outline, around, names.next()?, depth) else {
            return self.by_path(file, name, depth).filter(|_| name.contains('.'));
        };
        let (mut value, mut held) = (first, 0);
        for name in names {
            (value, held) = match name {
                TAKEN_OUT if held > 0 => (value, held - 1),
                TAKEN_OUT => self.taken_out(value, depth)?,
                // A type that holds a value has other members than the value.
                _ if held > 0 => return None,
                _ => match Given::place(name) {
                    Some(place) => (self.given(value, place, depth)?, 0),
                    None => (self.member(value, name, depth)?, 0),
                },
            };
        }
        (held == 0).then_some(value)
    }

    /// The class of what a value holds, and how often that is held itself.
    fn taken_out(&mut self, of: Value, depth: u32) -> Option<(Value, usize)> {
        let Some(written) = self.instance(of) else {
            // Of what is not known, nothing more is known.
            return self.gives_unknown(of).then_some((of, 0));
        };
        let Value::Symbol { file, node } = of else { return None };
        let outline = self.outline_of(file)?;
        let inner = written.trim_end_matches(HOLDS);
        let held = (written.len() - inner.len()).checked_sub(1)?;
        let class = self.class(file, outline, outline.nodes[node as usize].parent, inner, depth + 1)?;
        Some((class, held))
    }

    /// Whether a value is that of a function that does not say what it gives back.
    fn gives_unknown(&self, value: Value) -> bool {
        let Value::Symbol { file, node } = value else { return false };
        let Some(outline) = self.files.outline(file) else { return true };
        let node = &outline.nodes[node as usize];
        node.kind.is_callable() && node.instance.is_none()
    }

    /// Whether the member of an instance may be another one than what its type shows: that of an interface, or of
    /// something that is no class.
    fn is_open(&self, file: u32, node: u32, is_member: bool) -> bool {
        let Some(outline) = self.files.outline(file) else { return true };
        let node = &outline.nodes[node as usize];
        if is_member { node.declared } else { node.kind != Kind::Class }
    }

    /// What makes an instance of a type of this file where nothing is written that does: the type itself, wherever it is defined.
    pub(super) fn implied(&mut self, of: u32) -> Option<Value> {
        let outline = self.outline;
        let is_part = |base: &NameId| outline.word(*base).starts_with(ELSEWHERE);
        if outline.nodes[of as usize].bases.iter().any(is_part) {
            return self.bases(self.asking(), of, 0).into_iter().next();
        }
        Some(Value::Symbol { file: self.asking(), node: of })
    }

    /// The class of what a function gives, at a place, to a function that it is given.
    fn given(&mut self, of: Value, (argument, parameter): (u8, u8), depth: u32) -> Option<Value> {
        let depth = self.step(depth)?;
        let Value::Symbol { file, node } = of else { return None };
        let outline = self.outline_of(file)?;
        let it = &outline.nodes[node as usize];
        if let (Kind::Class, Some(made)) = (it.kind, outline.rules().implied) {
            let made = self.member(of, made, depth)?;
            return self.given(made, (argument, parameter), depth);
        }
        let said = |argument, parameter| outline.given(node, argument, parameter).map(|it| outline.word(it));
        if let Some(class) = said(argument, parameter) {
            return self.class(file, outline, Some(node), class, depth);
        }
        // The type of the argument has a name, and says elsewhere what it is.
        let named = said(argument, Given::ALL)?;
        let named = self.class(file, outline, Some(node), named, depth)?;
        let is_type = matches!(named, Value::Symbol { file, node } if self.is_type_alias(file, node));
        if is_type { self.given(named, (Given::ITSELF, parameter), depth) } else { None }
    }

    /// The type for which a type alias is another name.
    pub(super) fn behind_alias(&mut self, target: Target) -> Option<Target> {
        let Target::Symbol { mut file, mut node } = target else { return None };
        for _ in 0..ALIASES_MAX {
            if !self.is_type_alias(file, node) {
                break;
            }
            let Value::Symbol { file: of, node: at } = self.bases(file, node, 0).into_iter().next()? else {
                return None;
            };
            (file, node) = (of, at);
        }
        let behind = Target::Symbol { file, node };
        self.depends_on(file);
        (behind != target).then_some(behind)
    }

    /// A member that other files add to what a type of the language's own library keeps to.
    pub(super) fn of_library(&mut self, of: &str, name: &str) -> Option<Value> {
        let look = self.outline.rules().of_library?;
        look(self, of, name)
    }

    fn is_type_alias(&self, file: u32, node: u32) -> bool {
        self.files.outline(file).is_some_and(|it| it.nodes[node as usize].kind == Kind::TypeAlias)
    }
}
