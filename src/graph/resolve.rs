//! Resolves the target of a call: through scopes, imports, re-exports of other modules, and superclasses.

use std::collections::{BTreeMap, BTreeSet};

use super::lang::Memo;
use super::outline::{Binding, CalleeKind, Offered, Outline, Take, Use};
use super::{Edge, Files, FoundBy, Target};
use provost_base::limits::{RESOLVE_DEPTH_MAX, RESOLVE_STEPS_MAX};
use provost_syntax::Kind;

/// The most imports of one name that are tried if any of them may apply.
const ALTERNATIVES_MAX: usize = 4;

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Value {
    Symbol { file: u32, node: u32 },
    Module(u32),
}

/// The result of following a path of names.
enum Along {
    Found(Value),
    /// The first name is imported from outside the repository, or from a missing module.
    Outside,
    /// The first name is imported, and its value has no known member with the next name.
    Instance(Value),
    /// The first name is not imported.
    Unknown,
}

/// The calls of one file, with the facts on which they depend.
pub(super) struct Resolved {
    pub(super) edges: Vec<Edge>,
    /// Other files that were examined.
    pub(super) deps: Vec<u32>,
    /// The keys by which the calls depend on other files' definitions and extensions.
    pub(super) asked: BTreeSet<Box<str>>,
}

/// Resolves the calls of one file.
pub(super) struct Resolver<'g> {
    pub(super) files: &'g Files,
    pub(super) at: u32,
    pub(super) outline: &'g Outline,
    /// Other files that were examined.
    deps: BTreeSet<u32>,
    pub(super) steps_left: u32,
    /// If several imports of a name may apply: the number of the one that is tried, and
    /// how many there are.
    which: usize,
    alternatives: usize,
    /// Modules whose stars are being searched for one name, with the name that is looked for in each.
    pub(super) open: BTreeSet<(u32, String)>,
    /// The keys by which the calls depend on other files' definitions and extensions.
    asked: BTreeSet<Box<str>>,
    /// The results so far of a family of languages that follows calls in its own way.
    pub(super) memo: Memo,
    /// Members of imported classes, by name; `None` for a name that several have. Made when first asked for.
    pub(super) imported: Option<BTreeMap<&'g str, Option<(u32, u32)>>>,
    /// The definition that a file means, if several files define a key.
    pub(super) chosen: BTreeMap<(u32, String), Option<(u32, u32)>>,
    /// Whether the present search has met a class that is not in the repository.
    pub(super) met_unknown: bool,
    /// Whether the search found a member after such a class, which may have that member, too.
    pub(super) is_behind_unknown: bool,
    /// What an interface declares, of a call for which the code of a class is guessed.
    pub(super) declared: Option<Target>,
    /// The modules of files, where other files say them: the folder of the package, and the name.
    pub(super) modules: BTreeMap<u32, (String, String)>,
}

impl<'g> Resolver<'g> {
    pub(super) fn new(files: &'g Files, at: u32, outline: &'g Outline) -> Self {
        let (deps, open, asked) = Default::default();
        Self {
            files,
            at,
            outline,
            deps,
            steps_left: 0,
            which: 0,
            alternatives: 1,
            open,
            asked,
            memo: Memo::default(),
            imported: None,
            chosen: BTreeMap::new(),
            met_unknown: false,
            is_behind_unknown: false,
            declared: None,
            modules: BTreeMap::new(),
        }
    }

