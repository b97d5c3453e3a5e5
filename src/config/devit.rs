//! Reads an existing `devit.core.toml` unchanged.
//!
//! Its keys fall into four groups: those that devitd reads, which become Provost's settings; those for clients alone,
//! which are ignored; those that its manuals describe and no program reads, which are reported with their
//! replacement; and the rest, which are reported as unknown.

use toml::de::{DeTable, DeValue};

use super::load::{Broken, File, Loading, Severity, join};

/// Keys of devitd, with Provost's section and key.
const OURS: &[(&str, &str, &str)] = &[
    ("workspace.sandbox_root", "workspace", "sandbox_root"),
    ("daemon.expected_worker_version", "daemon", "expected_worker_version"),
    ("daemon.approvals.default_target", "daemon.approvals", "default_target"),
    // Clients that read this file connect to that address, so the daemon listens there too.
    ("orchestration.daemon_socket", "devit", "socket"),
    ("orchestration.capabilities.screenshot.rate_limit", "screenshot", "rate_limit"),
    ("tools.screenshot.backend", "screenshot", "backend"),
    ("tools.screenshot.format", "screenshot", "format"),
    ("tools.screenshot.output_dir", "screenshot", "output_dir"),
];

/// The two switches that must both be on for pictures to be taken.
const SCREENSHOT_SWITCHES: [&str; 2] =
    ["tools.screenshot.enabled", "orchestration.capabilities.screenshot.enabled"];

/// Keys that only clients read.
const CLIENTS: &[&str] = &[
    "orchestration.mode",
    "orchestration.auto_start_daemon",
    "orchestration.daemon_start_timeout_ms",
    "orchestration.default_timeout_secs",
    "orchestration.max_concurrent_tasks",
    "orchestration.default_watch_patterns",
    "orchestration.capabilities",
    "tools",
    "workspace.allowed_projects",
    "workspace.default_project",
    "workspace.max_files",
    "workspace.max_size_mb",
];

/// Keys that manuals and samples show and that never had an effect, each with advice.
const NEVER_READ: &[(&str, &str)] = &[
    ("daemon.socket", "was never read by devitd; write `[devit] socket` in provost.toml, or `--socket`"),
    ("daemon.mode", "was never read by devitd; remove it"),
    (
        "orchestration.expected_worker_version",
        "was never read by devitd and enforces nothing; move it to `[daemon] expected_worker_version`",
    ),
    (
        "orchestration.expected_daemon_version",
        "was never read; set DEVIT_EXPECTED_DAEMON_VERSION for the clients instead",
    ),
    (
        "daemon.expected_daemon_version",
        "was never read; set DEVIT_EXPECTED_DAEMON_VERSION for the clients instead",
    ),
    (
        "orchestration.notify_hook",
        "was never read by devitd; set DEVIT_NOTIFY_HOOK, or `[hooks.notify] command` in your own provost.toml",
    ),
    (
        "orchestration.delegation",
        "was never read by devitd; what may be delegated is for the policy rules to say",
    ),
    ("chaos", "was never read by devitd; remove it"),
    ("capabilities", "was never read by devitd; what agents may do is for the policy rules to say"),
];

/// Returns the text about a key of a worker that samples show and no program reads.
pub(super) fn worker_key(key: &str) -> Option<&'static str> {
    match key {
        "timeout" => Some("is not read; the key is `timeout_secs`, and without it 300 seconds apply"),
        _ => None,
    }
}

/// Reads a whole file.
pub(super) fn read(loading: &mut Loading, file: &File<'_>, document: &DeTable<'_>) -> Result<(), Broken> {
    let mut switches = Vec::new();
    table(loading, file, "", document, &mut switches)?;
    // One switch alone counts as off. A file that names neither switch changes nothing.
    if let Some((_, at)) = switches.first() {
        let enabled = switches.len() == SCREENSHOT_SWITCHES.len() && switches.iter().all(|(on, _)| *on);
        loading.assign(file, "screenshot", "enabled", *at, &DeValue::Boolean(enabled))?;
    }
    Ok(())
}

