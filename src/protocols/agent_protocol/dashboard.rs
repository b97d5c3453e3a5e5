//! Serves the published dashboard from a folder that its owner has configured, read-only.
//!
//! A path is resolved from the folder's own handle, one name after the other. No name may be a link, hidden, or
//! lead up; only regular files are served, up to a bound. A page may do what the published one does: load its own
//! scripts and styles, and send requests to this door.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
#[cfg(unix)]
use cap_std::fs::OpenOptionsExt as _;
use cap_std::fs::{Dir, OpenOptions};
use hyper::StatusCode;
use hyper::header::HeaderValue;

use super::error::AgentProtocolError;
use crate::loopback::{Answer, whole};
use provost_base::limits::DASHBOARD_FILE_BYTES_MAX;

/// The sources that the pages may load from: only this door. The published ones have inline styles.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The content types by the end of a file's name. Browsers run a script only if its type says so.
const KINDS: [(&str, &str); 13] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json; charset=utf-8"),
    ("map", "application/json; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
    ("md", "text/plain; charset=utf-8"),
];

/// The dashboard's folder, as the configuration names it.
#[derive(Clone, Debug)]
pub(super) struct Folder(Arc<Path>);

/// The reason why a file is not served.
enum No {
    /// It does not exist, or is of a kind that is not served.
    Missing,
    /// It is larger than the bound.
    TooLarge,
    /// The folder itself cannot be read.
    Folder(String),
}

impl Folder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path.into())
    }

    /// Serves a file of the folder.
    ///
    /// # Errors
    /// 404 for a file that is not served, 413 for one that is too large, 503 if the folder cannot be read.
    pub(super) async fn answer(&self, path: &str) -> Result<Answer, AgentProtocolError> {
        let (folder, wanted) = (Arc::clone(&self.0), path.to_owned());
        let read = tokio::task::spawn_blocking(move || read(&folder, &wanted)).await;
        let (kind, bytes) = match read {
            Ok(Ok(found)) => found,
            Ok(Err(No::TooLarge)) => {
                return Err(AgentProtocolError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "larger than a page may be",
                ));
            }
            Ok(Err(No::Folder(why))) => {
                tracing::warn!(folder = %self.0.display(), why, "the dashboard's folder cannot be read");
                let says =
                    "the folder that `dashboard` in `[agent_protocol]` names cannot be read; see the log";
                return Err(AgentProtocolError::new(StatusCode::SERVICE_UNAVAILABLE, says));
            }
            Ok(Err(No::Missing)) | Err(_) => return Err(AgentProtocolError::not_found("Not found")),
        };
        let mut answer = whole(StatusCode::OK, kind, bytes);
        answer.headers_mut().insert("content-security-policy", HeaderValue::from_static(POLICY));
        Ok(answer)
    }
}

/// Returns the content type and the content of a file. Blocking.
fn read(folder: &Path, wanted: &str) -> Result<(&'static str, Vec<u8>), No> {
    let mut names: Vec<&str> = wanted.split('/').collect();
    let good = |name: &&str| !name.is_empty() && !name.starts_with('.') && !name.contains(['\\', '\0', ':']);
    if !names.iter().all(good) {
        return Err(No::Missing);
    }
    let file = names.pop().ok_or(No::Missing)?;
    let ends = Path::new(file).extension().and_then(|it| it.to_str()).unwrap_or_default();
    let kind = KINDS.iter().find(|(it, _)| it.eq_ignore_ascii_case(ends)).ok_or(No::Missing)?.1;
    let opened = Dir::open_ambient_dir(folder, ambient_authority());
    let mut dir = opened.map_err(|err| No::Folder(err.to_string()))?;
    for name in names {
        // If a link takes its place now, it cannot lead outside: names are resolved beneath the handle.
        let is_folder = dir.symlink_metadata(name).is_ok_and(|it| it.is_dir());
        dir = dir.open_dir(name).ok().filter(|_| is_folder).ok_or(No::Missing)?;
    }
    let mut options = OpenOptions::new();
    options.read(true);
    // The daemon must not wait for a pipe.
    #[cfg(unix)]
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let is_file = dir.symlink_metadata(file).is_ok_and(|it| it.is_file());
    let file = dir.open_with(file, &options).ok().filter(|_| is_file).ok_or(No::Missing)?;
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err(No::Missing);
    }
    let mut bytes = Vec::new();
    let most = DASHBOARD_FILE_BYTES_MAX as u64;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|_| No::Missing)?;
    if bytes.len() > DASHBOARD_FILE_BYTES_MAX { Err(No::TooLarge) } else { Ok((kind, bytes)) }
}
