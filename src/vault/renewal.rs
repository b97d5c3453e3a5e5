//! Renews a log-in in the file of its program, as that program does: makes the request to its service, and applies
//! the answer to the file.
//!
//! A refresh token may be valid only once. The file is locked during the request, so that daemons do not use up
//! each other's token, and is read again under the lock; it is replaced in one step, if it still has the content
//! that was read. `egress` sends the request.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::delivery::Upstream;
use super::login::{LoginError, LoginFile};
use provost_base::Timestamp;

/// The renewal of a log-in: OAuth 2.0, `refresh_token`, as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// The address of the request, with its path.
    pub endpoint: Upstream,
    /// The program's own id at its service.
    pub client_id: String,
    /// The object with the file's tokens, as a JSON pointer: it has `access_token`, `refresh_token` and perhaps
    /// `id_token`.
    pub tokens: String,
    /// The member with the time of the last renewal, as a JSON pointer.
    pub renewed_at: String,
}

/// How long another process may hold the lock: longer than a renewal takes if the service answers.
const LOCK_TIME_MAX: Duration = Duration::from_secs(10);

/// Pause between two attempts to lock the file. The system has no lock that waits for a bounded time.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The part of a temporary file's name before the process id.
const BESIDE: &str = "provost-";

/// A renewal in progress; the file is locked as long as this value lives. Has no `Debug`.
pub struct OpenRenewal {
    login: LoginFile,
    renewal: Renewal,
    /// The content of the file.
    file: Value,
    beside: Beside,
    _lock: File,
}

/// The file that will replace the log-in's; it is removed with this value unless it has replaced it.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After the replacement, this file no longer exists.
        let _gone = std::fs::remove_file(&self.path);
    }
}

impl LoginFile {
    /// Begins to renew the log-in, if it has expired. `None` if it is valid, or cannot be renewed. Blocks while
    /// another process renews it, for some seconds at most. The file for the answer is created here, before a
    /// refresh token is used up.
    ///
    /// # Errors
    /// The file cannot be used, another process holds it, or no file can be written beside it.
    pub fn begin_renewal(&self, now: SystemTime) -> Result<Option<OpenRenewal>, LoginError> {
        let Some(renewal) = self.renewal.clone() else { return Ok(None) };
        if !matches!(self.read(now), Err(LoginError::Expired { .. })) {
            return Ok(None);
        }
        let lock = self.locked()?;
        // Another process may have renewed it meanwhile.
        if !matches!(self.read(now), Err(LoginError::Expired { .. })) {
            return Ok(None);
        }
        let file = self.whole()?;
        let beside = self.beside().map_err(|err| {
            self.unusable(format!("has expired, and no file can be written beside it to renew it: {err}"))
        })?;
        Ok(Some(OpenRenewal { login: self.clone(), renewal, file, beside, _lock: lock }))
    }

    /// Returns whether the file has the token for a renewal.
    pub(super) fn is_renewable(&self) -> bool {
        let token = |renewal: &Renewal| refresh_token(&self.whole().ok()?, renewal).map(drop);
        self.renewal.as_ref().and_then(token).is_some()
    }

    fn locked(&self) -> Result<File, LoginError> {
        let unlocked = |err: std::io::Error| self.unusable(format!("cannot be locked: {err}"));
        let file = File::open(&self.path).map_err(unlocked)?;
        let until = Instant::now() + LOCK_TIME_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let seconds = LOCK_TIME_MAX.as_secs();
                    let who = holder(&file).unwrap_or_else(|| "another process".into());
                    return Err(LoginError::Held {
                        path: self.path.display().to_string(),
                        why: format!("{who} has held it for {seconds} seconds"),
                        command: format!("fuser -v {}", self.path.display()),
                    });
                }
                Err(TryLockError::Error(err)) => return Err(unlocked(err)),
            }
        }
    }

    /// Creates a new file that only this user can read. Those of processes that ended before they could remove
    /// theirs are deleted first: only the holder of the lock creates one.
    fn beside(&self) -> std::io::Result<Beside> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let start = format!("{}.{BESIDE}", self.path.file_stem().unwrap_or_default().to_string_lossy());
        for entry in std::fs::read_dir(folder)?.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(&start));
            if number.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit())) {
                let _gone = std::fs::remove_file(entry.path());
            }
        }
        let path = self.path.with_extension(format!("{BESIDE}{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = provost_system::private_file(&mut options).open(&path)?;
        Ok(Beside { path, file })
    }
}

