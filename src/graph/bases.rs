//! The classes above one, and the order in which a member is looked for in them.

use std::collections::{BTreeMap, VecDeque};

use super::interned_names::NameId;
use super::resolve::{Resolver, Value};
use provost_syntax::{Kind, keep_last};

/// A class that another one extends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    Known(Value),
    /// A class outside of the repository, by the file that names it and its name there. It may have any member.
    Unknown(u32, NameId),
}

/// The most classes above one that are listed, each as often as it is come to.
const ABOVE_MAX: usize = 256;

impl Resolver<'_> {
    /// A member of the classes that one extends.
    pub(super) fn above(&mut self, file: u32, node: u32, name: &str, depth: u32) -> Option<Value> {
        let language = self.files.outline(file)?.language;
        if language.asks_shared_bases_last() || language.asks_bases_by_depth() {
            let all = self.all_above(file, node, depth);
            return self.first_with(all, |it, of, depth| it.own_member(of, name, depth));
        }
        let all = self.bases_as_written(file, node, depth).into_iter().map(|base| (base, depth)).collect();
        self.first_with(all, |it, of, depth| it.member(of, name, depth))
    }

    /// Returns the member of the first class that has it. After an unknown class, the member is not certain.
    fn first_with(
        &mut self,
        all: Vec<(Base, u32)>,
        member: impl Fn(&mut Self, Value, u32) -> Option<Value>,
    ) -> Option<Value> {
        for (base, depth) in all {
            match base {
                Base::Unknown(..) => self.met_unknown = true,
                Base::Known(of) => {
                    if let Some(found) = member(self, of, depth) {
                        self.is_behind_unknown |= self.met_unknown;
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// The classes above one, in the order in which a member is looked for in them, each with the depth at which it is come to.
    fn all_above(&mut self, file: u32, node: u32, depth: u32) -> Vec<(Base, u32)> {
        let mut found: Vec<Base> = Vec::new();
        let mut depths = BTreeMap::new();
        let by_depth = self.files.outline(file).is_some_and(|it| it.language.asks_bases_by_depth());
        let mut waiting = VecDeque::from([(Base::Known(Value::Symbol { file, node }), depth)]);
        // Classes may be said to extend each other.
        while found.len() < ABOVE_MAX {
            let next = if by_depth { waiting.pop_front() } else { waiting.pop_back() };
            let Some((of, depth)) = next else { break };
            let Some(depth) = self.step(depth) else { continue };
            found.push(of);
            depths.insert(of, depth);
            if let Base::Known(Value::Symbol { file, node }) = of {
                self.depends_on(file);
                let mut bases = self.bases_as_written(file, node, depth);
                if !by_depth {
                    bases.reverse();
                }
                waiting.extend(bases.into_iter().map(|base| (base, depth)));
            }
        }
        if !by_depth {
            keep_last(&mut found);
        }
        let myself = Base::Known(Value::Symbol { file, node });
        found.into_iter().filter(|of| *of != myself).filter_map(|of| Some((of, *depths.get(&of)?))).collect()
    }

    /// A member that a class has itself, in any of its parts.
    fn own_member(&mut self, of: Value, name: &str, depth: u32) -> Option<Value> {
        let Value::Symbol { file, node } = of else { return self.member(of, name, depth) };
        // Another name for a class.
        if self.instance(of).is_some() {
            return self.member(of, name, depth);
        }
        let outline = self.outline_of(file)?;
        let own = outline.node(&format!("{}.{name}", outline.path(node)));
        let own = own.map(|node| Value::Symbol { file, node });
        own.or_else(|| self.added(file, node, name, depth))
    }

    /// The classes that one extends, and the interfaces from which it has members.
    pub(super) fn bases(&mut self, file: u32, node: u32, depth: u32) -> Vec<Value> {
        let known = |base| match base {
            Base::Known(base) => Some(base),
            Base::Unknown(..) => None,
        };
        self.bases_as_written(file, node, depth).into_iter().filter_map(known).collect()
    }

    /// Returns the same classes, and the unknown ones in their places.
    fn bases_as_written(&mut self, file: u32, node: u32, depth: u32) -> Vec<Base> {
        let files = self.files;
        let Some(outline) = files.outline(file) else { return Vec::new() };
        let class = &outline.nodes[node as usize];
        let myself = Value::Symbol { file, node };
        let lacks_interfaces = class.kind == Kind::Class && !outline.language.inherits_from_interfaces();
        let is_interface = |it: &Value| match *it {
            Value::Symbol { file, node } => {
                files.outline(file).is_some_and(|it| it.nodes[node as usize].kind == Kind::Interface)
            }
            Value::Module(_) => false,
        };
        let found = class.bases.iter().enumerate().filter_map(|(place, name)| {
            let written = outline.word(*name);
            match self.class(file, outline, class.parent, written, depth) {
                Some(base) if base == myself || (lacks_interfaces && is_interface(&base)) => None,
                Some(base) => Some(Base::Known(base)),
                None if outline.language.may_hide_later_bases(written, place) => {
                    Some(Base::Unknown(file, *name))
                }
                None => None,
            }
        });
        found.collect()
    }
}
