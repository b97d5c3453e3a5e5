//! The list of a person's passkeys: one file for all repositories of the user, or root's in its place.
//!
//! `passkeys.toml` lies in the user's configuration (0600) under a MAC of the key ring: an edit by hand is noticed, and then
//! no passkey counts. It is not prevented, since the ring is readable by the same user. Where root's list exists, only the
//! keys in it count, and no process of the user changes them.

use std::fs;
use std::path::{Path, PathBuf};

use hmac::Mac as _;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::keys::folder::Folder;
use super::keys::{KeyError, KeyRing};
#[cfg(unix)]
use provost_base::limits::KEY_FILE_BYTES_MAX;
use provost_base::limits::PASSKEYS_MAX;
use provost_base::{Digest, Json, Timestamp};
use provost_passkey::PublicKey;

/// The file's name, in both places.
pub const PASSKEYS_FILE: &str = "passkeys.toml";

/// The form of the file.
const VERSION: u32 = 1;

/// What the key of its MAC is derived for.
const PURPOSE: &[u8] = b"provost-passkeys-v1";

/// Why the list cannot be used. Texts name the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The folder or the file cannot be used.
    #[error(transparent)]
    Files(#[from] KeyError),
    /// The text is no list.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
    /// The MAC does not fit.
    #[error(
        "{} was changed by something else than Provost, so no passkey in it counts; if it was not you, revoke and enrol \
         again: provost passkey reset",
        .0.display()
    )]
    Edited(PathBuf),
    /// Root's list could be changed by others.
    #[error("{}: {why}; root's list of passkeys belongs to root, and no other user may write it", path.display())]
    NotRoots {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Root's list is in force.
    #[error("{} is in force, and only root changes it: sudo provost passkey install", .0.display())]
    OfRoot(PathBuf),
    /// As many as there may be.
    #[error(
        "there are {PASSKEYS_MAX} passkeys, as many as there may be; revoke one: provost passkey revoke NAME"
    )]
    Full,
}

/// One passkey of the list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedPasskey {
    /// The credential's id, base64url.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The domain that it was made for.
    pub rp_id: String,
    /// Whether it can be backed up.
    pub backup_eligible: bool,
    /// The model of the authenticator, as it says.
    pub aaguid: String,
    /// Its counter at the registration.
    #[serde(default)]
    pub counter: u32,
    /// How a browser reaches it, as the browser said: `usb`, `internal`, `hybrid`, …
    #[serde(default)]
    pub transports: Vec<String>,
    /// When it was enrolled.
    pub added_at: Timestamp,
    /// How it came here: `code`, or `vouched` with the name of the passkey that has signed for it.
    pub source: String,
    /// Its public key.
    pub key: PublicKey,
}

/// The list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasskeyList {
    version: u32,
    /// How often all were given up.
    #[serde(default)]
    pub resets: u64,
    /// Until when none counts after the last reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<Digest>,
    /// The passkeys, oldest first.
    #[serde(default, rename = "passkey")]
    pub passkeys: Vec<ListedPasskey>,
    /// Whether it is root's.
    #[serde(skip)]
    pub of_root: bool,
}

impl PasskeyList {
    /// The passkey of this id.
    pub fn get(&self, id: &str) -> Option<&ListedPasskey> {
        self.passkeys.iter().find(|it| it.id == id)
    }

    fn mac(&self, keys: &KeyRing) -> Digest {
        let bare = Self { mac: None, ..self.clone() };
        let value = serde_json::to_value(&bare).expect("our own types always encode");
        let mut mac = keys.derived_for_all(PURPOSE).mac();
        mac.update(Json::from_value(&value).as_str().as_bytes());
        Digest::from_bytes(mac.finalize().into_bytes().into())
    }
}

/// Where lists are.
#[derive(Clone, Debug)]
pub struct PasskeyFiles {
    /// The folder of the user's list.
    pub user: PathBuf,
    /// Root's list.
    pub system: PathBuf,
    /// Whose the latter has to be: 0.
    pub owner: u32,
}

impl PasskeyFiles {
    /// The list in force; `None` where there is none.
    ///
    /// # Errors
    /// [`ListError`]; then no passkey counts.
    pub fn read(&self, keys: &KeyRing) -> Result<Option<PasskeyList>, ListError> {
        if let Some(text) = roots(&self.system, self.owner)? {
            let list = parse(&self.system, &text)?;
            return Ok(Some(PasskeyList { of_root: true, resets: 0, waits_until: None, ..list }));
        }
        let path = self.user.join(PASSKEYS_FILE);
        // Of a folder without a list, nothing is asked.
        let is_gone =
            fs::symlink_metadata(&path).is_err_and(|err| err.kind() == std::io::ErrorKind::NotFound);
        if is_gone {
            return Ok(None);
        }
        let Some(bytes) = Folder::open(&self.user)?.read(PASSKEYS_FILE)? else { return Ok(None) };
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed(&path, "it is not UTF-8"))?;
        let list = parse(&path, text)?;
        let is_ours = list.mac.is_some_and(|mac| mac.as_bytes().ct_eq(list.mac(keys).as_bytes()).into());
        if is_ours { Ok(Some(list)) } else { Err(ListError::Edited(path)) }
    }

    /// Changes the user's list, whole and on disk, while no other process does.
    ///
    /// # Errors
    /// [`ListError`]; then nothing has changed.
    pub fn change(&self, keys: &KeyRing, change: impl FnOnce(&mut PasskeyList)) -> Result<(), ListError> {
        let folder = Folder::open(&self.user)?;
        let _lock = folder.lock()?;
        let mut list = self.read(keys)?.unwrap_or_default();
        if list.of_root {
            return Err(ListError::OfRoot(self.system.clone()));
        }
        change(&mut list);
        self.write(&folder, keys, list)
    }

    /// Begins an empty list that counts one reset more, also where the present list was edited by hand.
    ///
    /// # Errors
    /// [`ListError`]; then nothing has changed.
    pub fn reset(&self, keys: &KeyRing, resets: u64, waits_until: Timestamp) -> Result<(), ListError> {
        if roots(&self.system, self.owner)?.is_some() {
            return Err(ListError::OfRoot(self.system.clone()));
        }
        let folder = Folder::open(&self.user)?;
        let _lock = folder.lock()?;
        let list = PasskeyList { resets, waits_until: Some(waits_until), ..PasskeyList::default() };
        self.write(&folder, keys, list)
    }

    fn write(&self, folder: &Folder, keys: &KeyRing, mut list: PasskeyList) -> Result<(), ListError> {
        if list.passkeys.len() > PASSKEYS_MAX {
            return Err(ListError::Full);
        }
        list.version = VERSION;
        list.mac = Some(list.mac(keys));
        let path = self.user.join(PASSKEYS_FILE);
        let text = toml::to_string(&list).map_err(|err| malformed(&path, err.to_string()))?;
        let head =
            "# Passkeys, written by `provost passkey`. An edit by hand is noticed, and then none counts.\n";
        Ok(folder.write(PASSKEYS_FILE, format!("{head}{text}").as_bytes())?)
    }
}

