//! The classes of the parameters of callbacks, as the functions that take the callbacks declare them, in the form of an outline.

use std::collections::BTreeMap;

use super::interned_names::{NameId, Writer};
use super::outline::Outline;
use provost_syntax::Reading;

/// The class of a parameter of a callback. Sorted by node, argument and parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GivenClass {
    node: u32,
    argument: u8,
    parameter: u8,
    class: NameId,
}

impl GivenClass {
    /// Those of a reading, whose symbols are these nodes. Where overloads say several things of one place, nothing is known of it.
    pub(super) fn all(reading: &Reading, node_of: &[u32], words: &mut Writer) -> Box<[Self]> {
        let mut said: BTreeMap<(u32, u8, u8), Option<&str>> = BTreeMap::new();
        for it in &reading.given {
            let place = (node_of[it.symbol as usize], it.argument, it.parameter);
            let class = said.entry(place).or_insert(Some(&it.class));
            if *class != Some(&*it.class) {
                *class = None;
            }
        }
        let kept = said.into_iter().filter_map(|((node, argument, parameter), class)| {
            Some(Self { node, argument, parameter, class: words.word(class?) })
        });
        kept.collect()
    }
}

impl Outline {
    /// The class of what a symbol gives, at a place, to a function that it is given.
    pub(super) fn given(&self, node: u32, argument: u8, parameter: u8) -> Option<NameId> {
        let place = (node, argument, parameter);
        let found =
            self.given.binary_search_by_key(&place, |it| (it.node, it.argument, it.parameter)).ok()?;
        Some(self.given[found].class)
    }
}
