//! The key ring: one shared DevIt secret, and separate keys for idents that no other client may use.
//!
//! A folder (0700) with one file per ident and one for the shared secret (0600 each). An ident with a file is
//! reserved, also after its key was revoked or has expired: the shared secret never speaks for it. The key
//! ring refuses files that another user could read or write, with the command that repairs it, and nothing
//! has a default. Key ids, idents and dates may be shown; secrets leave only as a [`Secret`].

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use hmac::Mac as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use provost_base::limits::{FOLDER_LOCK_MS_MAX, FOLDER_LOCK_TRY_MS, KEYS_PER_IDENT_MAX, SECRET_LEN_MIN};
use provost_base::{AgentId, Digest, Secret, Slug, Timestamp, Ttl};
use provost_domain::post::owned_slug;

#[cfg_attr(windows, path = "keys/folder_windows.rs")]
pub mod folder;

use folder::Folder;

/// The shared secret's file name.
pub(super) const SHARED: &str = "shared.secret";

/// The secrets that DevIt's programs fall back to, which are public.
const WELL_KNOWN: [&[u8]; 2] = [b"change-me-in-production", b"change-me"];

/// The trust in the holder of an own key. Policy decides the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Works and coordinates, like any client.
    Agent,
    /// May also answer approvals.
    Approver,
    /// Receives delegated tasks under a name that no other client can take.
    Worker,
}

/// The reason why the key ring cannot be used as it is. Texts name the place and the next step; none holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Others can read or change a file or folder, or it is of another kind than expected.
    #[error("{}: {what}; {remedy}", path.display())]
    Unsafe {
        /// The file or folder.
        path: PathBuf,
        /// The problem.
        what: &'static str,
        /// A command or a sentence that repairs it.
        remedy: String,
    },
    /// A file is not a key file.
    #[error("{}: {what}; restore the file or remove it", path.display())]
    Malformed {
        /// The file that is malformed.
        path: PathBuf,
        /// The mistake, without a quotation of the file.
        what: String,
    },
    /// Another process holds the folder.
    #[error(
        "{}: another process has held the lock of this folder for {} s; end that process (`fuser -v` names it), and try again",
        .0.display(),
        FOLDER_LOCK_MS_MAX / 1_000
    )]
    Held(PathBuf),
    /// The system refused an operation on a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// `add` for an ident that has a key.
    #[error("`{0}` has a key already; use `provost key rotate` for a new one")]
    Exists(AgentId),
    /// `add` for another spelling of an ident that has a key.
    #[error("`{0}` and `{1}` are one name, and `{1}` has a key; use that, or another name")]
    Alike(AgentId, AgentId),
    /// `rotate` or `revoke` for an ident without a key.
    #[error("`{0}` has no key; see `provost key list`")]
    Unknown(AgentId),
    /// Too many rotations within one overlap.
    #[error("`{0}` has {KEYS_PER_IDENT_MAX} valid keys; revoke it, or wait until older ones have expired")]
    TooMany(AgentId),
    /// A secret that another user could know or guess.
    #[error("the secret {0}; make one with `openssl rand -hex 32`, or leave it out to have one made")]
    Weak(&'static str),
    /// The system has no randomness to give.
    #[error("no randomness: {0}")]
    Random(#[from] getrandom::Error),
}

/// The secrets that speak for an ident.
#[derive(Clone)]
pub enum Keys {
    /// The ident's own secrets alone; never empty.
    Own {
        /// The role that the key was made for.
        role: Role,
        /// More than one while a rotation overlaps, the newest first.
        secrets: Vec<Secret>,
    },
    /// The secret that all idents without a key of their own share.
    Shared(Secret),
    /// No secret: the ident's keys are revoked or have expired.
    None,
}

/// An ident with an own key, for lists. It holds no secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KeyInfo {
    /// The ident that the key speaks for.
    pub ident: AgentId,
    /// The role that the key was made for.
    pub role: Role,
    /// The keys that have not been cleared away, the newest first.
    pub keys: Vec<KeyDates>,
    /// When it was revoked, if it was; the name stays reserved. As text it is RFC 3339, as every time in a list.
    #[serde(serialize_with = "as_text")]
    pub revoked: Option<Timestamp>,
}

fn as_text<S: serde::Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    at.map(Timestamp::rfc3339).serialize(to)
}

/// One key of an ident.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KeyDates {
    /// The beginning of the secret's digest, which tells an ident's keys apart.
    pub id: String,
    /// When it was made.
    #[serde(serialize_with = "one_as_text")]
    pub created: Timestamp,
    /// The time from which it is no longer valid.
    #[serde(serialize_with = "as_text")]
    pub expires: Option<Timestamp>,
}