    /// All edges of the file, and that on which they depend.
    pub(super) fn run(mut self) -> Resolved {
        let (mut edges, mut known) = (Vec::new(), BTreeMap::new());
        let mut tell = |caller: u32, target: Target, found: FoundBy| {
            let at = *known.entry((caller, target)).or_insert(edges.len());
            match edges.get_mut(at) {
                None => edges.push(Edge { caller, target, found }),
                // Of two ways to one target, the surer one counts.
                Some(edge) if found == FoundBy::Rules => edge.found = found,
                Some(_) => {}
            }
        };
        for one in &*self.outline.uses {
            for (target, guess) in self.targets(one) {
                tell(one.caller, target, if guess { FoundBy::Guess } else { FoundBy::Rules });
            }
        }
        if let Some(follows) = self.outline.rules().follows {
            for (caller, target) in (follows.declared)(&mut self) {
                tell(caller, target, FoundBy::Rules);
            }
        }
        self.deps.remove(&self.at);
        Resolved { edges, deps: self.deps.into_iter().collect(), asked: self.asked }
    }

    /// The targets of a call. A call of another name for a type makes an instance of the type, and leads to both.
    fn targets(&mut self, one: &Use) -> Vec<(Target, bool)> {
        (self.which, self.alternatives, self.steps_left) = (0, 1, RESOLVE_STEPS_MAX);
        if let Some(follows) = self.outline.rules().follows {
            return (follows.targets)(self, one);
        }
        let mut all = self.targets_by_name(one);
        if let Some(namesakes) = self.outline.rules().namesakes {
            self.with_namesakes(namesakes, one.caller, &mut all);
        }
        for (target, guess) in all.clone() {
            all.extend(self.behind_alias(target).map(|behind| (behind, guess)));
        }
        all
    }

    /// The targets of a call by its name; where one of several imports counts, the target by each of them, as guesses.
    fn targets_by_name(&mut self, one: &Use) -> Vec<(Target, bool)> {
        self.declared = None;
        let first = self.target(one);
        let mut all = vec![first];
        while self.which + 1 < self.alternatives.min(ALTERNATIVES_MAX) {
            self.which += 1;
            self.steps_left = RESOLVE_STEPS_MAX;
            all.push(self.target(one));
        }
        if all.len() == 1 {
            // That much is certain, also where it is what was guessed.
            let certain = self.declared.take().map(|declared| (declared, false));
            return certain.into_iter().chain(all).collect();
        }
        all.retain(|(target, _)| !matches!(target, Target::Unknown(_)));
        if all.is_empty() { vec![first] } else { all.into_iter().map(|(target, _)| (target, true)).collect() }
    }

    fn target(&mut self, one: &Use) -> (Target, bool) {
        (self.met_unknown, self.is_behind_unknown) = (false, false);
        let (target, guess) = self.target_as_known(one);
        (target, guess || (self.is_behind_unknown && !matches!(target, Target::Unknown(_))))
    }

    /// The target of a call by what is known of the classes on the way.
    fn target_as_known(&mut self, one: &Use) -> (Target, bool) {
        let name = self.outline.word(one.name);
        let found = match one.way {
            CalleeKind::Here(node) => Some(Value::Symbol { file: self.at, node }),
            CalleeKind::Bare => self.bare(one.caller, name),
            CalleeKind::Path { path, guess } => match self.along(one.caller, self.outline.word(path)) {
                Along::Found(value) => match self.member(value, name, 0) {
                    None if self.instance(value).is_none() => {
                        return self.guess_of(one, Some(value), guess);
                    }
                    found => found,
                },
                Along::Instance(value) => return self.guess_of(one, Some(value), guess),
                along => match self.by_path(self.at, &format!("{}.{name}", self.outline.word(path)), 0) {
                    None if matches!(along, Along::Unknown) => return self.guess_of(one, None, guess),
                    found => found,
                },
            },
            CalleeKind::Member { of, guess } => {
                // Of a class everything is known; what it lacks, it has from outside the repository.
                let is_class = self.outline.nodes[of as usize].kind == Kind::Class;
                match self.member(Value::Symbol { file: self.at, node: of }, name, 0) {
                    None if !is_class => return self.guess_of(one, None, guess),
                    None if self.outline.rules().implied == Some(name) => self.implied(of),
                    found => found,
                }
            }
            CalleeKind::Above(of) => self.above(self.at, of, name, 0).or_else(|| {
                // A member that every class has leads to the class itself if the class does not write it.
                let base = self.bases(self.at, of, 0).into_iter().next();
                base.filter(|_| self.outline.rules().implied == Some(name))
            }),
            CalleeKind::Instance(class) => return self.of_classes(one, self.outline.word(class)),
            CalleeKind::Given { class, guess } => {
                let written = self.outline.word(class);
                return match self.class(self.at, self.outline, Some(one.caller), written, 0) {
                    Some(class) => self.of_instance(one, written, Some(class)),
                    None => self.guess_of(one, None, guess),
                };
            }
            CalleeKind::Nowhere | CalleeKind::Base => None,
            CalleeKind::Other { guess } => return self.guess_of(one, None, guess),
        };
        (found.and_then(|value| self.called(value)).unwrap_or(Target::Unknown(one.name)), false)
    }

