//! The walk over a parsed file: once through all nodes, without recursion.
//!
//! The walk knows the surroundings of a node: which symbol contains it, and to which function its calls
//! belong. A [`Dialect`](super::lang::Dialect) decides the meaning of a node, and calls back to record
//! symbols, calls and imports.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use tree_sitter::{Node, Tree};

use super::canon::Scribe;
use super::lang::Inside;
use super::language::Table;
use super::locals::Seen;
use super::notes::Notes;
use super::reading::{Facts, Limit, Together, offset};
use super::within::Within;
use super::{
    Call, Callee, Export, Exported, Form, Import, Kind, Language, Receiver, Signature, Symbol, Trouble,
};
use provost_base::limits::{
    CLASS_BASES_MAX, LOST_NAMES_MAX, SOURCE_DEPTH_MAX, SOURCE_FACTS_MAX, SOURCE_TEXT_MIN,
    SOURCE_TEXT_PER_BYTE, SYMBOL_LEN_MAX,
};

/// The surroundings of the nodes at one place.
#[derive(Clone, Copy, Default)]
pub(super) struct Scope {
    /// The innermost symbol around, as a number; `None` at the top of the file.
    pub(super) owner: Option<u32>,
    /// The function to which calls belong.
    pub(super) caller: Option<u32>,
    /// A constant or field that becomes the caller for unnamed functions in its value: `x = memo(() => …)`.
    named_after: Option<u32>,
    /// How many functions are open, named or not.
    pub(super) functions: u32,
    /// The object whose members are the owner's, by its node.
    pub(super) object: Option<usize>,
}

/// A node above the current one.
#[derive(Clone, Copy)]
pub(super) struct Above {
    pub(super) kind: u8,
    pub(super) id: usize,
    start: u32,
    end: u32,
}

impl Above {
    /// The bytes of the node, as on disk.
    pub(super) fn range(&self) -> Range<u32> {
        self.start..self.end
    }
}

/// Decorators that wait for the symbol that they decorate.
pub(super) struct Decorators {
    pub(super) depth: usize,
    pub(super) start: usize,
    /// The end of the last of them.
    pub(super) end: usize,
    pub(super) first_call: usize,
    pub(super) note: Note,
}

/// The effect of decorators on a function.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Note {
    #[default]
    None,
    Overload,
    Getter,
    Setter,
}

/// A symbol as a dialect describes it.
pub(super) struct Found<'n> {
    pub(super) name: &'n str,
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
    pub(super) signature: Option<Result<Signature, Broken>>,
    pub(super) overload: bool,
    pub(super) declared: bool,
    pub(super) seen: Seen,
    /// Whether its type is written.
    pub(super) typed: bool,
}

impl<'n> Found<'n> {
    pub(super) fn new(name: &'n str, kind: Kind, range: Range<usize>) -> Self {
        Self {
            name,
            kind,
            range,
            signature: None,
            overload: false,
            declared: false,
            seen: Seen::Unknown,
            typed: false,
        }
    }
}

/// A signature that does not parse.
pub(super) struct Broken;

