//! The settings that every door over loopback has, by its row in the table of doors.

use std::collections::BTreeMap;

use super::table::{key, section, sections};
use super::value::{Context, LoopbackAuth, Mark, Row, Value, checked};
use provost_base::{At, Door};

/// The default of `auth`: on a system that does not tell which process connects, a request needs a token.
const LOOPBACK_AUTH: LoopbackAuth =
    if cfg!(target_os = "linux") { LoopbackAuth::Peer } else { LoopbackAuth::Token };

/// A section: its path, its purpose, and its rows.
type Section = (&'static str, &'static str, Vec<Row>);

section! {
    /// A door over loopback.
    DoorSettings {
        /// Whether the door is open.
        enabled: bool = true, "", Strict;
        /// Its port at 127.0.0.1 and ::1; 0 is any that is free. If the default is taken, the daemon chooses another one and reports it once; it never replaces a configured port.
        port: u16 = 0, "port", Strict;
        /// The proof that a request needs: `peer`: the kernel says that it comes from a process of this user, which only Linux does; `token`: it also shows a token of `provost token mint`.
        auth: LoopbackAuth = LOOPBACK_AUTH, "", Strict, Owner;
    }
}

impl DoorSettings {
    /// Returns the settings of a door where no file sets any.
    fn by_default(door: Door) -> Option<Self> {
        let at = door.loopback()?;
        Some(Self { enabled: at.is_open, port: at.port, ..Self::default() })
    }
}

/// The settings of all doors over loopback.
#[derive(Clone, PartialEq, Debug)]
pub struct Doors(BTreeMap<Door, DoorSettings>);

impl Default for Doors {
    fn default() -> Self {
        Self(Door::ALL.iter().filter_map(|door| Some((*door, DoorSettings::by_default(*door)?))).collect())
    }
}

impl Doors {
    /// Returns the settings of a door; `None` where it is not over loopback.
    pub fn of(&self, door: Door) -> Option<&DoorSettings> {
        self.0.get(&door)
    }

    /// Checks whether the settings open a door over loopback.
    pub fn is_open(&self, door: Door) -> bool {
        self.of(door).is_some_and(|it| it.enabled)
    }

    /// Assigns one key of the section at `path`; `None` where no door has such a setting.
    pub(super) fn set(
        &mut self,
        path: &str,
        key: &str,
        value: &toml::de::DeValue<'_>,
        context: &Context,
    ) -> Option<Result<(), String>> {
        let door = Door::at_loopback_named(path)?;
        self.0.get_mut(&door)?.set(key, value, context)
    }
}

/// Returns all sections: those of the table, with the settings that every door's section has, and those of doors
/// without settings of their own.
pub(super) fn beside(table: Vec<Section>) -> Vec<Section> {
    let rows = |path: &str| {
        let defaults = Door::at_loopback_named(path).and_then(DoorSettings::by_default);
        defaults.map(|it| it.with_defaults()).unwrap_or_default()
    };
    let is_there = |path: &str| table.iter().any(|(other, ..)| *other == path);
    let doors = Door::over_loopback().map(|(door, _)| door).filter(|it| !is_there(it.name()));
    let plain: Vec<Section> = doors.map(|it| (it.name(), it.about(), rows(it.name()))).collect();
    let full = |(path, about, own): Section| (path, about, rows(path).into_iter().chain(own).collect());
    table.into_iter().map(full).chain(plain).collect()
}

const HEAD: &str = "\
# Doors

This page is printed from the table of doors, `src/base/doors.rs`. Each door speaks one protocol unchanged; what is known through one
is known through all. `provost status` shows which of them are open and at which address, and `eval \"$(provost env)\"` sets the
variables for clients.

The daemon lets in processes of its own user alone. A name that has a token or a key needs it at every door. The last column has the
rights of a name that has neither; `provost token mint --scopes` names the rights of a token.

| door | protocol | where clients find it | open by default | variables for clients | its settings | rights of a name without proof |
|---|---|---|---|---|---|---|
";

/// Prints the page `docs/doors.md`.
pub fn print_doors() -> String {
    let mut out = String::from(HEAD);
    for (_, door) in Door::ENTRANCES {
        let row = door.row();
        let (found, is_open) = match &row.at {
            At::Socket => (format!("socket `{}.sock` or a named pipe", row.name), "yes"),
            At::WorkTrees => {
                ("socket `.wit/daemon.sock` in each work tree".into(), "where there is a folder `.wit`")
            }
            At::Loopback(at) => (
                format!("port {}: `{}`", at.port, at.address(at.port)),
                if at.is_open { "yes" } else { "no" },
            ),
            At::Run => ("a socket in the jail of the run".into(), "while the run lasts"),
            At::Nowhere => continue,
        };
        let variables = listed(row.variables.iter().map(|(name, _)| *name), "none");
        let has_settings = sections().iter().any(|(path, ..)| *path == row.name);
        let settings =
            if has_settings { format!("[`[{0}]`](configuration.md#{0})", row.name) } else { "none".into() };
        let rights = row.unproved.map(|it| listed(it.iter().map(|scope| scope.as_str()), "none"));
        let rights = rights.unwrap_or_else(|| "a name needs proof".into());
        out += &format!(
            "| `{}` | {} | {found} | {is_open} | {variables} | {settings} | {rights} |\n",
            row.name, row.protocol
        );
    }
    out
}

fn listed<'a>(words: impl Iterator<Item = &'a str>, none: &str) -> String {
    let words: Vec<String> = words.map(|it| format!("`{it}`")).collect();
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}