fn one_as_text<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    at.rfc3339().serialize(to)
}

/// The keys in a folder, and those in force.
pub struct KeyRing {
    folder: Folder,
    in_force: RwLock<InForce>,
    /// Serialises changes within this process; a lock on the folder keeps other processes out.
    changing: Mutex<()>,
    changed: Notify,
}

struct InForce {
    /// The secret for this run alone; it takes precedence over the file's.
    of_this_run: Option<Secret>,
    shared: Secret,
    own: HashMap<AgentId, Own>,
    /// The slugs of these idents; all spellings of an ident share one.
    names: HashSet<Slug>,
}

struct Own {
    role: Role,
    revoked: Option<Timestamp>,
    keys: Vec<Key>,
}

struct Key {
    dates: KeyDates,
    secret: Secret,
}

impl KeyRing {
    /// Opens the key ring in a folder; creates the folder and the shared secret if they are missing.
    ///
    /// # Errors
    /// [`KeyError`] if any part of it is unsafe or unreadable: a ring is used whole or not at all.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let folder = Folder::open(path)?;
        {
            let _lock = folder.lock()?;
            folder.sweep()?;
            if folder.read(SHARED)?.is_none() {
                let mut text = zeroize::Zeroizing::new(super::random_hex()?.expose().to_vec());
                text.push(b'\n');
                folder.write(SHARED, &text)?;
            }
        }
        let in_force = RwLock::new(InForce::load(&folder)?);
        Ok(Self { folder, in_force, changing: Mutex::default(), changed: Notify::new() })
    }

    /// Puts the folder's present content into force, as after a change by another process.
    ///
    /// # Errors
    /// [`KeyError`]; the keys in force remain.
    pub fn reload(&self) -> Result<(), KeyError> {
        let loaded = InForce::load(&self.folder)?;
        {
            let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
            let of_this_run = in_force.of_this_run.take();
            *in_force = InForce { of_this_run, ..loaded };
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// Completes once the keys in force may differ from those at this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Uses a secret from the command line or the environment instead of the file's, for this run.
    ///
    /// # Errors
    /// [`KeyError::Weak`] for an empty one and for those that DevIt's programs fall back to.
    pub fn set_shared(&self, secret: Secret) -> Result<(), KeyError> {
        refuse_known(&secret)?;
        self.in_force.write().unwrap_or_else(PoisonError::into_inner).of_this_run = Some(secret);
        Ok(())
    }

    /// Returns the shared secret in force, for callers that may tell it to a client.
    pub fn shared(&self) -> Secret {
        self.in_force().shared().clone()
    }

    /// Returns a key for one purpose, in hexadecimal digits. It derives from the shared secret, and stays the same
    /// as long as that does.
    pub fn derived(&self, purpose: &[u8]) -> Secret {
        derived(self.in_force().shared(), purpose)
    }

    /// Derives the key from the secret in the folder: one key for all daemons of the user, even if one of them runs
    /// with another secret.
    pub fn derived_for_all(&self, purpose: &[u8]) -> Secret {
        derived(&self.in_force().shared, purpose)
    }

    /// Returns the secrets that speak for this ident now.
    pub fn lookup(&self, ident: &AgentId, now: Timestamp) -> Keys {
        let in_force = self.in_force();
        let Some(own) = in_force.own.get(ident) else {
            let is_reserved = in_force.names.contains(&owned_slug(ident.as_str()));
            return if is_reserved { Keys::None } else { Keys::Shared(in_force.shared().clone()) };
        };
        let valid = own.keys.iter().filter(|key| own.revoked.is_none() && key.is_valid(now));
        let secrets: Vec<Secret> = valid.map(|key| key.secret.clone()).collect();
        if secrets.is_empty() { Keys::None } else { Keys::Own { role: own.role, secrets } }
    }

    /// Checks whether a client needs this name's own key to use the name, in any spelling.
    pub fn is_reserved(&self, ident: &AgentId) -> bool {
        let in_force = self.in_force();
        !in_force.names.is_empty() && in_force.names.contains(&owned_slug(ident.as_str()))
    }

    /// Checks whether exactly this name has, or had, a key.
    pub fn has(&self, ident: &AgentId) -> bool {
        self.in_force().own.contains_key(ident)
    }

    /// Returns all idents with an own key, by name.
    pub fn list(&self) -> Vec<KeyInfo> {
        let in_force = self.in_force();
        let info = |(ident, own): (&AgentId, &Own)| KeyInfo {
            ident: ident.clone(),
            role: own.role,
            keys: own.keys.iter().map(|key| key.dates.clone()).collect(),
            revoked: own.revoked,
        };
        let mut list: Vec<KeyInfo> = in_force.own.iter().map(info).collect();
        list.sort_by(|a, b| a.ident.cmp(&b.ident));
        list
    }

    /// Makes a key for an ident, which is reserved from then on. A revoked ident may get a new key.
    ///
    /// # Errors
    /// [`KeyError::Exists`], [`KeyError::Alike`], and the folder's errors.
    pub fn add(&self, ident: &AgentId, role: Role, now: Timestamp) -> Result<Secret, KeyError> {
        // Names without an ASCII letter or digit share one inbox, but people can tell them apart.
        let plain = |it: &AgentId| it.as_str().chars().any(|c| c.is_ascii_alphanumeric() || c == '_');
        let same = |it: &AgentId| plain(it) && owned_slug(it.as_str()) == owned_slug(ident.as_str());
        let alike = |it: &&AgentId| *it != ident && plain(ident) && same(it);
        if let Some(other) = self.in_force().own.keys().find(alike) {
            return Err(KeyError::Alike(ident.clone(), other.clone()));
        }
        self.change(ident, |own| match own {
            Some(Own { revoked: None, .. }) => Err(KeyError::Exists(ident.clone())),
            _ => {
                let key = Key::new(now)?;
                let secret = key.secret.clone();
                Ok((Own { role, revoked: None, keys: vec![key] }, secret))
            }
        })
    }

    /// Makes a new key; the older ones stay valid for at most `overlap`.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::TooMany`], and the folder's errors.
    pub fn rotate(&self, ident: &AgentId, overlap: Ttl, now: Timestamp) -> Result<Secret, KeyError> {
        self.change(ident, |own| {
            let mut own =
                own.filter(|own| own.revoked.is_none()).ok_or_else(|| KeyError::Unknown(ident.clone()))?;
            own.keys.retain(|key| key.is_valid(now));
            if own.keys.len() >= KEYS_PER_IDENT_MAX {
                return Err(KeyError::TooMany(ident.clone()));
            }
            let end = now.after(overlap);
            for key in &mut own.keys {
                key.dates.expires = Some(key.dates.expires.map_or(end, |expires| expires.min(end)));
            }
            let key = Key::new(now)?;
            let secret = key.secret.clone();
            own.keys.insert(0, key);
            Ok((own, secret))
        })
    }

    /// Ends all keys of an ident at once. Its name stays reserved.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], and the folder's errors.
    pub fn revoke(&self, ident: &AgentId, now: Timestamp) -> Result<(), KeyError> {
        self.change(ident, |own| {
            let own = own.ok_or_else(|| KeyError::Unknown(ident.clone()))?;
            Ok((Own { role: own.role, revoked: own.revoked.or(Some(now)), keys: Vec::new() }, ()))
        })
    }

    fn in_force(&self) -> RwLockReadGuard<'_, InForce> {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes one ident's file, starting from its present content rather than from the keys in force here.
    fn change<T>(
        &self,
        ident: &AgentId,
        change: impl FnOnce(Option<Own>) -> Result<(Own, T), KeyError>,
    ) -> Result<T, KeyError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = self.folder.lock()?;
        let name = file_name(ident);
        let before = match self.folder.read(&name)? {
            Some(text) => Some(KeyFile::parse(&text).map_err(|what| self.folder.malformed(&name, what))?.1),
            None => None,
        };
        let (after, answer) = change(before)?;
        self.folder.write(&name, &KeyFile::print(ident, &after))?;
        self.reload()?;
        Ok(answer)
    }
}