fn table(
    loading: &mut Loading,
    file: &File<'_>,
    path: &str,
    keys: &DeTable<'_>,
    switches: &mut Vec<(bool, usize)>,
) -> Result<(), Broken> {
    for (key, value) in keys {
        let (full, at) = (join(path, key.get_ref()), key.span().start);
        let value = value.get_ref();
        if let Some((_, why)) = NEVER_READ.iter().find(|(known, _)| *known == full) {
            loading.note(file, at, &full, (*why).into(), Severity::Warning);
        } else if SCREENSHOT_SWITCHES.contains(&full.as_str()) {
            let on = value.as_bool().ok_or_else(|| {
                loading.broken_at(
                    file,
                    at,
                    &full,
                    format!("expected true or false, found {}", value.type_str()),
                )
            })?;
            switches.push((on, at));
        } else if let Some((_, section, ours)) = OURS.iter().find(|(known, ..)| *known == full) {
            loading.assign(file, section, ours, at, value)?;
        } else if let ("workers", DeValue::Table(workers)) = (full.as_str(), value) {
            loading.workers(file, workers);
        } else if let (true, DeValue::Table(inner)) = (leads_to_ours(&full), value) {
            table(loading, file, &full, inner, switches)?;
        } else if CLIENTS.iter().any(|known| full == *known || full.starts_with(&format!("{known}."))) {
            // A client's key; devitd ignores it, and so does Provost.
        } else if leads_to_ours(&full) || full == "workers" {
            return Err(loading.broken_at(file, at, &full, format!("must be a table: write `[{full}]`")));
        } else {
            unknown(loading, file, path, key.get_ref(), at, value)?;
        }
    }
    Ok(())
}

/// Checks whether keys that Provost reads lie under this one.
fn leads_to_ours(path: &str) -> bool {
    let known = OURS
        .iter()
        .map(|(known, ..)| *known)
        .chain(SCREENSHOT_SWITCHES)
        .chain(NEVER_READ.iter().map(|(k, _)| *k));
    known.into_iter().any(|known| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Keys that enforce something, under any section.
const ENFORCING: [&str; 3] = ["expected_worker_version", "sandbox_root", "default_target"];

/// Handles an unknown key: a misspelt or misplaced enforcement would silently be none, so it is an error; devitd ignores
/// all other keys, too.
fn unknown(
    loading: &mut Loading,
    file: &File<'_>,
    path: &str,
    key: &str,
    at: usize,
    value: &DeValue<'_>,
) -> Result<(), Broken> {
    let full = join(path, key);
    let siblings = OURS.iter().filter_map(|(known, ..)| known.strip_prefix(path)?.strip_prefix('.'));
    let meant = provost_base::nearest(key, siblings);
    let inside =
        value.as_table().and_then(|inner| ENFORCING.into_iter().find(|key| inner.contains_key(*key)));
    let enforcing = meant.filter(|meant| ENFORCING.contains(meant)).or(inside);
    let enforcing = enforcing.or(ENFORCING.into_iter().find(|known| *known == key));
    if let Some(known) = enforcing {
        let home = OURS.iter().find_map(|(path, ..)| path.ends_with(known).then_some(*path)).unwrap_or(known);
        return Err(loading.broken_at(file, at, &full, format!("is not a setting; did you mean `{home}`?")));
    }
    match meant {
        Some(meant) => {
            loading.note(
                file,
                at,
                &full,
                format!("is not a setting; did you mean `{meant}`?"),
                Severity::Warning,
            );
        }
        None => {
            loading.note(
                file,
                at,
                &full,
                "is not known to DevIt or Provost; it is ignored".into(),
                Severity::Info,
            );
        }
    }
    Ok(())
}
