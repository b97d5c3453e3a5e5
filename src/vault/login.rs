//! Log-ins that another program keeps: the value is read from that program's file whenever a run needs it.
//!
//! A subscription's token is valid for hours or days, and the program that owns it renews it by itself, outside of
//! every jail. The vault only stores the token's place. It reads the file for each run, checks that no other user
//! can, and refuses an expired token with the command that renews it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::renewal::Renewal;
use provost_base::Secret;
use provost_base::limits::LOGIN_FILE_BYTES_MAX;

/// A token that expires within this time after the beginning of a run is of no use to the run.
const LEFT_MIN: Duration = Duration::from_secs(60);

/// The place of a log-in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginFile {
    /// The file, absolute; JSON.
    pub path: PathBuf,
    /// The member with the token, as a JSON pointer.
    pub token: String,
    /// The member with the token's expiry, in milliseconds since 1970, as a JSON pointer; without one, the expiry
    /// comes from the token if it is a JWT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// A further header beside the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<LoginHeader>,
    /// The command that logs in again, or renews the log-in.
    pub command: String,
    /// The renewal without that program; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,
}

/// A header whose value is in the same file as the token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginHeader {
    /// The header's name.
    pub name: String,
    /// The member with its value, as a JSON pointer.
    pub value: String,
}

/// The reason why a log-in cannot be used. The texts name the next step; none contains a token.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The file is missing, or cannot be trusted.
    #[error("{path}: {why}; run `{command}` outside of the jail")]
    Unusable {
        /// The file.
        path: String,
        /// The fault of the file.
        why: String,
        /// The command that logs in.
        command: String,
    },
    /// Other users may read or write the file.
    #[error("{path}: {why}; run `{command}`, and log in again if another user may have read it")]
    Open {
        /// The file.
        path: String,
        /// The permissions at fault.
        why: String,
        /// The command that removes the others' rights.
        command: String,
    },
    /// It has expired, and another process keeps it from being renewed.
    #[error(
        "the log-in in {path} has expired and is not renewed: {why}; look at it with `{command}`, and end it if it hangs"
    )]
    Held {
        /// The file.
        path: String,
        /// The process that holds it, if known.
        why: String,
        /// The command that shows the process.
        command: String,
    },
    /// The log-in has expired.
    #[error("the log-in in {path} has expired; run `{command}` outside of the jail, then delegate again")]
    Expired {
        /// The file.
        path: String,
        /// The command that renews it.
        command: String,
    },
}

impl LoginError {
    /// Returns the command that solves the problem.
    pub fn command(&self) -> &str {
        match self {
            Self::Unusable { command, .. }
            | Self::Open { command, .. }
            | Self::Held { command, .. }
            | Self::Expired { command, .. } => command,
        }
    }
}

/// The data that was read.
pub(super) struct Read {
    pub(super) token: Secret,
    pub(super) headers: Vec<(String, String)>,
}

impl LoginFile {
    /// Reads the token. Blocking.
    ///
    /// # Errors
    /// The file cannot be used, or the token has expired.
    pub(super) fn read(&self, now: SystemTime) -> Result<Read, LoginError> {
        let unusable = |why: String| self.unusable(why);
        let file = self.whole()?;
        let member = |at: &str| file.pointer(at).and_then(Value::as_str).filter(|it| !it.is_empty());
        let token = member(&self.token).ok_or_else(|| unusable("holds no such log-in".into()))?;
        if token.chars().any(char::is_control) {
            return Err(unusable("holds a token of several lines".into()));
        }
        let ends = match &self.expires {
            Some(at) => file.pointer(at).and_then(Value::as_u64),
            None => expiry_of(token),
        };
        let ends = ends.map(|ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        if ends.is_some_and(|ends| ends < now + LEFT_MIN) {
            return Err(self.expired());
        }
        let header = |it: &LoginHeader| member(&it.value).map(|value| (it.name.clone(), value.to_owned()));
        let headers: Vec<(String, String)> = self.header.iter().filter_map(header).collect();
        if headers.iter().any(|(_, value)| value.chars().any(char::is_control)) {
            return Err(unusable("holds an account of several lines".into()));
        }
        Ok(Read { token: Secret::new(token.as_bytes().to_vec()), headers })
    }

    /// Returns the whole file, if no other user could have read or written it.
    pub(super) fn whole(&self) -> Result<Value, LoginError> {
        let text = zeroize::Zeroizing::new(self.text()?);
        // The parser's error could quote a token.
        serde_json::from_str(&text).map_err(|_| self.unusable("is no JSON".into()))
    }

    /// Returns the file's text, if only its user could have read or written it.
    fn text(&self) -> Result<String, LoginError> {
        let path = &self.path;
        if !path.is_absolute() {
            return Err(self.unusable("is not an absolute path".into()));
        }
        let unreadable = |err: std::io::Error| self.unusable(format!("cannot be read: {err}"));
        let meta = path.symlink_metadata().map_err(unreadable)?;
        if meta.is_symlink() {
            return Err(self.unusable("is a symbolic link".into()));
        }
        provost_system::owned(path).map_err(|why| self.unusable(why))?;
        provost_system::private(path).map_err(|why| {
            let path = path.display().to_string();
            let command = match cfg!(windows) {
                true => format!("icacls \"{path}\" /inheritance:r /grant:r \"%USERNAME%:F\""),
                false => format!("chmod 600 {path}"),
            };
            LoginError::Open { path, why, command }
        })?;
        provost_system::short_text(path, LOGIN_FILE_BYTES_MAX).map_err(unreadable)
    }

    pub(super) fn unusable(&self, why: String) -> LoginError {
        LoginError::Unusable { path: self.path.display().to_string(), why, command: self.command.clone() }
    }

    pub(super) fn expired(&self) -> LoginError {
        LoginError::Expired { path: self.path.display().to_string(), command: self.command.clone() }
    }
}

/// Returns the time at which a JWT expires, in milliseconds since 1970. Only its service verifies the signature.
fn expiry_of(token: &str) -> Option<u64> {
    let payload = token.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&bytes).ok()?;
    claims.get("exp")?.as_u64()?.checked_mul(1_000)
}