/// Returns the process that holds a lock on a file, from Linux's list.
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut held = fields.filter(|it| it.len() > 5 && it[1] == "FLOCK" && it[5].ends_with(&inode));
    held.next().map(|it| format!("process {}", it[4]))
}

#[cfg(not(target_os = "linux"))]
fn holder(_: &File) -> Option<String> {
    None
}

fn refresh_token<'a>(file: &'a Value, renewal: &Renewal) -> Option<&'a str> {
    let token = file.pointer(&format!("{}/refresh_token", renewal.tokens)).and_then(Value::as_str);
    token.filter(|it| !it.is_empty())
}

impl OpenRenewal {
    /// Returns the address of the request.
    pub fn endpoint(&self) -> &Upstream {
        &self.renewal.endpoint
    }

    /// Returns the body of the request, JSON; it holds the refresh token.
    ///
    /// # Errors
    /// The file has no refresh token.
    pub fn request(&self) -> Result<Zeroizing<String>, LoginError> {
        let token = refresh_token(&self.file, &self.renewal).ok_or_else(|| self.login.expired())?;
        let body = json!({
            "client_id": self.renewal.client_id, "grant_type": "refresh_token",
            "refresh_reason": "proactive_expiry", "refresh_token": token,
        });
        Ok(Zeroizing::new(body.to_string()))
    }

    /// Returns the error if the service does not renew it, without the service's words: they could quote a token.
    pub fn refused(&self, status: u16) -> LoginError {
        self.login.unusable(format!("has expired, and its service has not renewed it (status {status})"))
    }

    /// Returns the error if the service cannot be reached.
    pub fn unreachable(&self, why: &str) -> LoginError {
        self.login
            .unusable(format!("has expired, and {} cannot be asked to renew it: {why}", self.endpoint()))
    }

    /// Writes the answer into the file. A file that has changed meanwhile stays as it is: its program has logged in
    /// again, or out.
    ///
    /// # Errors
    /// The answer has no token, the file is gone, or it cannot be written; then it is unchanged.
    pub fn finish(mut self, answer: &[u8], now: Timestamp) -> Result<(), LoginError> {
        let strange =
            || self.login.unusable("has expired, and its service answers something else than tokens".into());
        let answer: Value = serde_json::from_slice(answer).map_err(|_| strange())?;
        let given = |name: &str| answer.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        if given("access_token").is_none_or(|it| it.chars().any(char::is_control)) {
            return Err(strange());
        }
        let mut file = self.file.clone();
        let tokens = file.pointer_mut(&self.renewal.tokens).and_then(Value::as_object_mut);
        let Some(tokens) = tokens else { return Err(self.login.unusable("holds no such log-in".into())) };
        for name in ["access_token", "refresh_token", "id_token"] {
            if let Some(token) = given(name) {
                tokens.insert(name.into(), token.into());
            }
        }
        if let Some(at) = file.pointer_mut(&self.renewal.renewed_at) {
            *at = now.rfc3339().into();
        }
        let text = Zeroizing::new(serde_json::to_string_pretty(&file).unwrap_or_default());
        let written = self.beside.file.write_all(text.as_bytes()).and_then(|()| self.beside.file.sync_all());
        let unwritten = |err: std::io::Error| self.login.unusable(format!("cannot be written: {err}"));
        written.map_err(unwritten)?;
        // Codex takes no lock.
        if self.login.whole()? != self.file {
            return Ok(());
        }
        std::fs::rename(&self.beside.path, &self.login.path).map_err(unwritten)
    }
}
