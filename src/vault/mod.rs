//! The store of secrets that workers may get, and the form in which they get them.
//!
//! A folder (0700) of the user's configuration with one file per secret (0600): its value, and how it reaches a
//! worker. The vault refuses files that another user could read or write, with the command that repairs it. It never
//! prints a value, and returns it as a [`Secret`] only.
//!
//! ```text
//! proxy   the daemon adds it to requests for one host; the worker has a token of its run and a base URL
//! file    a copy of it lies in the worker's private home
//! env     a variable of the worker holds it
//! ```
//! Left to others: which worker names which secret (`config`), whether it may have it in this form (`policy`), and
//! the transport (`egress`, `jail`).
#![forbid(unsafe_code)]

mod delivery;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use provost_auth::keys::KeyError;
use provost_auth::keys::folder::Folder;
use provost_base::Secret;
use provost_base::limits::{SECRET_NAME_LEN_MAX, SECRET_VALUE_BYTES_MAX, SECRETS_MAX};

pub use delivery::{BadDelivery, ByProxy, Delivery, Upstream};

/// Ends the names of the files.
const ENDING: &str = ".toml";

/// Why a secret is not there. Texts say what to do; none holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The folder or a file of it cannot be used.
    #[error(transparent)]
    Files(#[from] KeyError),
    /// It has other characters than names of secrets, or too many.
    #[error(
        "`{0}` cannot be the name of a secret: 1 to {SECRET_NAME_LEN_MAX} letters, digits, `-`, `_` and `.`"
    )]
    Name(String),
    /// `add` of one that is there.
    #[error("there is a secret `{0}` already; remove it first: provost secret remove {0}")]
    Exists(String),
    /// The vault has no file for this name.
    #[error("there is no secret `{0}`: provost secret add {0}")]
    Unknown(String),
    /// How it would be given makes no sense.
    #[error("the secret `{name}`: {why}")]
    Delivery {
        /// The secret's name.
        name: String,
        /// The mistake in the delivery.
        why: BadDelivery,
    },
    /// The value cannot be kept.
    #[error("the value {0}")]
    Value(&'static str),
    /// More than a person keeps an eye on.
    #[error("there are {SECRETS_MAX} secrets already; remove one that is not needed")]
    TooMany,
}

/// A secret, and how it is given. Has no `Debug`.
#[derive(Clone)]
pub struct Credential {
    /// The name by which workers' settings refer to it.
    pub name: Box<str>,
    /// How a worker gets it.
    pub delivery: Delivery,
    /// The value, which is printed nowhere.
    pub value: Secret,
}

/// A secret as lists show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Listed {
    /// The name by which workers' settings refer to it.
    pub name: Box<str>,
    /// How a worker gets it.
    pub delivery: Delivery,
}

/// A file of the folder.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretFile {
    value: String,
    delivery: Delivery,
}

/// The folder. It need not exist until something is put into it.
#[derive(Clone, Debug)]
pub struct Vault(PathBuf);

impl Vault {
    /// The one at this path.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Every secret, by name.
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
        let listed = |name: String| {
            let Credential { name, delivery, .. } = read(&folder, &name)?;
            Ok(Listed { name, delivery })
        };
        names.into_iter().map(listed).collect()
    }

    /// Reads one secret and its delivery from its file.
    ///
    /// # Errors
    /// It is not there, or its file cannot be used.
    pub fn get(&self, name: &str) -> Result<Credential, VaultError> {
        check_name(name)?;
        if !self.0.exists() {
            return Err(VaultError::Unknown(name.into()));
        }
        read(&Folder::open(&self.0)?, name)
    }

    /// Keeps a secret under a new name.
    ///
    /// # Errors
    /// Name, value or delivery make no sense, or the name is taken.
    pub fn add(&self, name: &str, delivery: Delivery, value: &Secret) -> Result<(), VaultError> {
        check_name(name)?;
        delivery.check().map_err(|why| VaultError::Delivery { name: name.into(), why })?;
        let text = check_value(value, &delivery)?;
        let folder = Folder::open(&self.0)?;
        let _lock = folder.lock()?;
        folder.sweep()?;
        if folder.read(&file_of(name))?.is_some() {
            return Err(VaultError::Exists(name.into()));
        }
        if folder.names()?.len() >= SECRETS_MAX {
            return Err(VaultError::TooMany);
        }
        let kept = SecretFile { value: text.to_owned(), delivery };
        let bytes = zeroize::Zeroizing::new(toml::to_string(&kept).unwrap_or_default().into_bytes());
        drop(Secret::new(kept.value.into_bytes()));
        Ok(folder.write(&file_of(name), &bytes)?)
    }

    /// Removes a secret's file from the vault.
    ///
    /// # Errors
    /// It is not there.
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

fn read(folder: &Folder, name: &str) -> Result<Credential, VaultError> {
    let file = file_of(name);
    let bytes = folder.read(&file)?.ok_or_else(|| VaultError::Unknown(name.into()))?;
    // What the parser complains about could quote the value.
    let malformed = || folder.malformed(&file, "is not the file of a secret".into());
    let kept: SecretFile = toml::from_slice(&bytes).map_err(|_| malformed())?;
    let value = Secret::new(kept.value.into_bytes());
    kept.delivery.check().map_err(|why| VaultError::Delivery { name: name.into(), why })?;
    Ok(Credential { name: name.into(), delivery: kept.delivery, value })
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