/// Retries for as long as callers wait for a folder's lock. Blocks its thread.
fn within_wait<T>(
    path: &Path,
    mut attempt: impl FnMut() -> Result<Option<T>, KeyError>,
) -> Result<T, KeyError> {
    let until = Instant::now() + Duration::from_millis(FOLDER_LOCK_MS_MAX);
    loop {
        if let Some(locked) = attempt()? {
            return Ok(locked);
        }
        if Instant::now() >= until {
            return Err(KeyError::Held(path.to_owned()));
        }
        // The system has no lock of files with a deadline.
        std::thread::sleep(Duration::from_millis(FOLDER_LOCK_TRY_MS));
    }
}

pub(super) fn derived(secret: &Secret, purpose: &[u8]) -> Secret {
    let mut mac = secret.mac();
    mac.update(purpose);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Secret::new(digits.into_bytes())
}

impl InForce {
    fn shared(&self) -> &Secret {
        self.of_this_run.as_ref().unwrap_or(&self.shared)
    }

    fn load(folder: &Folder) -> Result<Self, KeyError> {
        let unsafe_secret = |weak: KeyError| folder.malformed(SHARED, weak.to_string());
        let mut text = folder.read(SHARED)?.ok_or_else(|| folder.malformed(SHARED, "is missing".into()))?;
        while text.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            text.pop();
        }
        let shared = Secret::new(std::mem::take(&mut *text));
        refuse_weak(&shared).map_err(unsafe_secret)?;

