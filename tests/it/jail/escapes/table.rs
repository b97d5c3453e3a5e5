//! The expected outcome of each attempt. The table is a document for readers, `docs/escapes.md`, and the tests read it
//! there, so that the tests try exactly the attempts of the document.

use std::fs;

use provost::jail::{Layer, Tier};

use super::intruder::Saw;
use crate::support::source::project_root;

/// Where the table is.
pub(super) const DOCUMENT: &str = "docs/escapes.md";

/// How rows of the table of shared files begin.
const SHARED: &str = "| `shared.";

/// Attempts of the first of the two tables, which is the older one.
const FIRST_TABLE: usize = 127;

/// The table's words for the layers.
const WORDS: [(&str, Layer); 13] = [
    ("root", Layer::Root),
    ("pids", Layer::PidNamespace),
    ("net", Layer::NetNamespace),
    ("ipc", Layer::IpcNamespace),
    ("nested", Layer::NoNestedNamespaces),
    ("seccomp", Layer::Seccomp),
    ("Landlock", Layer::Landlock),
    ("nnp", Layer::NoNewPrivileges),
    ("caps", Layer::Capabilities),
    ("limits", Layer::Limits),
    ("fds", Layer::Descriptors),
    ("env", Layer::Environment),
    ("session", Layer::Session),
];

/// The protection against an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// It fails for an ordinary user without a jail as well.
    Host,
    /// The base of the tier itself, which cannot be left out: the user namespace, or the supervisor's own Landlock
    /// domain.
    Base,
    /// Layers: it succeeds when all of one of these sets are missing, and not before.
    By(Vec<Vec<Layer>>),
    /// Nothing.
    Nothing(Saw),
}

/// One attempt.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// How it ends without a jail.
    pub(super) control: Saw,
    pub(super) ns: Held,
    pub(super) ll: Held,
}

impl Row {
    pub(super) fn held(&self, tier: Tier) -> &Held {
        match tier {
            Tier::Ns => &self.ns,
            Tier::Ll => &self.ll,
            Tier::Job => unreachable!("Linux has no tier job"),
        }
    }

    /// Whether an attempt may end as it has, in a jail that lacks some layers.
    pub(super) fn allows(&self, tier: Tier, lacking: &[Layer], saw: Saw) -> bool {
        match self.held(tier) {
            Held::Host | Held::Base => saw == Saw::Shut,
            Held::Nothing(expected) => saw == *expected,
            Held::By(sets) => {
                let missing = |set: &Vec<Layer>| set.iter().all(|layer| lacking.contains(layer));
                sets.iter().any(missing) == (saw != Saw::Shut)
            }
        }
    }
}

/// The document.
pub(super) fn text() -> String {
    fs::read_to_string(project_root().join(DOCUMENT)).unwrap()
}

/// Every row of it.
pub(super) fn rows() -> Vec<Row> {
    let text = text();
    let rows = text.lines().filter(|line| line.starts_with("| `") && !line.starts_with(SHARED));
    let rows: Vec<Row> = rows.map(row).collect();
    assert!(rows.len() > FIRST_TABLE, "{DOCUMENT} has {} rows", rows.len());
    rows
}

/// The rows on files that are shared with outside: name, what is tried, and how it ends each way.
pub(super) fn shared_rows() -> Vec<Vec<String>> {
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(|it| it.trim().trim_matches('`').to_owned()).collect()
    };
    text().lines().filter(|line| line.starts_with(SHARED)).map(cells).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [name, _what, control, ns, ll] = cells[..] else { panic!("{DOCUMENT}: {line}") };
    let control = match control {
        "works" => Saw::Open,
        "tells" => Saw::Leak,
        "fails" => Saw::Shut,
        other => panic!("{DOCUMENT}: `{other}` in {line}"),
    };
    Row { name: name.trim_matches('`').into(), control, ns: held(ns, line), ll: held(ll, line) }
}

fn held(cell: &str, line: &str) -> Held {
    let layer = |word: &str| {
        let known = WORDS.iter().find(|(name, _)| *name == word.trim());
        known.unwrap_or_else(|| panic!("{DOCUMENT}: `{word}` in {line}")).1
    };
    match cell {
        "host" => Held::Host,
        "base" => Held::Base,
        "open" => Held::Nothing(Saw::Open),
        "tells" => Held::Nothing(Saw::Leak),
        layers => Held::By(layers.split(';').map(|set| set.split('+').map(layer).collect()).collect()),
    }
}

/// The sentence in which documents sum the table up.
pub(super) fn summary(rows: &[Row]) -> String {
    let control = |saw| rows.iter().filter(|row| row.control == saw).count();
    let in_tier = |tier, saw| rows.iter().filter(|row| *row.held(tier) == Held::Nothing(saw)).count();
    let tier = |tier| (in_tier(tier, Saw::Open), in_tier(tier, Saw::Leak));
    let ((ns_open, ns_tell), (ll_open, ll_tell)) = (tier(Tier::Ns), tier(Tier::Ll));
    format!(
        "Of {} attempts, {} work without a jail, {} tell something and {} fail. In tier `ns`, {ns_open} work and \
         {ns_tell} tell something; in tier `ll`, {ll_open} and {ll_tell}.",
        rows.len(),
        control(Saw::Open),
        control(Saw::Leak),
        control(Saw::Shut),
    )
}
