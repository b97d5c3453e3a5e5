//! The order in which branches are merged, each place with its reason. Pure.
//!
//! A branch that changes what another one calls goes before that one: then the caller is told what has
//! changed, and its owner is the one to follow. Among the others: first what has no conflict, then what
//! touches what agents have announced, then what they hold, and last what conflicts or breaks a contract; in
//! each group, the order that was asked for.

/// What is known of a branch for its place.
#[derive(Clone, Default, Debug)]
pub(super) struct Standing {
    /// It conflicts with the trunk.
    pub(super) conflicts: bool,
    /// It breaks a contract.
    pub(super) breaks: bool,
    /// An agent holds what it touches.
    pub(super) held: Option<String>,
    /// An agent has announced to change what it touches.
    pub(super) announced: Option<String>,
    /// The branches, by their places in the list, that call what it changes.
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
            Self { held: Some(by), .. } => format!("late, since {by} holds what it touches"),
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

/// The places of the list in the order in which they are merged, each with its reason.
pub(super) fn ordered(all: &[Standing], names: &[&str]) -> Vec<(usize, String)> {
    let mut left: Vec<usize> = (0..all.len()).collect();
    let mut found = Vec::with_capacity(all.len());
    while !left.is_empty() {
        // Only those count that are left; where branches call each other in a circle, the rest of the rules
        // decides.
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
