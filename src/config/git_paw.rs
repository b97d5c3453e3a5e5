//! Reads the settings of the broker and its conflicts from an existing `.git-paw/config.toml`.
//!
//! All other keys in it are git-paw's own, and are ignored. If it asks for an address beyond loopback, the daemon
//! reports that no door has one.

use toml::de::{DeTable, DeValue};

use super::load::{Broken, File, Loading, Severity, join};

/// Keys of git-paw, with Provost's section and key.
const OURS: &[(&str, &str, &str)] = &[
    ("broker.enabled", "broker", "enabled"),
    ("broker.port", "broker", "port"),
    ("broker.watcher.republish_working_ttl_seconds", "supervisor", "republish_working_ttl_seconds"),
    ("supervisor.enabled", "supervisor", "enabled"),
    ("supervisor.verify_on_commit_nudge", "supervisor", "verify_on_commit_nudge"),
    ("supervisor.conflict.window_seconds", "supervisor.conflict", "window_seconds"),
    ("supervisor.conflict.warn_on_intent_overlap", "supervisor.conflict", "warn_on_intent_overlap"),
    ("supervisor.conflict.escalate_on_violation", "supervisor.conflict", "escalate_on_violation"),
];

/// Functions of git-paw's broker that Provost does not have, each with the value that switches it off.
const NOT_OFFERED: [(&str, &str); 2] = [("supervisor.learnings", "false"), ("opsx.role_gating", "off")];

/// Loopback addresses, at which the broker door listens anyway.
const LOOPBACK: [&str; 4] = ["127.0.0.1", "localhost", "::1", "[::1]"];

/// Reads a whole file.
pub(super) fn read(loading: &mut Loading, file: &File<'_>, document: &DeTable<'_>) -> Result<(), Broken> {
    table(loading, file, "", document)
}

fn table(loading: &mut Loading, file: &File<'_>, path: &str, keys: &DeTable<'_>) -> Result<(), Broken> {
    for (key, value) in keys {
        let (full, at) = (join(path, key.get_ref()), key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => table(loading, file, &full, inner)?,
            value => {
                if let Some((_, section, ours)) = OURS.iter().find(|(known, ..)| *known == full) {
                    loading.assign(file, section, ours, at, value)?;
                } else if full == "broker.bind" && !value.as_str().is_some_and(|it| LOOPBACK.contains(&it)) {
                    let message = "is ignored: the broker door is at 127.0.0.1 and ::1, and nowhere else";
                    loading.note(file, at, &full, message.into(), Severity::Warning);
                } else if let Some((_, off)) = NOT_OFFERED.iter().find(|(known, _)| *known == full)
                    && value.as_bool() != Some(false)
                    && value.as_str() != Some(off)
                {
                    let message = "is git-paw's own, and nothing that this broker does";
                    loading.note(file, at, &full, message.into(), Severity::Info);
                }
            }
        }
    }
    Ok(())
}