    /// The function that runs when a value is called.
    pub(super) fn called(&mut self, value: Value) -> Option<Target> {
        match value {
            Value::Symbol { file, node } => Some(Target::Symbol { file, node }),
            Value::Module(file) => {
                let rules = self.files.outline(file)?.rules();
                let mut names = [rules.whole, rules.default].into_iter().flatten();
                match names.find_map(|name| self.export(file, name, 0))? {
                    Value::Symbol { file, node } => Some(Target::Symbol { file, node }),
                    Value::Module(_) => None,
                }
            }
        }
    }

    pub(super) fn step(&mut self, depth: u32) -> Option<u32> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        (depth < RESOLVE_DEPTH_MAX).then_some(depth + 1)
    }

    pub(super) fn outline_of(&mut self, file: u32) -> Option<&'g Outline> {
        self.deps.insert(file);
        self.files.outline(file)
    }

    /// A name that stands alone and is not defined in this file.
    fn bare(&mut self, caller: u32, name: &str) -> Option<Value> {
        if let Some(binding) = self.binding(caller, name) {
            return self.last_bound(self.at, binding, name, 0);
        }
        self.around(self.at, Some(caller), name, 0).or_else(|| {
            if self.outline.rules().stars_bind { self.through_stars(self.at, name, 0) } else { None }
        })
    }

    /// A name that a file does not say the meaning of, at a place within a symbol, by its language's own rules.
    fn around(&mut self, file: u32, around: Option<u32>, name: &str, depth: u32) -> Option<Value> {
        let outline = self.files.outline(file)?;
        let look = outline.rules().around?;
        let depth = self.step(depth)?;
        look(self, (file, around), name, depth)
    }

    /// The import that makes a name known to a symbol; the innermost, of these the last.
    fn binding(&mut self, caller: u32, name: &str) -> Option<&'g Binding> {
        let outline = self.outline;
        let is_visible = |it: &&Binding| it.within.is_none_or(|within| is_known_to(outline, caller, within));
        let visible: Vec<&Binding> = outline.bindings_named(name).filter(is_visible).collect();
        let innermost = visible.iter().map(|it| it.within).max()?;
        self.taken(visible.into_iter().filter(|it| it.within == innermost).collect())
    }

    /// Of imports of one name in one place the last, or one of those that may count instead.
    fn taken(&mut self, all: Vec<&'g Binding>) -> Option<&'g Binding> {
        let last = all.last().copied()?;
        if !last.either {
            return Some(last);
        }
        let either: Vec<&Binding> = all.into_iter().rev().take_while(|it| it.either).collect();
        self.alternatives = self.alternatives.max(either.len());
        either.get(self.which).or(either.last()).copied()
    }

    fn along(&mut self, caller: u32, path: &str) -> Along {
        // `import a.b` makes `a.b` known as well as `a`, so the longest counts.
        let mut end = path.len();
        let (binding, rest) = loop {
            if let Some(binding) = self.binding(caller, &path[..end]) {
                break (binding, path[end..].trim_start_matches('.'));
            }
            match path[..end].rfind('.') {
                Some(dot) => end = dot,
                None => return self.along_stars(caller, path),
            }
        };
        let Some(mut value) = self.bound(self.at, binding, 0) else {
            return self.by_path(self.at, path, 0).map_or(Along::Outside, Along::Found);
        };
        for name in rest.split('.').filter(|name| !name.is_empty()) {
            match self.member(value, name, 0) {
                Some(inner) => value = inner,
                None => return Along::Instance(value),
            }
        }
        Along::Found(value)
    }

    /// A path whose first name no import has, and maybe a star or another file.
    fn along_stars(&mut self, caller: u32, path: &str) -> Along {
        let mut names = path.split('.');
        let first = names.next().unwrap_or(path);
        let rules = self.outline.rules();
        let mut found = self.around(self.at, Some(caller), first, 0);
        if found.is_none() && rules.stars_bind && rules.folder_is_module {
            found = self.through_stars(self.at, first, 0);
        }
        let Some(mut value) = found else {
            if let Some(found) = self.by_path(self.at, path, 0) {
                return Along::Found(found);
            }
            // Where all files are looked through, a name of a type that none has is one of a library.
            let is_outside = rules.only_one.is_some()
                && first.starts_with(|it: char| it.is_uppercase() || matches!(it, ':' | '\\'));
            return if is_outside { Along::Outside } else { Along::Unknown };
        };
        for name in names {
            match self.member(value, name, 0) {
                Some(inner) => value = inner,
                None => return Along::Instance(value),
            }
        }
        Along::Found(value)
    }

    /// The thing that an import of a file stands for, unless a star behind it takes the same name in.
    fn last_bound(&mut self, file: u32, binding: &Binding, name: &str, depth: u32) -> Option<Value> {
        let outline = self.files.outline(file)?;
        if outline.rules().stars_bind && binding.within.is_none() {
            let later = outline.stars.iter().rev().filter(|(_, at)| *at > binding.at);
            for (spec, _) in later.copied().collect::<Vec<_>>() {
                if let Some(value) = self.through_star(file, spec, name, depth) {
                    return Some(value);
                }
            }
        }
        self.bound(file, binding, depth)
    }

    /// The thing that an import of a file stands for.
    pub(super) fn bound(&mut self, file: u32, binding: &Binding, depth: u32) -> Option<Value> {
        let depth = self.step(depth)?;
        let outline = self.files.outline(file)?;
        let module = self.files.link(file, binding.spec);
        let value = match binding.take {
            Take::Module => module.map(Value::Module),
            Take::Name(name) => module.and_then(|module| self.export(module, outline.word(name), depth)),
        };
        value
            .or_else(|| {
                let module = self.files.link(file, binding.or_module?)?;
                Some(Value::Module(module))
            })
            .or_else(|| {
                let Take::Name(name) = binding.take else { return None };
                let from = outline.word(outline.specs[binding.spec as usize]);
                let before = if from.is_empty() { String::new() } else { format!("{from}.") };
                self.by_path(file, &format!("{before}{}", outline.word(name)), depth)
            })
    }

    /// A function that other files give to the types of a name, which may be of outside the repository.
    pub(super) fn extension(&mut self, of: &str, name: &str) -> Option<Value> {
        let look = self.outline.rules().extension?;
        look(self, of.rsplit('.').next().unwrap_or(of), name)
    }

    /// What a whole path means, by the language's own rules for namespaces.
    pub(super) fn by_path(&mut self, file: u32, path: &str, depth: u32) -> Option<Value> {
        let look = self.files.outline(file)?.rules().by_path?;
        let depth = self.step(depth)?;
        look(self, file, path, depth)
    }

    /// The thing that a module offers under a name.
    pub(super) fn export(&mut self, file: u32, name: &str, depth: u32) -> Option<Value> {
        let depth = self.step(depth)?;
        let outline = self.outline_of(file)?;
        (outline.rules().export)(self, file, outline, name, depth)
    }

    /// The thing that stands behind an export of a file.
    pub(super) fn offered(
        &mut self,
        file: u32,
        outline: &'g Outline,
        what: Offered,
        depth: u32,
    ) -> Option<Value> {
        match what {
            Offered::Local(local) => self.at_top(file, outline, outline.word(local), depth),
            Offered::Passed { spec, take: Take::Module } => self.files.link(file, spec).map(Value::Module),
            Offered::Passed { spec, take: Take::Name(name) } => {
                let module = self.files.link(file, spec)?;
                self.export(module, outline.word(name), depth)
            }
        }
    }

    /// The thing that a name stands for at the top of a file: an import, or a symbol.
    pub(super) fn at_top(
        &mut self,
        file: u32,
        outline: &'g Outline,
        name: &str,
        depth: u32,
    ) -> Option<Value> {
        let node = outline.node(name);
        let bindings = outline.bindings_named(name).filter(|it| it.within.is_none()).collect();
        if let Some(binding) = self.taken(bindings)
            && node.is_none_or(|node| outline.nodes[node as usize].kind == Kind::Variable)
        {
            return self.last_bound(file, binding, name, depth);
        }
        node.map(|node| Value::Symbol { file, node })
    }

    fn through_stars(&mut self, file: u32, name: &str, depth: u32) -> Option<Value> {
        let outline = self.files.outline(file)?;
        (outline.rules().through_stars)(self, file, outline, name, depth)
    }

    /// The thing that a module offers under a name to a star of another one.
    pub(super) fn through_star(&mut self, file: u32, spec: u32, name: &str, depth: u32) -> Option<Value> {
        let module = self.files.link(file, spec)?;
        let outline = self.outline_of(module)?;
        if !(outline.rules().is_in_star)(outline, name) {
            return None;
        }
        self.export(module, name, depth)
    }

    /// The member of a module or a symbol that has this name.
    pub(super) fn member(&mut self, of: Value, name: &str, depth: u32) -> Option<Value> {
        let depth = self.step(depth)?;
        match of {
            Value::Module(file) => self.export(file, name, depth),
            Value::Symbol { file, node } => {
                let outline = self.outline_of(file)?;
                let it = &outline.nodes[node as usize];
                // A symbol within a function is no member of the function's result.
                let gives = it.kind.is_callable() && it.instance.is_some();
                if let Some(node) = outline.node(&format!("{}.{name}", outline.path(node))).filter(|_| !gives)
                {
                    return Some(Value::Symbol { file, node });
                }
                if let Some(class) = self.instance(of) {
                    let around = outline.nodes[node as usize].parent;
                    let Some(known) = self.class(file, outline, around, class, depth) else {
                        return self.of_library(class, name);
                    };
                    return if known == of { None } else { self.member(known, name, depth) };
                }
                self.above(file, node, name, depth).or_else(|| self.added(file, node, name, depth))
            }
        }
    }

    /// A member that another file adds to a type.
    pub(super) fn added(&mut self, file: u32, node: u32, name: &str, depth: u32) -> Option<Value> {
        let outline = self.files.outline(file)?;
        let (added, it) = (outline.rules().added?, &outline.nodes[node as usize]);
        if it.kind.has_members() { added(self, (file, node), name, depth) } else { None }
    }

    /// The files that define something, or add to it, under a key; in the order of their paths.
    pub(super) fn adding(&mut self, key: &str) -> Vec<u32> {
        self.asked.insert(key.into());
        let all = self.files.adding.under(self.files.keys.of(key)).collect();
        self.in_order(all)
    }

    /// The same, and none if there are more than so many.
    pub(super) fn adding_at_most(&mut self, key: &str, most: usize) -> Vec<u32> {
        if self.files.adding.has_more_than(self.files.keys.of(key), most) {
            self.asked.insert(key.into());
            return Vec::new();
        }
        self.adding(key)
    }

    /// Those of some files, on which the edges depend already, that define something under a key; in the order of their paths. What comes
    /// and goes in other files makes no difference to that, however many of them have the same name.
    pub(super) fn adding_among(&self, key: &str, some: &BTreeSet<u32>) -> Vec<u32> {
        let (adding, key) = (&self.files.adding, self.files.keys.of(key));
        self.in_order(match adding.has_more_than(key, some.len()) {
            true => some.iter().copied().filter(|it| adding.has(key, *it)).collect(),
            false => adding.under(key).filter(|it| some.contains(it)).collect(),
        })
    }

    /// Numbers are given as files come, and the graph is to be the same in any order.
    fn in_order(&self, mut files: Vec<u32>) -> Vec<u32> {
        files.sort_by_key(|file| self.files.path(*file));
        files
    }

    /// One of several things that a name may stand for: each of them counts, as a guess.
    pub(super) fn one_of(&mut self, all: &[(u32, u32)]) -> Option<Value> {
        self.alternatives = self.alternatives.max(all.len());
        let (file, node) = *all.get(self.which).or(all.last())?;
        self.deps.insert(file);
        Some(Value::Symbol { file, node })
    }

    /// The file from which calls are looked at.
    pub(super) fn asking(&self) -> u32 {
        self.at
    }

    /// Notes that edges depend on a file.
    pub(super) fn depends_on(&mut self, file: u32) {
        self.deps.insert(file);
    }

    /// The name of the class whose instance a value is; empty for types of the language's own.
    pub(super) fn instance(&self, value: Value) -> Option<&'g str> {
        let Value::Symbol { file, node } = value else { return None };
        let outline = self.files.outline(file)?;
        outline.nodes[node as usize].instance.map(|class| outline.word(class))
    }

    /// A name as it is understood in a file, at a place within a symbol.
    pub(super) fn in_file(
        &mut self,
        file: u32,
        outline: &'g Outline,
        mut around: Option<u32>,
        name: &str,
        depth: u32,
    ) -> Option<Value> {
        let began = around;
        while let Some(node) = around {
            // A type that is written is none of the fields beside it.
            let it = &outline.nodes[node as usize];
            let beside = it.kind.has_members() && it.kind != Kind::Namespace;
            let opens = !(beside && outline.language.has_typed_members());
            let is_meant = |found: &u32| {
                let is_type = outline.nodes[*found as usize].kind.has_members();
                opens || (is_type && outline.language.has_open_types())
            };
            if let Some(node) = outline.node(&format!("{}.{name}", outline.path(node))).filter(is_meant) {
                return Some(Value::Symbol { file, node });
            }
            if let Some(binding) = outline.binding_within(node, name)
                && (Some(node) == began || outline.nodes[node as usize].kind != Kind::Class)
            {
                return self.bound(file, binding, depth);
            }
            if it.kind.has_members() && outline.language.is_of_self(name) {
                break;
            }
            around = it.parent;
        }
        if outline.knows(name) {
            return self.at_top(file, outline, name, depth);
        }
        self.around(file, began, name, depth)
            .or_else(|| if outline.rules().stars_bind { self.through_stars(file, name, depth) } else { None })
    }
}

/// Whether a symbol knows what another one around it imports: methods do not know what their class does.
fn is_known_to(outline: &Outline, caller: u32, within: u32) -> bool {
    let is_class = outline.nodes[within as usize].kind == Kind::Class;
    if is_class { caller == within } else { is_within(outline, caller, within) }
}

fn is_within(outline: &Outline, inner: u32, outer: u32) -> bool {
    let mut around = Some(inner);
    while let Some(node) = around {
        if node == outer {
            return true;
        }
        around = outline.nodes[node as usize].parent;
    }
    false
}
