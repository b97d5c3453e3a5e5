//! A hostile worker tries more than a hundred ways out of the jail, one after the other: without a jail, in both
//! tiers, and in jails that lack a layer.
//!
//! `docs/escapes.md` has the attempts and what is expected of each. An attempt that fails where it should
//! work is an error as well: it would show nothing.
#![expect(clippy::unwrap_used, reason = "what fails in here fails the test")]

mod calls;
mod files;
mod intruder;
mod kernel;
mod network;
mod processes;
mod real;
mod resources;
mod roles;
mod shared;
mod stand_in;
mod table;
mod world;

use provost::jail::Tier;

use crate::support::provost;
use crate::support::source::project_root;
use intruder::Saw;
use table::{Held, Row};
use world::{Seen, World};

/// The files that the worker of tier `ll` is known to change, in addition to the planted files in the workspace.
const CHANGED_IN_LL: [&str; 4] =
    ["outside/canary", "workspace/.claude", "workspace/.claude/settings.json", "workspace/.git/config"];

#[test]
fn every_attempt_is_in_the_table_once_and_every_row_is_tried() {
    let rows: Vec<String> = table::rows().into_iter().map(|row| row.name).collect();
    let mut tried: Vec<&str> = intruder::attempts().map(|(name, _)| *name).collect();
    let mut listed: Vec<&str> = rows.iter().map(String::as_str).collect();
    tried.sort_unstable();
    listed.sort_unstable();
    assert_eq!(tried, listed);
    listed.dedup();
    assert_eq!(listed.len(), rows.len());
}

#[test]
fn documents_say_what_the_table_says() {
    let rows = table::rows();
    let summary = table::summary(&rows);
    let threats = std::fs::read_to_string(project_root().join("docs/threat-model.md")).unwrap();
    for (name, text) in [(table::DOCUMENT, table::text()), ("docs/threat-model.md", threats.clone())] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&words(&summary)), "{name} should say: {summary}");
    }
    let left: Vec<&str> =
        rows.iter().filter(|row| matches!(row.ll, Held::Nothing(_))).map(|row| &*row.name).collect();
    let told: Vec<&str> = provost::jail::OPEN_IN_LL.iter().map(|open| open.attempt).collect();
    assert_eq!(told, left, "what `provost doctor` and the jail say of tier ll");
    for open in &provost::jail::OPEN_IN_LL {
        assert!(
            threats.contains(&format!("`{}`", open.attempt)),
            "docs/threat-model.md lacks {}",
            open.attempt
        );
    }
    assert!(!rows.iter().any(|row| matches!(row.ns, Held::Nothing(_))), "nothing is open in tier ns");
}

/// Every attempt, that has ended otherwise than it should.
fn surprises(seen: &Seen, expected: impl Fn(&Row, Saw) -> bool) -> Vec<String> {
    // On a host without a network there is no way to the outside to begin with.
    let routes = std::fs::read_to_string("/proc/net/route").unwrap().lines().count() > 1;
    let wrong = |row: &Row| {
        if row.name == "net.route_out" && !routes {
            return None;
        }
        let Some((saw, what)) = seen.attempts.get(&row.name) else {
            return Some(format!("{}: not tried", row.name));
        };
        (!expected(row, *saw)).then(|| format!("{}: {saw:?}, {what}; expected {row:?}", row.name))
    };
    table::rows().iter().filter_map(wrong).collect()
}

#[test]
fn without_a_jail_the_attempts_end_as_the_table_says() {
    let seen = World::new().at_large();
    let wrong = surprises(&seen, |row, saw| saw == row.control);
    assert!(wrong.is_empty(), "on this host without a jail:\n{}", wrong.join("\n"));
    // What is watched in a jail does happen here.
    assert_eq!(seen.report.signals.len(), 3, "{:?}", seen.report);
    let doors: Vec<&str> = seen.report.visitors.keys().map(String::as_str).collect();
    assert_eq!(doors, ["nameless", "stream", "tcp", "tcp6", "toolchain", "udp", "workspace"]);
    assert!(seen.report.changed.len() >= 3, "{:?}", seen.report.changed);
    for file in
        ["outside/canary", "outside/new", "outside/deleteme", "state/policy.toml", "workspace/.git/config"]
    {
        assert!(seen.files.iter().any(|it| it == file), "{file} should have changed: {:?}", seen.files);
    }
}

fn nothing_was_done_to_the_daemon(seen: &Seen) {
    let report = &seen.report;
    assert!(
        report.signals.is_empty() && report.visitors.is_empty() && report.changed.is_empty(),
        "{report:?}"
    );
}

#[test]
fn nothing_gets_out_of_tier_ns() {
    let seen = World::new().in_jail(Tier::Ns);
    let wrong = surprises(&seen, |row, saw| row.allows(Tier::Ns, &[], saw));
    assert!(wrong.is_empty(), "tier ns:\n{}", wrong.join("\n"));
    nothing_was_done_to_the_daemon(&seen);
    assert_eq!(seen.files, [""; 0]);
}