        let mut own = HashMap::new();
        for name in folder.names()?.iter().filter(|name| name.ends_with(".toml")) {
            // A file that another process has just removed counts as never there.
            let Some(text) = folder.read(name)? else { continue };
            let (ident, keys) = KeyFile::parse(&text).map_err(|what| folder.malformed(name, what))?;
            if file_name(&ident) != *name {
                return Err(
                    folder.malformed(name, format!("belongs to `{ident}`, whose file has another name"))
                );
            }
            own.insert(ident, keys);
        }
        let names = own.keys().map(|ident: &AgentId| owned_slug(ident.as_str())).collect();
        Ok(Self { of_this_run: None, shared, own, names })
    }
}

impl Key {
    fn new(now: Timestamp) -> Result<Self, KeyError> {
        Ok(Self::from_secret(super::random_hex()?, now, None))
    }

    fn from_secret(secret: Secret, created: Timestamp, expires: Option<Timestamp>) -> Self {
        let id = Digest::of_fields([b"provost key id".as_slice(), secret.expose()]).short();
        Self { dates: KeyDates { id, created, expires }, secret }
    }

    /// Checks whether the key is valid; at its deadline it no longer is.
    fn is_valid(&self, now: Timestamp) -> bool {
        self.dates.expires.is_none_or(|expires| now < expires)
    }
}

/// A key file on disk, in TOML; times are milliseconds since 1970.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    ident: AgentId,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_ms: Option<Timestamp>,
    #[serde(default)]
    key: Vec<StoredKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredKey {
    secret: String,
    created_ms: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<Timestamp>,
}

impl Drop for StoredKey {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.secret);
    }
}

impl KeyFile {
    fn parse(text: &[u8]) -> Result<(AgentId, Own), String> {
        let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
        // The message alone: the full text of a TOML error quotes the line.
        let file: Self = toml::from_str(text).map_err(|e| format!("is not a key file ({})", e.message()))?;
        let mut keys = Vec::with_capacity(file.key.len());
        for mut key in file.key {
            let secret = Secret::new(std::mem::take(&mut key.secret).into_bytes());
            refuse_weak(&secret).map_err(|weak| weak.to_string())?;
            keys.push(Key::from_secret(secret, key.created_ms, key.expires_ms));
        }
        Ok((file.ident, Own { role: file.role, revoked: file.revoked_ms, keys }))
    }

    fn print(ident: &AgentId, own: &Own) -> zeroize::Zeroizing<Vec<u8>> {
        let stored = |key: &Key| StoredKey {
            secret: String::from_utf8_lossy(key.secret.expose()).into_owned(),
            created_ms: key.dates.created,
            expires_ms: key.dates.expires,
        };
        let key = own.keys.iter().map(stored).collect();
        let file = Self { ident: ident.clone(), role: own.role, revoked_ms: own.revoked, key };
        let text = toml::to_string(&file).expect("names, numbers and text can be written as TOML");
        zeroize::Zeroizing::new(text.into_bytes())
    }
}

/// Returns a readable beginning plus a digest, so that no two idents collide and no odd characters occur.
fn file_name(ident: &AgentId) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
    let readable: String = ident.as_str().chars().take(40).map(plain).collect();
    let digest = Digest::of(ident.as_str().as_bytes()).to_string();
    format!("{readable}.{}.toml", &digest[..32])
}

fn refuse_known(secret: &Secret) -> Result<(), KeyError> {
    if secret.expose().is_empty() {
        return Err(KeyError::Weak("is empty"));
    }
    if WELL_KNOWN.contains(&secret.expose()) {
        return Err(KeyError::Weak("is the published default"));
    }
    Ok(())
}

fn refuse_weak(secret: &Secret) -> Result<(), KeyError> {
    refuse_known(secret)?;
    if secret.expose().len() < SECRET_LEN_MIN {
        return Err(KeyError::Weak("is too short to be safe"));
    }
    Ok(())
}
