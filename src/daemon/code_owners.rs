//! Reads the repository's `CODEOWNERS`, as far as it names agents, and reads it again when it changes.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Daemon;
use super::file_watcher::{Covered, FileListener};
use provost_base::limits::{CODE_OWNERS_BYTES_MAX, CODE_OWNERS_MAX};
use provost_domain::post::{Owner, owner_slugs};
use provost_engine::Engine;

/// The possible paths of the file; the first that exists counts.
const AT: [&str; 3] = ["CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS"];

/// How long a file that is being written may take to be complete.
const MOMENT: Duration = Duration::from_millis(100);

/// How often the file is read if the system does not report changes.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// Returns the file's lines: a pattern, and the names behind it.
pub(super) fn read(root: &Path) -> Vec<Owner> {
    let text = Dir::open_ambient_dir(root, ambient_authority())
        .ok()
        .and_then(|root| AT.iter().find_map(|path| text(&root, path)))
        .unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let pattern = words.next()?.into();
        let by = words.flat_map(|it| owner_slugs(it.trim_start_matches('@'))).collect();
        Some(Owner { pattern, by, source: "CODEOWNERS".into() })
    };
    text.lines().filter_map(line).take(CODE_OWNERS_MAX).collect()
}

/// Reads a file below the root, within a bound in size. It follows no link that leads out, and does not wait
/// for a pipe's other end.
fn text(root: &Dir, path: &str) -> Option<String> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = root.open_with(path, &options).ok()?;
    let is_good = |it: &cap_std::fs::Metadata| it.is_file() && it.len() <= CODE_OWNERS_BYTES_MAX;
    file.metadata().ok().filter(is_good)?;
    let mut text = String::new();
    file.take(CODE_OWNERS_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

impl Daemon {
    /// Reads the file of code owners again whenever it changes.
    pub(super) fn follow_code_owners(&self) {
        let (engine, root) = (self.engine().clone(), self.start.places.root.clone());
        // The file itself, and the folders in which it may be, are of interest.
        let is_of_interest = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            ["CODEOWNERS", ".github", "docs"].iter().any(|it| name == *it)
        };
        let heard: Arc<Notify> = Arc::default();
        let listener = FileListener::new(&self.watcher, &root, heard.clone(), is_of_interest);
        self.doors.spawn(follow(engine, root, (Arc::new(listener), heard), self.stop.clone()));
    }
}

/// Follows the file until the daemon stops.
async fn follow(
    engine: Engine,
    root: PathBuf,
    (listener, heard): (Arc<FileListener>, Arc<Notify>),
    stop: CancellationToken,
) {
    let mut last = None;
    loop {
        let (at, hearing) = (root.clone(), listener.clone());
        let looked = tokio::task::spawn_blocking(move || {
            // The listener starts before the file is read, so that no change falls between the two.
            let folders: BTreeSet<PathBuf> = AT
                .iter()
                // A link to a folder cannot be watched, but the folder itself can.
                .filter_map(|it| at.join(it).parent()?.canonicalize().ok())
                .filter(|it| it.is_dir())
                .collect();
            let covered = hearing.cover(&folders);
            (read(&at), covered)
        });
        let Ok((owners, covered)) = looked.await else { return };
        if last.as_ref() != Some(&owners) {
            match engine.set_code_owners(owners.clone()) {
                Ok(()) => last = Some(owners),
                Err(err) => tracing::debug!(%err, "the owners of files are taken over later"),
            }
        }
        let patience = if covered == Covered::Not || last.is_none() { NOW_AND_THEN } else { Duration::MAX };
        tokio::select! {
            () = stop.cancelled() => return,
            () = heard.notified() => {}
            () = tokio::time::sleep(patience) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(MOMENT) => {}
        }
        // It does not matter which path has changed.
        let _news = listener.take();
    }
}