#[test]
fn only_what_is_documented_gets_out_of_tier_ll() {
    let seen = World::new().in_jail(Tier::Ll);
    let wrong = surprises(&seen, |row, saw| row.allows(Tier::Ll, &[], saw));
    assert!(wrong.is_empty(), "tier ll:\n{}", wrong.join("\n"));
    nothing_was_done_to_the_daemon(&seen);
    let in_repositories = ["workspace/.git/", "workspace/nested/.git/config"];
    let planted = |file: &&String| in_repositories.iter().any(|it| file.starts_with(it));
    let others: Vec<&String> =
        seen.files.iter().filter(|file| !CHANGED_IN_LL.contains(&file.as_str()) && !planted(file)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(seen.files.iter().any(|file| file == "outside/canary"), "{:?}", seen.files);
}

/// Jails that lack layers, and what then gets out of them.
#[cfg(debug_assertions)]
mod less {
    use std::collections::BTreeSet;

    use provost::jail::Layer::{self, *};

    use super::*;

    type Runs = &'static [&'static [Layer]];

    const FILES: Runs = &[&[Root], &[Landlock], &[Root, Landlock], &[Root, PidNamespace, Landlock, Seccomp]];
    const NAMESPACES: Runs = &[
        &[PidNamespace],
        &[PidNamespace, Landlock],
        &[NetNamespace],
        &[NetNamespace, Seccomp],
        &[NetNamespace, Landlock],
        &[IpcNamespace],
        &[IpcNamespace, Landlock],
    ];
    const PRIVILEGES: Runs = &[
        &[Seccomp],
        &[NoNestedNamespaces],
        &[Seccomp, NoNestedNamespaces],
        &[NoNewPrivileges],
        &[Seccomp, Landlock],
        &[Seccomp, Landlock, NoNewPrivileges],
        &[Capabilities],
    ];
    const INHERITED: Runs =
        &[&[Limits], &[Descriptors], &[Environment], &[Session], &[Seccomp, Landlock, Session]];
    const OF_LL: Runs = &[
        &[Seccomp],
        &[Landlock],
        &[Seccomp, Landlock],
        &[NoNewPrivileges],
        &[Capabilities],
        &[Limits],
        &[Descriptors],
        &[Environment],
        &[Session],
        &[Seccomp, Landlock, Session],
    ];

    fn as_foreseen(tier: Tier, runs: Runs) {
        for lacking in runs {
            let seen = World::new().in_less_of_a_jail(tier, lacking);
            let wrong = surprises(&seen, |row, saw| row.allows(tier, lacking, saw));
            assert!(wrong.is_empty(), "tier {tier:?} without {lacking:?}:\n{}", wrong.join("\n"));
        }
    }

    #[test]
    fn what_the_root_directory_and_landlock_are_for() {
        as_foreseen(Tier::Ns, FILES);
    }

    #[test]
    fn what_the_namespaces_are_for() {
        as_foreseen(Tier::Ns, NAMESPACES);
    }

    #[test]
    fn what_the_filter_and_the_loss_of_privileges_are_for() {
        as_foreseen(Tier::Ns, PRIVILEGES);
    }

    #[test]
    fn what_limits_and_a_clean_start_are_for() {
        as_foreseen(Tier::Ns, INHERITED);
    }

    #[test]
    fn what_each_layer_of_tier_ll_is_for() {
        as_foreseen(Tier::Ll, OF_LL);
    }

    /// Each set of layers that the table names is left out as a whole and, so that none of them is named in
    /// vain, but for one.
    #[test]
    fn each_set_of_layers_in_the_table_is_left_out_once_and_each_layer_holds_something() {
        let of_ns: Vec<&[Layer]> = [FILES, NAMESPACES, PRIVILEGES, INHERITED].concat();
        for (tier, runs) in [(Tier::Ns, of_ns), (Tier::Ll, OF_LL.to_vec())] {
            let mut used = BTreeSet::new();
            for row in table::rows() {
                let Held::By(sets) = row.held(tier) else { continue };
                for set in sets {
                    let same =
                        |run: &&&[Layer]| run.len() == set.len() && run.iter().all(|it| set.contains(it));
                    assert!(
                        runs.iter().any(|run| same(&run)),
                        "{tier:?}: no run without {set:?} ({})",
                        row.name
                    );
                    used.extend(set.iter().copied());
                }
            }
            let tried: BTreeSet<Layer> = runs.iter().flat_map(|run| run.iter().copied()).collect();
            let idle: Vec<&Layer> = tried.difference(&used).collect();
            // Of tier ll, an ordinary user has no capabilities to begin with, and what Landlock and the
            // filter need anyway is set by both of them and by the supervisor.
            let expected: &[&Layer] = if tier == Tier::Ll { &[&NoNewPrivileges, &Capabilities] } else { &[] };
            assert_eq!(idle, expected, "{tier:?}");
        }
    }
}
