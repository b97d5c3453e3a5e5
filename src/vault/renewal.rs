//! Renewing a log-in in the file of its program, as that program does it: the one request to its service, and what its answer
//! changes in the file.
//!
//! A refresh token may be good once. The file is locked for the time of the request, so that daemons do not take it from each
//! other, and is read again under the lock; it is replaced in one step. Who sends the request is `egress`'s.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::delivery::Upstream;
use super::login::{LoginError, LoginFile};
use provost_base::Timestamp;

/// How a log-in is renewed: OAuth 2.0, `refresh_token`, as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// Where the request goes, with its path.
    pub endpoint: Upstream,
    /// The program's own name at its service.
    pub client_id: String,
    /// The folder of the file's tokens, as a JSON pointer: it has `access_token`, `refresh_token` and perhaps `id_token`.
    pub tokens: String,
    /// The member that says when it was renewed, as a JSON pointer.
    pub renewed_at: String,
}

/// A renewal under way; the file is locked as long as it lives. Has no `Debug`.
pub struct OpenRenewal {
    login: LoginFile,
    renewal: Renewal,
    file: Value,
    _lock: File,
}

impl LoginFile {
    /// Begins to renew it, if its time is over. `None` where it is good, or cannot be renewed. Blocks while another process renews it.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn begin_renewal(&self, now: SystemTime) -> Result<Option<OpenRenewal>, LoginError> {
        let Some(renewal) = self.renewal.clone() else { return Ok(None) };
        if !matches!(self.read(now), Err(LoginError::Expired { .. })) {
            return Ok(None);
        }
        let lock = File::open(&self.path).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(|err| self.unusable(format!("cannot be locked: {err}")))?;
        // Another process may have renewed it meanwhile.
        if !matches!(self.read(now), Err(LoginError::Expired { .. })) {
            return Ok(None);
        }
        let file = self.whole()?;
        Ok(Some(OpenRenewal { login: self.clone(), renewal, file, _lock: lock }))
    }
}

impl OpenRenewal {
    /// Where the request goes.
    pub fn endpoint(&self) -> &Upstream {
        &self.renewal.endpoint
    }

    /// The body of the request, JSON; it holds the refresh token.
    ///
    /// # Errors
    /// The file has no refresh token.
    pub fn request(&self) -> Result<Zeroizing<String>, LoginError> {
        let at = format!("{}/refresh_token", self.renewal.tokens);
        let token = self.file.pointer(&at).and_then(Value::as_str).filter(|it| !it.is_empty());
        let token = token.ok_or_else(|| self.login.expired())?;
        let body = json!({
            "client_id": self.renewal.client_id, "grant_type": "refresh_token",
            "refresh_reason": "proactive_expiry", "refresh_token": token,
        });
        Ok(Zeroizing::new(body.to_string()))
    }

    /// What to say when the service does not renew it, without its words: they could quote a token.
    pub fn refused(&self, status: u16) -> LoginError {
        self.login.unusable(format!("has expired, and its service has not renewed it (status {status})"))
    }

    /// What to say when the service cannot be asked.
    pub fn unreachable(&self, why: &str) -> LoginError {
        self.login
            .unusable(format!("has expired, and {} cannot be asked to renew it: {why}", self.endpoint()))
    }

    /// Takes the answer over into the file.
    ///
    /// # Errors
    /// The answer has no token, or the file cannot be written; then it is as it was.
    pub fn finish(mut self, answer: &[u8], now: Timestamp) -> Result<(), LoginError> {
        let strange =
            || self.login.unusable("has expired, and its service answers something else than tokens".into());
        let answer: Value = serde_json::from_slice(answer).map_err(|_| strange())?;
        let given = |name: &str| answer.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        if given("access_token").is_none_or(|it| it.chars().any(char::is_control)) {
            return Err(strange());
        }
        let tokens = self.file.pointer_mut(&self.renewal.tokens).and_then(Value::as_object_mut);
        let Some(tokens) = tokens else { return Err(self.login.unusable("holds no such log-in".into())) };
        for name in ["access_token", "refresh_token", "id_token"] {
            if let Some(token) = given(name) {
                tokens.insert(name.into(), token.into());
            }
        }
        if let Some(at) = self.file.pointer_mut(&self.renewal.renewed_at) {
            *at = now.rfc3339().into();
        }
        let text = Zeroizing::new(serde_json::to_string_pretty(&self.file).unwrap_or_default());
        self.replace(&text).map_err(|err| self.login.unusable(format!("cannot be written: {err}")))
    }

    fn replace(&self, text: &str) -> std::io::Result<()> {
        let path = &self.login.path;
        let beside = path.with_extension(format!("provost-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = provost_system::private_file(&mut options).open(&beside)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| std::fs::rename(&beside, path));
        if placed.is_err() {
            let _gone = std::fs::remove_file(&beside);
        }
        placed
    }
}
