//! The order in which branches are merged, each place with its reason. Pure.
//!
//! A branch that changes symbols that another branch calls goes first: then the owner of the caller is told what
//! has changed, and adapts. The order of the others: branches without conflict, then those that touch an intent of
//! an agent, then those that touch a reservation, and last those that conflict or break a contract; in each group,
//! the order of the request.

/// The facts about a branch that decide its place.
#[derive(Clone, Default, Debug)]
pub(super) struct Standing {
    /// Whether it conflicts with the trunk.
    pub(super) conflicts: bool,
    /// Whether it breaks a contract.
    pub(super) breaks: bool,
    /// The reservation of an agent that it touches.
    pub(super) held: Option<String>,
    /// The intent of an agent that it touches.
    pub(super) announced: Option<String>,
    /// The branches, by their places in the list, that call a symbol that it changes.
    pub(super) callers: Vec<usize>,
}

impl Standing {
    fn group(&self) -> usize {
        match self {
            Self { breaks: true, .. } => 4,
            Self { conflicts: true, .. } => 3,
            Self { held: Some(_), .. } => 2,
            Self { announced: Some(_), .. } => 1,
            _ => 0,
        }
    }

    fn reason(&self, names: &[&str]) -> String {
        match self {
            Self { breaks: true, .. } => "last, since it breaks a contract".into(),
            Self { conflicts: true, .. } => "late, since it conflicts with the trunk".into(),
            Self { held: Some(by), .. } => format!("late, since {by} holds files that it changes"),
            Self { callers, .. } if !callers.is_empty() => {
                let callers: Vec<&str> = callers.iter().map(|it| names[*it]).collect();
                format!("early, since it changes what {} calls", callers.join(", "))
            }
            Self { announced: Some(by), .. } => {
                format!("later, since {by} has announced a change of what it touches")
            }
            _ => "as asked".into(),
        }
    }
}

/// Returns the places of the list in the order of the merges, each with its reason.
pub(super) fn ordered(all: &[Standing], names: &[&str]) -> Vec<(usize, String)> {
    let mut left: Vec<usize> = (0..all.len()).collect();
    let mut found = Vec::with_capacity(all.len());
    while !left.is_empty() {
        // Only the branches that are left count; if branches call each other in a circle, the other rules decide.
        let waits = |it: usize| {
            let before = |other: &usize| {
                *other != it && all[*other].callers.contains(&it) && all[*other].group() <= all[it].group()
            };
            left.iter().any(before)
        };
        let free = left.iter().copied().filter(|it| !waits(*it));
        let next = free.min_by_key(|it| (all[*it].group(), *it));
        let next = next.or_else(|| left.iter().copied().min_by_key(|it| (all[*it].group(), *it)));
        let Some(next) = next else { break };
        left.retain(|it| *it != next);
        found.push((next, all[next].reason(names)));
    }
    found
}
