//! Log-ins that another program keeps: the value is read from that program's file whenever a run needs it.
//!
//! A subscription's token lives for hours or days, and the program that has it renews it by itself, outside
//! of every jail. The vault keeps where it lies. It reads the file for each run, checks that no other user
//! can, and refuses a token whose time is over with the command that renews it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::renewal::Renewal;
use provost_base::Secret;
use provost_base::limits::LOGIN_FILE_BYTES_MAX;

/// A token that ends sooner than this after the beginning of a run is of no use to it.
const LEFT_MIN: Duration = Duration::from_secs(60);

/// Where a log-in lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginFile {
    /// The file, absolute; JSON.
    pub path: PathBuf,
    /// The member with the token, as a JSON pointer.
    pub token: String,
    /// The member with the time at which it ends, in milliseconds since 1970; without one, the token is asked
    /// if it is a JWT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// A header that goes along with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<LoginHeader>,
    /// The command that logs in again, or renews the log-in.
    pub command: String,
    /// How it is renewed without that program; without this, it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,
}

/// A header whose value lies beside the token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginHeader {
    /// The header's name.
    pub name: String,
    /// The member with its value, as a JSON pointer.
    pub value: String,
}

/// Why a log-in cannot be used. Texts say what to do; none holds a token.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The file is missing, or is not to be trusted.
    #[error("{path}: {why}; run `{command}` outside of the jail")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
        /// The command that logs in.
        command: String,
    },
    /// Other users may read or write the file.
    #[error("{path}: {why}; run `{command}`, and log in again if another user may have read it")]
    Open {
        /// The file.
        path: String,
        /// Who may do what.
        why: String,
        /// The command that closes it.
        command: String,
    },
    /// It has expired, and another process keeps it from being renewed.
    #[error(
        "the log-in in {path} has expired and is not renewed: {why}; look at it with `{command}`, and end it if it hangs"
    )]
    Held {
        /// The file.
        path: String,
        /// Which process, if it is known.
        why: String,
        /// The command that shows the process.
        command: String,
    },
    /// Its time is over.
    #[error("the log-in in {path} has expired; run `{command}` outside of the jail, then delegate again")]
    Expired {
        /// The file.
        path: String,
        /// The command that renews it.
        command: String,
    },
}

impl LoginError {
    /// The command that mends it.
    pub fn command(&self) -> &str {
        match self {
            Self::Unusable { command, .. }
            | Self::Open { command, .. }
            | Self::Held { command, .. }
            | Self::Expired { command, .. } => command,
        }
    }
}

/// What was read.
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

    /// The whole file, if no other user could have read or written it.
    pub(super) fn whole(&self) -> Result<Value, LoginError> {
        let text = zeroize::Zeroizing::new(self.text()?);
        // What the parser complains about could quote a token.
        serde_json::from_str(&text).map_err(|_| self.unusable("is no JSON".into()))
    }

    /// The file's text, if only its user could have read or written it.
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

/// The time at which a JWT ends, in milliseconds since 1970. Its signature is its service's concern.
fn expiry_of(token: &str) -> Option<u64> {
    let payload = token.split('.').nth(1)?;
    let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&bytes).ok()?;
    claims.get("exp")?.as_u64()?.checked_mul(1_000)
}
