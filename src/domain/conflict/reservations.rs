//! All reservations, by their source and by path.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::Reservation;
use provost_base::{IntentId, RepoPath, Slug, SymbolPath};

/// The source of reservations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Title {
    /// A claim on this file.
    Claim(RepoPath),
    /// The lock on this symbol.
    Lock(SymbolPath),
    /// The intent with this id.
    Intent(IntentId),
    /// The plan of this agent, which has at most one.
    Plan(Slug),
}

/// All reservations, by their source and by path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reservations {
    all: BTreeMap<Title, Vec<Arc<Reservation>>>,
    paths: BTreeMap<RepoPath, BTreeSet<(Title, usize)>>,
}

impl Reservations {
    pub(crate) fn put(&mut self, title: Title, reservations: Vec<Reservation>) {
        self.drop(&title);
        for (number, reservation) in reservations.iter().enumerate() {
            self.paths.entry(reservation.at.clone()).or_default().insert((title.clone(), number));
        }
        self.all.insert(title, reservations.into_iter().map(Arc::new).collect());
    }

    pub(crate) fn drop(&mut self, title: &Title) {
        for (number, reservation) in self.all.remove(title).into_iter().flatten().enumerate() {
            if let Some(here) = self.paths.get_mut(&reservation.at) {
                here.remove(&(title.clone(), number));
                if here.is_empty() {
                    self.paths.remove(&reservation.at);
                }
            }
        }
    }

    /// Returns the reservations of a source.
    pub(super) fn of(&self, title: &Title) -> &[Arc<Reservation>] {
        self.all.get(title).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the reservations at a path, above it, and below it, in this order.
    pub(super) fn near<'a>(&'a self, path: &'a RepoPath) -> impl Iterator<Item = &'a Arc<Reservation>> + 'a {
        let text = path.as_str();
        let above =
            text.match_indices('/').map(|(at, _)| &text[..at]).chain((!text.is_empty()).then_some(""));
        let exact_and_above = std::iter::once(text).chain(above).filter_map(|it| self.paths.get(it));
        let prefix = if text.is_empty() { String::new() } else { format!("{text}/") };
        let first: Bound<&str> = if text.is_empty() { Bound::Excluded("") } else { Bound::Included(&prefix) };
        let below: Vec<_> = self
            .paths
            .range::<str, _>((first, Bound::Unbounded))
            .take_while(|(it, _)| it.as_str().starts_with(&prefix))
            .map(|(_, here)| here)
            .collect();
        let here = exact_and_above.chain(below).flatten();
        here.filter_map(|(title, number)| self.all.get(title)?.get(*number))
    }

    /// Returns all reservations, by path.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Reservation>> {
        let all = self.paths.values().flatten();
        all.filter_map(|(title, number)| self.all.get(title)?.get(*number))
    }

    /// Returns the number of sources that have reservations.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks whether there are no reservations.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