/// A walk and what it has found so far.
pub(super) struct Walk<'a> {
    pub(super) source: &'a [u8],
    table: &'static Table,
    pub(super) language: Language,
    limit: &'a Limit<'a>,
    pub(super) facts: Facts,
    pub(super) above: Vec<Above>,
    /// The surroundings of the current node.
    pub(super) scope: Scope,
    /// Scopes that end with a node at that depth, each with its surroundings.
    scopes: Vec<(usize, Scope)>,
    /// Functions, classes and calls that were recorded together with the name of which they are the value.
    claimed: HashSet<usize>,
    pub(super) decorators: Option<Decorators>,
    pub(super) notes: Notes,
    pub(super) inside: Inside,
    /// Symbols that belong to another one by name, wherever they are: `X.prototype.f = …`.
    adopted: Vec<(u32, Box<str>)>,
    errors: Option<(u32, u32)>,
    /// The end of the innermost error around the current node.
    error_end: usize,
    /// The names of what is called, each once.
    called: HashSet<Arc<str>>,
    text_left: usize,
    full: Option<u32>,
    deep: Option<u32>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        language: Language,
        source: &'a [u8],
        limit: &'a Limit<'a>,
        facts: Facts,
        macros: Vec<Range<u32>>,
    ) -> Self {
        Self {
            source,
            table: language.table(),
            language,
            limit,
            facts,
            above: Vec::new(),
            scope: Scope::default(),
            scopes: Vec::new(),
            claimed: HashSet::new(),
            decorators: None,
            notes: Notes { masked: macros, ..Notes::default() },
            inside: Inside::default(),
            adopted: Vec::new(),
            errors: None,
            error_end: 0,
            called: HashSet::new(),
            text_left: SOURCE_TEXT_MIN.saturating_add(source.len().saturating_mul(SOURCE_TEXT_PER_BYTE)),
            full: None,
            deep: None,
        }
    }

    /// Everything that there is to find.
    pub(super) fn over(mut self, tree: &Tree) -> Facts {
        let dialect = self.language.dialect();
        let mut node = tree.root_node();
        let has_errors = node.has_error();
        let mut levels: Vec<Within<'_>> = Vec::new();
        let mut nodes: u32 = 0;
        'nodes: loop {
            nodes = nodes.wrapping_add(1);
            if nodes.is_multiple_of(NODES_AT_ONCE)
                && let Some(trouble) = self.limit.reached()
            {
                self.facts.trouble.push(trouble);
                break;
            }
            if has_errors {
                self.note_errors(node);
            }
            let kind = self.table.kind(node.kind_id());
            let inside = kind == 0 || (dialect.enter)(&mut self, node, kind);
            if inside && node.child_count() > 0 && !self.is_too_deep(node) {
                let (start, end) = (offset(node.start_byte()), offset(node.end_byte()));
                self.above.push(Above { kind, id: node.id(), start, end });
                levels.push(Within::of(node));
            } else {
                self.leave();
            }
            loop {
                let Some(level) = levels.last_mut() else { break 'nodes };
                if let Some(next) = level.next() {
                    node = next;
                    break;
                }
                levels.pop();
                self.above.pop();
                self.leave();
            }
        }
        for (shared_to, symbols) in std::mem::take(&mut self.notes.declared_by).into_values() {
            if symbols.len() > 1 {
                self.facts.together.push(Together { symbols: symbols.into(), shared_to });
            }
        }
        (dialect.finish)(&mut self);
        if self.facts.trouble == [Trouble::Generated] {
            return self.facts;
        }
        let errors = self.errors.map(|(first, count)| Trouble::ParseErrors { first, count });
        let full = self.full.map(|at| Trouble::TooMany { at });
        let deep = self.deep.map(|at| Trouble::TooDeep { at });
        self.facts.trouble.extend(deep.into_iter().chain(full).chain(errors));
        self.facts
    }

    // The nodes around the current node.

    /// The kind of the node that many levels up; 0 is the parent.
    pub(super) fn kind_above(&self, levels: usize) -> u8 {
        self.above.iter().rev().nth(levels).map_or(0, |above| above.kind)
    }

    /// The kind of the innermost symbol around.
    pub(super) fn owner_kind(&self) -> Option<Kind> {
        self.scope.owner.map(|owner| self.facts.symbols[owner as usize].kind)
    }

    /// Notes that a node was recorded already, as part of a node above it.
    pub(super) fn claim(&mut self, node: Node<'_>) {
        self.claimed.insert(node.id());
    }

    /// Whether a node was recorded already.
    pub(super) fn is_claimed(&mut self, node: Node<'_>) -> bool {
        self.claimed.remove(&node.id())
    }

    pub(super) fn field<'t>(&self, node: Node<'t>, field: u8) -> Option<Node<'t>> {
        let field = self.table.field(field);
        if field == 0 { None } else { node.child_by_field_id(field) }
    }

    pub(super) fn kind_of(&self, node: Node<'_>) -> u8 {
        self.table.kind(node.kind_id())
    }

    /// A node's text; what is not UTF-8 is marked as such.
    pub(super) fn text(&self, node: Node<'_>) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.source.get(node.byte_range()).unwrap_or_default())
    }

    /// Whether a node is this punctuation or keyword.
    pub(super) fn is_token(&self, node: Node<'_>, token: &str) -> bool {
        !node.is_named() && self.source.get(node.byte_range()) == Some(token.as_bytes())
    }

    /// Where the innermost node above of some kinds begins and ends.
    pub(super) fn range_above(&self, is_one: impl Fn(u8) -> bool) -> Option<Range<u32>> {
        self.above.iter().rev().find(|above| is_one(above.kind)).map(Above::range)
    }

    // Locals: the names that functions have for themselves.

    /// Records a parameter or a variable of a function.
    pub(super) fn local(&mut self, name: &str, scope: Range<u32>, seen: Seen, typed: bool) {
        if self.spend(name.len()) {
            self.facts.locals.add(name, scope, seen, typed);
        }
    }

    /// What is known of a value by the path of its type, which stands at a node. A parameter of types stands for its bound.
    pub(super) fn of_path(&self, path: String, at: Node<'_>) -> Seen {
        match self.facts.locals.seen(&path, offset(at.start_byte())) {
            Some(Seen::Of(bound)) => Seen::Of(bound.clone()),
            Some(_) => Seen::Unknown,
            None => Seen::Of(path.into()),
        }
    }

    /// Records that a function assigns to a name from outside of it.
    pub(super) fn outside(&mut self, name: &str, scope: Range<u32>) {
        if self.spend(name.len()) {
            self.facts.locals.assigns_outside(name, scope);
        }
    }

    // Opening scopes. They end with the current node.

    /// A symbol around everything in the current node.
    pub(super) fn open(&mut self, symbol: Option<u32>) {
        self.scopes.push((self.above.len(), self.scope));
        let Some(at) = symbol else { return };
        let kind = self.facts.symbols[at as usize].kind;
        self.scope.owner = Some(at);
        self.scope.object = None;
        if kind.is_callable() {
            self.scope.caller = Some(at);
            self.scope.named_after = None;
            self.scope.functions += 1;
        } else if matches!(kind, Kind::Variable | Kind::Field) {
            self.scope.named_after = Some(at);
        }
    }

    /// A function without a name of its own.
    pub(super) fn open_anonymous(&mut self) {
        self.scopes.push((self.above.len(), self.scope));
        self.scope.caller = self.scope.named_after.or(self.scope.caller);
        self.scope.functions += 1;
        self.scope.object = None;
    }

    /// An object whose members are those of the owner.
    pub(super) fn open_object(&mut self, object: Node<'_>) {
        self.scopes.push((self.above.len(), self.scope));
        self.scope.object = Some(object.id());
    }

    /// Opens a part that runs for the owner itself: its decorators.
    pub(super) fn open_for_owner(&mut self) {
        self.scopes.push((self.above.len(), self.scope));
        self.scope.caller = self.scope.caller.or(self.scope.owner);
    }

    fn leave(&mut self) {
        let depth = self.above.len();
        while let Some((at, before)) = self.scopes.last().copied()
            && at >= depth
        {
            self.scope = before;
            self.scopes.pop();
        }
    }

    // Recording: symbols, calls and imports, within bounds.

    /// Records a symbol within the owner; none if there is no room for it.
    pub(super) fn symbol(&mut self, found: Found<'_>) -> Option<u32> {
        let owner = self.scope.owner;
        let before = owner.map(|owner| &*self.facts.symbols[owner as usize].path);
        let path = before.map_or_else(|| found.name.into(), |before| format!("{before}.{}", found.name));
        self.symbol_at(path, found)
    }

    /// Records a symbol with a path that does not follow from where it is.
    pub(super) fn symbol_at(&mut self, path: String, found: Found<'_>) -> Option<u32> {
        let decorators = self.decorators.take_if(|decorators| decorators.depth == self.above.len());
        let start = decorators
            .as_ref()
            .map_or(found.range.start, |decorators| decorators.start.min(found.range.start));
        let room = self.facts.symbols.len() < SOURCE_FACTS_MAX && path.len() <= self.text_left;
        if found.name.is_empty() || path.len() > SYMBOL_LEN_MAX || !room {
            self.full = self.full.or(Some(offset(found.range.start)));
            return None;
        }
        self.text_left -= path.len();
        let at = offset(self.facts.symbols.len());
        self.facts.symbols.push(Symbol {
            name_len: offset(found.name.len()),
            path: path.into(),
            kind: found.kind,
            range: offset(start)..offset(found.range.end),
            parent: self.scope.owner,
            unparsable: matches!(found.signature, Some(Err(Broken))),
            signature: found.signature.and_then(Result::ok),
            overload: found.overload,
            declared: found.declared,
            exported: false,
            bases: Box::default(),
            instance: None,
        });
        if found.typed || matches!(found.kind, Kind::Variable | Kind::Field) {
            self.facts.locals.value(at, found.seen, found.typed);
        }
        // Outside functions nothing calls a decorator but what it decorates.
        let caller = self.scope.caller;
        if let Some(decorators) = decorators.filter(|_| self.scope.functions == 0) {
            for call in
                self.facts.calls[decorators.first_call..].iter_mut().filter(|call| call.caller == caller)
            {
                call.caller = Some(at);
            }
        }
        Some(at)
    }

    /// Records a symbol that belongs to another one by name: `f` of `X.f = …`; `this` is the class around.
    pub(super) fn symbol_of(&mut self, of: &str, found: Found<'_>) -> Option<u32> {
        if of != "this" {
            let at = self.symbol_at(format!("{of}.{}", found.name), found)?;
            self.adopted.push((at, of.into()));
            return Some(at);
        }
        let mut around = self.scope.owner;
        while let Some(at) = around {
            let symbol = &self.facts.symbols[at as usize];
            if symbol.kind == Kind::Class {
                let path = format!("{}.{}", symbol.path, found.name);
                return self.symbol_at(path, found);
            }
            around = symbol.parent;
        }
        None
    }

    /// Gives symbols to those whose members they are by name.
    pub(super) fn adopt(&mut self) {
        let symbols = &mut self.facts.symbols;
        let mut tops = HashMap::new();
        for (at, symbol) in (0..).zip(symbols.iter()).filter(|(_, symbol)| symbol.parent.is_none()) {
            tops.entry(symbol.path.clone()).or_insert(at);
        }
        for (at, of) in std::mem::take(&mut self.adopted) {
            let symbol = &mut symbols[at as usize];
            symbol.parent = tops.get(&of).copied().filter(|of| *of < at).or(symbol.parent);
        }
    }

    /// Local names of what is exported.
    pub(super) fn exported_names(&self) -> HashSet<Box<str>> {
        let local = |export: &Export| match &export.what {
            Exported::Local(name) => Some(name.clone()),
            Exported::Passed { .. } => None,
        };
        self.facts.exports.iter().filter_map(local).collect()
    }

    /// Marks what others can import, with everything in it.
    pub(super) fn mark_exported(&mut self, is_exported: impl Fn(&Symbol) -> bool) {
        for at in 0..self.facts.symbols.len() {
            let symbol = &self.facts.symbols[at];
            let exported = match symbol.parent {
                Some(parent) => self.facts.symbols[parent as usize].exported,
                None => is_exported(symbol),
            };
            self.facts.symbols[at].exported = exported;
        }
    }

    /// Says what a class extends.
    pub(super) fn bases(&mut self, class: Option<u32>, bases: Vec<Box<str>>) {
        if let Some(symbol) = class.and_then(|class| self.facts.symbols.get_mut(class as usize)) {
            symbol.bases = bases.into_iter().take(CLASS_BASES_MAX).collect();
        }
    }

    /// Says that a symbol is declared by a declaration that may declare several: where that begins, and where what they share
    /// ends.
    pub(super) fn declared_by(&mut self, declaration: Node<'_>, shared_to: usize, symbol: Option<u32>) {
        self.declared_at(offset(declaration.start_byte()), shared_to, symbol);
    }

    /// The same, by the place at which the declaration begins.
    pub(super) fn declared_at(&mut self, begins: u32, shared_to: usize, symbol: Option<u32>) {
        let Some(symbol) = symbol else { return };
        let known = self.notes.declared_by.entry(begins).or_insert_with(|| (offset(shared_to), Vec::new()));
        known.1.push(symbol);
    }

    /// A name that a symbol has within itself.
    pub(super) fn alias(&mut self, name: &str, symbol: Option<u32>) {
        if let Some(symbol) =
            symbol.filter(|_| self.facts.aliases.len() < SOURCE_FACTS_MAX && self.spend(name.len()))
        {
            self.facts.aliases.push((name.into(), symbol));
        }
    }

    pub(super) fn call(&mut self, at: Node<'_>, name: &str, receiver: Receiver, form: Form) {
        if self.facts.calls.len() >= SOURCE_FACTS_MAX || !self.spend(name.len()) {
            self.full = self.full.or(Some(offset(at.start_byte())));
            return;
        }
        let name = self.called.get(name).cloned().unwrap_or_else(|| {
            let name: Arc<str> = name.into();
            self.called.insert(Arc::clone(&name));
            name
        });
        let callee = Callee { name, receiver, form };
        self.facts.calls.push(Call { caller: self.scope.caller, callee, at: offset(at.start_byte()) });
    }

    /// Records an import; its number, if there is room.
    pub(super) fn import(&mut self, mut import: Import) -> Option<u32> {
        let text = import.from.len() + 64 * import.names.len();
        if self.facts.imports.len() >= SOURCE_FACTS_MAX || !self.spend(text) {
            self.full = self.full.or(Some(import.at));
            return None;
        }
        import.within = self.scope.owner;
        self.facts.imports.push(import);
        Some(offset(self.facts.imports.len() - 1))
    }

    pub(super) fn export(&mut self, at: Node<'_>, export: Export) {
        if self.facts.exports.len() >= SOURCE_FACTS_MAX || !self.spend(2 * export.name.len()) {
            self.full = self.full.or(Some(offset(at.start_byte())));
        } else {
            self.facts.exports.push(export);
        }
    }

    /// Remembers a decorator of what follows at the same depth.
    pub(super) fn decorated(&mut self, node: Node<'_>, note: Note) {
        let depth = self.above.len();
        match &mut self.decorators {
            Some(known) if known.depth == depth => {
                known.note = if note == Note::None { known.note } else { note };
            }
            _ => {
                self.decorators = Some(Decorators {
                    depth,
                    start: node.start_byte(),
                    end: node.end_byte(),
                    first_call: self.facts.calls.len(),
                    note,
                });
            }
        }
    }

    /// The effect of the decorators before the current node on it.
    pub(super) fn decorators_say(&self) -> Note {
        let here = self.decorators.as_ref().filter(|decorators| decorators.depth == self.above.len());
        here.map_or(Note::None, |decorators| decorators.note)
    }

    /// Writes a signature of some nodes and words, unless all of the file have become too long together.
    pub(super) fn sign(
        &mut self,
        length: usize,
        write: impl FnOnce(&mut Scribe<'a>),
    ) -> Option<Result<Signature, Broken>> {
        // Signatures may lie within others; together they cost no more than the file allows.
        if !self.spend(length) {
            return None;
        }
        let mut scribe = Scribe::new(self.source, self.table);
        write(&mut scribe);
        let signed = scribe.finish();
        self.spend(signed.as_ref().map_or(0, |signed| signed.text.len() + signed.canon.len()));
        Some(signed.ok_or(Broken))
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.text_left
    }

    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let enough = self.has_room(bytes);
        self.text_left = self.text_left.saturating_sub(bytes);
        enough
    }

    // Trouble: reasons to leave out a part of the file.

    fn is_too_deep(&mut self, node: Node<'_>) -> bool {
        let deep = self.above.len() >= SOURCE_DEPTH_MAX;
        if deep {
            self.deep = self.deep.or(Some(offset(node.start_byte())));
        }
        deep
    }

    fn note_errors(&mut self, node: Node<'_>) {
        if node.is_error() || node.is_missing() {
            let (first, count) = self.errors.unwrap_or((offset(node.start_byte()), 0));
            self.errors = Some((first, count.saturating_add(1)));
            self.error_end = self.error_end.max(node.end_byte());
        }
        // An identifier within an error may be the name of a symbol that got lost there.
        if node.start_byte() >= self.error_end || !node.is_named() || node.child_count() > 0 {
            return;
        }
        let text = self.text(node);
        // A symbol of Ruby may be the name of what a call defines.
        let name = text.strip_prefix(':').unwrap_or(&text);
        let is_name = name.len() <= SYMBOL_LEN_MAX
            && name
                .chars()
                .next()
                .is_some_and(|first| first.is_alphabetic() || matches!(first, '_' | '$' | '#'));
        if is_name && self.facts.lost.len() < LOST_NAMES_MAX {
            self.facts.lost.insert(name.into());
        } else if is_name {
            self.facts.lost_too_many = true;
        }
    }
}

/// How many nodes are visited between two checks of the time.
const NODES_AT_ONCE: u32 = 4_096;