/// How many passkeys the list in force has, as far as a look at the files tells it; their MAC is not examined. For advice alone.
pub fn listed(user: &Path, system: &Path) -> usize {
    let read = |path: &Path| fs::read_to_string(path).ok().and_then(|text| parse(path, &text).ok());
    let list = if system.exists() { read(system) } else { read(&user.join(PASSKEYS_FILE)) };
    list.map_or(0, |list| list.passkeys.len())
}

/// Takes passkeys of a user's list into root's, by their names; the names of all that it has then. For root alone: the file
/// has to belong to root afterwards.
///
/// # Errors
/// A sentence; then root's list is as it was.
pub fn install(from: &Path, names: &[String], target: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(from).map_err(|err| format!("{}: {err}", from.display()))?;
    let users = parse(from, &text).map_err(|err| err.to_string())?;
    let mut list = match roots(target, 0).map_err(|err| err.to_string())? {
        Some(text) => parse(target, &text).map_err(|err| err.to_string())?,
        None => PasskeyList { version: VERSION, ..PasskeyList::default() },
    };
    for name in names {
        let found = users.passkeys.iter().find(|it| it.name == *name);
        let found = found.ok_or_else(|| format!("{} has no passkey named {name}", from.display()))?;
        list.passkeys.retain(|it| it.id != found.id);
        list.passkeys.push(found.clone());
    }
    if list.passkeys.len() > PASSKEYS_MAX {
        return Err(ListError::Full.to_string());
    }
    let text = toml::to_string(&list).map_err(|err| err.to_string())?;
    let folder = target.parent().unwrap_or(target);
    let aside = folder.join(".new-passkeys.toml");
    let write = || {
        fs::create_dir_all(folder)?;
        fs::write(&aside, text)?;
        fs::File::open(&aside)?.sync_all()?;
        fs::rename(&aside, target)
    };
    write().map_err(|err| format!("{}: {err}", target.display()))?;
    Ok(list.passkeys.into_iter().map(|it| it.name).collect())
}

fn malformed(path: &Path, what: impl Into<String>) -> ListError {
    ListError::Malformed { path: path.to_owned(), what: what.into() }
}

fn parse(path: &Path, text: &str) -> Result<PasskeyList, ListError> {
    let list: PasskeyList = toml::from_str(text).map_err(|err| malformed(path, err.message()))?;
    if list.version != VERSION {
        return Err(malformed(
            path,
            format!("its version is {}, and this Provost reads {VERSION}", list.version),
        ));
    }
    if list.passkeys.len() > PASSKEYS_MAX {
        return Err(ListError::Full);
    }
    Ok(list)
}

/// The text of root's list, if there is one. Only root may be able to write the file, or to replace it.
#[cfg(unix)]
fn roots(path: &Path, owner: u32) -> Result<Option<String>, ListError> {
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;

    let wrong = |why: String| ListError::NotRoots { path: path.to_owned(), why };
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(wrong(err.to_string())),
    };
    let is_owners = |about: &fs::Metadata| about.uid() == owner && about.mode() & 0o022 == 0;
    if !about.is_file() || !is_owners(&about) {
        return Err(wrong("it is no file of root's that root alone may write".into()));
    }
    let folder = path.parent().unwrap_or(path);
    let around = fs::symlink_metadata(folder).map_err(|err| wrong(err.to_string()))?;
    if !around.is_dir() || !is_owners(&around) {
        return Err(wrong(format!("its folder {} is not root's alone", folder.display())));
    }
    let file = fs::File::open(path).map_err(|err| wrong(err.to_string()))?;
    let mut text = String::new();
    let most = KEY_FILE_BYTES_MAX as u64 + 1;
    file.take(most).read_to_string(&mut text).map_err(|err| wrong(err.to_string()))?;
    if text.len() > KEY_FILE_BYTES_MAX { Err(wrong("it is too large".into())) } else { Ok(Some(text)) }
}

/// On other systems there is no list of an administrator's: who may write a file is not looked at there.
#[cfg(not(unix))]
fn roots(path: &Path, _owner: u32) -> Result<Option<String>, ListError> {
    match fs::exists(path) {
        Ok(false) => Ok(None),
        _ => Err(ListError::NotRoots { path: path.to_owned(), why: "this system has no such list".into() }),
    }
}
