//! The store of secrets that workers may get, and the form in which they get them.
//!
//! The vault is a folder (0700) of the user's configuration with one file per secret (0600): its value, and how it
//! reaches a worker. The vault refuses files that another user could read or write, and names the command that
//! repairs them. It never prints a value, and returns it only as a [`Secret`].
//!
//! ```text
//! proxy   the daemon adds it to requests for one host; the worker has a token of its run and a base URL
//! file    a copy of it is in the worker's private home
//! env     a variable of the worker holds it
//! daemon  no worker gets it: the daemon sends notices with it
//! ```
//! The value of a log-in stays in the file of the program that renews it, and is read from there for each run.
//!
//! Other modules decide which worker uses which secret (`config`) and whether it may have it in this form
//! (`policy`), and deliver it (`egress`, `jail`).
#![forbid(unsafe_code)]

mod delivery;
mod login;
mod renewal;

use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use provost_auth::keys::KeyError;
use provost_auth::keys::folder::Folder;
use provost_base::Secret;
use provost_base::limits::{SECRET_NAME_LEN_MAX, SECRET_VALUE_BYTES_MAX, SECRETS_MAX};

pub use delivery::{BadDelivery, ByProxy, Delivery, Upstream};
pub use login::{LoginError, LoginFile, LoginHeader};
pub use renewal::{OpenRenewal, Renewal};

/// The ending of the files' names.
const ENDING: &str = ".toml";

/// The reason why a secret cannot be used. The texts name the next step; none contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The folder or a file of it cannot be used.
    #[error(transparent)]
    Files(#[from] KeyError),
    /// The name has other characters than names of secrets may have, or too many.
    #[error(
        "`{0}` cannot be the name of a secret: 1 to {SECRET_NAME_LEN_MAX} letters, digits, `-`, `_` and `.`"
    )]
    Name(String),
    /// A secret of this name exists already.
    #[error("there is a secret `{0}` already; remove it first: provost secret remove {0}")]
    Exists(String),
    /// The vault has no file for this name.
    #[error("there is no secret `{0}`: provost secret add {0}")]
    Unknown(String),
    /// The delivery is invalid.
    #[error("the secret `{name}`: {why}")]
    Delivery {
        /// The secret's name.
        name: String,
        /// The mistake in the delivery.
        why: BadDelivery,
    },
    /// The log-in behind the secret cannot be used.
    #[error("the secret `{name}`: {why}")]
    Login {
        /// The secret's name.
        name: String,
        /// The cause, with the next step.
        why: LoginError,
    },
    /// The value cannot be stored.
    #[error("the value {0}")]
    Value(&'static str),
    /// There are more secrets than a person can oversee.
    #[error("there are {SECRETS_MAX} secrets already; remove one that is not needed")]
    TooMany,
}

/// A secret with its delivery. Has no `Debug`.
#[derive(Clone)]
pub struct Credential {
    /// The name by which workers' settings refer to it.
    pub name: Box<str>,
    /// The way in which a worker gets it.
    pub delivery: Delivery,
    /// The value, which is never printed.
    pub value: Secret,
    /// Further headers of each request, by name.
    pub headers: Vec<(String, String)>,
}

/// A secret in the form for lists.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Listed {
    /// The name by which workers' settings refer to it.
    pub name: Box<str>,
    /// The way in which a worker gets it.
    pub delivery: Delivery,
    /// The place of its value, if another program keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginFile>,
}

/// A file of the folder.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretFile {
    /// The value; empty if a log-in has it.
    #[serde(default)]
    value: String,
    delivery: Delivery,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    login: Option<LoginFile>,
}

/// The folder of secrets. It need not exist until a secret is added.
#[derive(Clone, Debug)]
pub struct Vault(PathBuf);

