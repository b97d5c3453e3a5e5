//! A daemon that root has started with `--allow-root`: its workers run as another user.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use provost_config::{Config, Places};

/// Returns the user and group of the workers, which must be able to change the workspace.
pub(super) fn for_workers(config: &Config, places: &Places) -> Result<Option<(u32, u32)>> {
    let Some(uid) = config.daemon.worker_uid else {
        bail!(
            "--allow-root needs to know who workers are to run as: set daemon.worker_uid in the configuration"
        );
    };
    let gid = primary_group(uid);
    let root = config.workspace.sandbox_root.as_deref().unwrap_or(&places.root);
    let mut probe = Command::new("/usr/bin/test");
    probe.arg("-w").arg(root).current_dir("/").env_clear().stdin(Stdio::null());
    let status = probe.gid(gid).uid(uid).status().context("cannot try what daemon.worker_uid may do")?;
    if !status.success() {
        bail!(
            "daemon.worker_uid = {uid} cannot change {}: give its group the workspace with `chgrp -R {gid}` and `chmod -R g+w`",
            root.display()
        );
    }
    Ok(Some((uid, gid)))
}

/// Returns the group that the system's list gives a user; for an unlisted user, a group with the user's number.
fn primary_group(uid: u32) -> u32 {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.into_iter().find(|fields| fields.get(2).is_some_and(|it| it.parse() == Ok(uid)));
    own.and_then(|fields| fields.get(3)?.parse().ok()).unwrap_or(uid)
}