impl Vault {
    /// Returns the vault in this folder.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns every secret, by name.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn list(&self) -> Result<Vec<Listed>, VaultError> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let folder = Folder::open(&self.0)?;
        let mut names: Vec<String> = folder.names()?.iter().filter_map(|name| secret_of(name)).collect();
        names.sort();
        names.into_iter().map(|name| listed(&folder, &name)).collect()
    }

    /// Returns a secret in the form for lists. Its value is not read if another program keeps it.
    ///
    /// # Errors
    /// The secret does not exist, or its file cannot be used.
    pub fn look(&self, name: &str) -> Result<Listed, VaultError> {
        listed(&self.folder_of(name)?, name)
    }

    /// Reads a secret and its delivery from its file, and a log-in's value from the file of its program.
    ///
    /// # Errors
    /// The secret does not exist, its file cannot be used, or the log-in has expired.
    pub fn get(&self, name: &str) -> Result<Credential, VaultError> {
        let SecretFile { value, delivery, login } = read(&self.folder_of(name)?, name)?;
        let value = Secret::new(value.into_bytes());
        let Some(login) = login else {
            return Ok(Credential { name: name.into(), delivery, value, headers: Vec::new() });
        };
        let read = login.read(SystemTime::now());
        let read = read.map_err(|why| VaultError::Login { name: name.into(), why })?;
        Ok(Credential { name: name.into(), delivery, value: read.token, headers: read.headers })
    }

    fn folder_of(&self, name: &str) -> Result<Folder, VaultError> {
        check_name(name)?;
        if !self.0.exists() {
            return Err(VaultError::Unknown(name.into()));
        }
        Ok(Folder::open(&self.0)?)
    }

    /// Stores a secret under a new name.
    ///
    /// # Errors
    /// The name, value or delivery is invalid, or the name is taken.
    pub fn add(&self, name: &str, delivery: Delivery, value: &Secret) -> Result<(), VaultError> {
        let text = check_value(value, &delivery)?.to_owned();
        self.put(name, SecretFile { value: text, delivery, login: None })
    }

    /// Stores the place where the log-in of another program is read.
    ///
    /// # Errors
    /// The name or delivery is invalid, the name is taken, or the log-in cannot be used now.
    pub fn add_login(&self, name: &str, delivery: Delivery, login: LoginFile) -> Result<(), VaultError> {
        match login.read(SystemTime::now()) {
            // The first run renews it.
            Err(LoginError::Expired { .. }) if login.is_renewable() => {}
            read => drop(read.map_err(|why| VaultError::Login { name: name.into(), why })?),
        }
        self.put(name, SecretFile { value: String::new(), delivery, login: Some(login) })
    }

    fn put(&self, name: &str, kept: SecretFile) -> Result<(), VaultError> {
        check_name(name)?;
        kept.delivery.check().map_err(|why| VaultError::Delivery { name: name.into(), why })?;
        let folder = Folder::open(&self.0)?;
        let _lock = folder.lock()?;
        folder.sweep()?;
        if folder.read(&file_of(name))?.is_some() {
            return Err(VaultError::Exists(name.into()));
        }
        if folder.names()?.len() >= SECRETS_MAX {
            return Err(VaultError::TooMany);
        }
        let bytes = zeroize::Zeroizing::new(toml::to_string(&kept).unwrap_or_default().into_bytes());
        drop(Secret::new(kept.value.into_bytes()));
        Ok(folder.write(&file_of(name), &bytes)?)
    }

    /// Removes a secret's file from the vault.
    ///
    /// # Errors
    /// The secret does not exist.
    pub fn remove(&self, name: &str) -> Result<(), VaultError> {
        check_name(name)?;
        let unknown = || VaultError::Unknown(name.into());
        if !self.0.exists() {
            return Err(unknown());
        }
        let folder = Folder::open(&self.0)?;
        let _lock = folder.lock()?;
        if folder.remove(&file_of(name))? { Ok(()) } else { Err(unknown()) }
    }
}

fn listed(folder: &Folder, name: &str) -> Result<Listed, VaultError> {
    let SecretFile { value, delivery, login } = read(folder, name)?;
    drop(Secret::new(value.into_bytes()));
    Ok(Listed { name: name.into(), delivery, login })
}

fn read(folder: &Folder, name: &str) -> Result<SecretFile, VaultError> {
    let file = file_of(name);
    let bytes = folder.read(&file)?.ok_or_else(|| VaultError::Unknown(name.into()))?;
    // The parser's error could quote the value.
    let malformed = || folder.malformed(&file, "is not the file of a secret".into());
    let kept: SecretFile = toml::from_slice(&bytes).map_err(|_| malformed())?;
    kept.delivery.check().map_err(|why| VaultError::Delivery { name: name.into(), why })?;
    Ok(kept)
}

fn check_name(name: &str) -> Result<(), VaultError> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    match plain && !name.starts_with('.') && (1..=SECRET_NAME_LEN_MAX).contains(&name.len()) {
        true => Ok(()),
        false => Err(VaultError::Name(
            name.chars().filter(|c| !c.is_control()).take(SECRET_NAME_LEN_MAX).collect(),
        )),
    }
}

fn check_value<'a>(value: &'a Secret, delivery: &Delivery) -> Result<&'a str, VaultError> {
    let bytes = value.expose();
    if bytes.is_empty() {
        return Err(VaultError::Value("is empty"));
    }
    if bytes.len() > SECRET_VALUE_BYTES_MAX {
        return Err(VaultError::Value("is too long"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| VaultError::Value("is not text"))?;
    let one_line = !matches!(delivery, Delivery::File { .. });
    if one_line && text.contains(|c: char| c.is_control()) {
        return Err(VaultError::Value("must be one line without control characters"));
    }
    Ok(text)
}

fn file_of(name: &str) -> String {
    format!("{name}{ENDING}")
}

fn secret_of(file: &str) -> Option<String> {
    let name = file.strip_suffix(ENDING)?;
    check_name(name).is_ok().then(|| name.to_owned())
}
