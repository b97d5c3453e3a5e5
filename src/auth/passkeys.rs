//! The list of a person's passkeys: one file for all repositories of the user, or root's in its place.
//!
//! `passkeys.toml` lies in the user's configuration (0600) under a MAC of the key ring: Provost notices an edit by
//! hand, and then no passkey counts. It cannot prevent one, since the same user can read the ring. Where root's
//! list exists, only its keys count, and no process of the user changes them.
//!
//! The list records each passkey since the last reset: when it was added, by whose signature, and whether it was
//! revoked. Each change has the next number. A mark with that number lies beside the key ring and the state
//! folders, so that even a daemon that has not heard of the list notices if it is gone or an old copy.

use std::fs;
use std::path::{Path, PathBuf};

use hmac::Mac as _;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::keys::folder::Folder;
use super::keys::{KeyError, KeyRing, SHARED, derived};
use provost_base::limits::{KEY_FILE_BYTES_MAX, PASSKEYS_LISTED_REVOKED_MAX, PASSKEYS_MAX};
use provost_base::{Digest, Json, Secret, Timestamp};
use provost_domain::{KnownPasskey, Passkeys, SignedWord};
use provost_passkey::PublicKey;

/// The file's name, in both places.
pub const PASSKEYS_FILE: &str = "passkeys.toml";

/// The file of the mark: the number of the list's last change. No key has this ending.
const MARK_FILE: &str = "passkeys.mark";

/// The text for a list whose number is lower than one that was seen before.
pub const OLD_COPY: &str = "it is an old copy, from before a change that is known here";

/// The version of the file's format.
const VERSION: u32 = 1;

/// The purpose that the MAC's key is derived for.
const PURPOSE: &[u8] = b"provost-passkeys-v1";

/// The reason why the list cannot be used. Texts name the file and the next step.
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
    /// The MAC fits, but the list does not agree with the record.
    #[error(
        "the list of passkeys was changed by something else than Provost: {0}; so none counts. Bring passkeys.toml back as it was, \
         or give all up: provost passkey reset"
    )]
    Disagrees(String),
    /// There was a list, and it is gone.
    #[error(
        "{} is gone, and there were passkeys in it, so none counts; bring it back, or give all up: provost passkey reset",
        .0.display()
    )]
    Gone(PathBuf),
    /// Another enrolment came first.
    #[error("a passkey was enrolled at the same moment; begin again, and have it sign for the new one")]
    Overtaken,
    /// Others could change root's list.
    #[error("{}: {why}; root's list of passkeys belongs to root, and no other user may write it", path.display())]
    NotRoots {
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// Root's list is in force.
    #[error("{} is in force, and only root changes it: sudo provost passkey install", .0.display())]
    OfRoot(PathBuf),
    /// The list is full.
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
    /// The model of the authenticator, by its own claim.
    pub aaguid: String,
    /// Its counter at the registration.
    #[serde(default)]
    pub counter: u32,
    /// The ways a browser reaches it, as the browser named them: `usb`, `internal`, `hybrid`, …
    #[serde(default)]
    pub transports: Vec<String>,
    /// When it was enrolled.
    pub added_at: Timestamp,
    /// Its origin: `code`, or `vouched` with the name of the passkey that signed for it.
    pub source: String,
    /// The number of the list in which it was added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u64,
    /// Its public key.
    pub key: PublicKey,
    /// The word that a known passkey signed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouch: Option<Box<SignedWord>>,
}

impl ListedPasskey {
    /// Returns a passkey on record in the form of lists; `None` if its key cannot be read.
    fn of(it: &KnownPasskey) -> Option<Self> {
        let passkey = &it.passkey;
        Some(Self {
            id: passkey.id.to_string(),
            name: passkey.name.to_string(),
            rp_id: passkey.rp_id.to_string(),
            backup_eligible: passkey.backup_eligible,
            aaguid: passkey.aaguid.to_string(),
            counter: it.counter,
            transports: Vec::new(),
            added_at: it.added_at,
            source: passkey.source.to_string(),
            number: 0,
            key: PublicKey::deserialize(&passkey.key.value()).ok()?,
            vouch: None,
        })
    }

    /// Returns the digest that a known passkey signs to vouch for this one.
    pub fn digest(&self) -> Digest {
        let value =
            serde_json::json!({ "id": self.id, "key": self.key, "name": self.name, "rp_id": self.rp_id });
        Digest::of(Json::from_value(&value).as_str().as_bytes())
    }
}

/// A passkey that no longer counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedPasskey {
    /// The number of the list in which it was revoked.
    pub number: u64,
    /// The passkey as it was.
    pub passkey: ListedPasskey,
    /// The word that a passkey signed to revoke it; `None` if a person revoked it at a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Box<SignedWord>>,
}

/// A change of a passkey, in the order of the list's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListChange<'a> {
    /// It was added.
    Added(&'a ListedPasskey),
    /// It was revoked.
    Revoked(&'a RevokedPasskey),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The list of passkeys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasskeyList {
    version: u32,
    /// The number of resets so far.
    #[serde(default)]
    pub resets: u64,
    /// The end of the wait after the last reset, in which none counts; `None` once a daemon has seen the wait pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// The number of its last change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<Digest>,
    /// The passkeys, oldest first.
    #[serde(default, rename = "passkey")]
    pub passkeys: Vec<ListedPasskey>,
    /// Passkeys that no longer count, oldest first; of many, only the latest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<RevokedPasskey>,
    /// Whether it is root's list.
    #[serde(skip)]
    pub of_root: bool,
}

impl PasskeyList {
    /// Makes the list from a record that several hosts share: the passkeys that count in it. If this machine has
    /// root's list, only those that root's list has, too.
    pub fn of_record(known: &Passkeys, roots: Option<&PasskeyList>) -> Self {
        let is_listed = |it: &ListedPasskey| match roots.map(|list| list.get(&it.id)) {
            None => true,
            Some(listed) => listed.is_some_and(|listed| listed.key == it.key && listed.rp_id == it.rp_id),
        };
        let passkeys = known.unrevoked().filter_map(|it| ListedPasskey::of(it)).filter(is_listed).collect();
        Self { version: VERSION, passkeys, of_root: roots.is_some(), ..Self::default() }
    }

    /// Returns the passkey of this id.
    pub fn get(&self, id: &str) -> Option<&ListedPasskey> {
        self.passkeys.iter().find(|it| it.id == id)
    }

    /// Checks whether the list has had this passkey since the last reset.
    pub fn has_had(&self, id: &str) -> bool {
        self.get(id).is_some() || self.revoked.iter().any(|it| it.passkey.id == id)
    }

    /// Returns the changes since the last reset, in order.
    pub fn changes(&self) -> Vec<ListChange<'_>> {
        let added = self.passkeys.iter().chain(self.revoked.iter().map(|it| &it.passkey));
        let added = added.map(|it| (it.number, ListChange::Added(it)));
        let mut all: Vec<_> =
            added.chain(self.revoked.iter().map(|it| (it.number, ListChange::Revoked(it)))).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, it)| it).collect()
    }

    /// Adds a passkey.
    ///
    /// # Errors
    /// [`ListError::Overtaken`] if it has no vouch and is not the first, or its name is taken.
    pub fn add(&mut self, passkey: ListedPasskey) -> Result<(), ListError> {
        let is_alike = |it: &ListedPasskey| it.name == passkey.name || it.id == passkey.id;
        if (passkey.vouch.is_none() && !self.passkeys.is_empty()) || self.passkeys.iter().any(is_alike) {
            return Err(ListError::Overtaken);
        }
        self.passkeys.push(ListedPasskey { number: self.number, ..passkey });
        Ok(())
    }

    /// Moves a passkey to the revoked ones.
    pub fn revoke(&mut self, id: &str, signed: Option<Box<SignedWord>>) {
        let Some(at) = self.passkeys.iter().position(|it| it.id == id) else { return };
        let passkey = self.passkeys.remove(at);
        self.revoked.push(RevokedPasskey { number: self.number, passkey, signed });
        let surplus = self.revoked.len().saturating_sub(PASSKEYS_LISTED_REVOKED_MAX);
        self.revoked.drain(..surplus);
    }

    /// Empties the list, as after the reset with this count.
    pub fn reset(&mut self, resets: u64, waits_until: Option<Timestamp>) {
        let number = self.number;
        *self = Self { resets, waits_until, number, ..Self::default() };
    }

    fn has_mac_of(&self, keys: &KeyRing) -> bool {
        self.has_mac(&keys.derived_for_all(PURPOSE))
    }

    fn has_mac(&self, key: &Secret) -> bool {
        self.mac.is_some_and(|mac| mac.as_bytes().ct_eq(self.mac(key).as_bytes()).into())
    }

    fn mac(&self, key: &Secret) -> Digest {
        let bare = Self { mac: None, ..self.clone() };
        let value = serde_json::to_value(&bare).expect("our own types always encode");
        let mut mac = key.mac();
        mac.update(Json::from_value(&value).as_str().as_bytes());
        Digest::from_bytes(mac.finalize().into_bytes().into())
    }
}

/// The places of lists.
#[derive(Clone, Debug)]
pub struct PasskeyFiles {
    /// The folder of the user's list.
    pub user: PathBuf,
    /// Root's list.
    pub system: PathBuf,
    /// The user that must own root's list: 0.
    pub owner: u32,
    /// The folders of the marks, which tell the last known number of the user's list.
    pub marks: Vec<PathBuf>,
}

impl PasskeyFiles {
    /// Returns the list in force; `None` if there is no list and never was.
    ///
    /// # Errors
    /// [`ListError`]; then no passkey counts.
    pub fn read(&self, keys: &KeyRing) -> Result<Option<PasskeyList>, ListError> {
        if let Some(text) = roots(&self.system, self.owner)? {
            let list = parse(&self.system, &text)?;
            return Ok(Some(PasskeyList { of_root: true, resets: 0, waits_until: None, ..list }));
        }
        let path = self.user.join(PASSKEYS_FILE);
        let marked = self.marked();
        // A folder without a list gets no such check.
        let is_gone =
            fs::symlink_metadata(&path).is_err_and(|err| err.kind() == std::io::ErrorKind::NotFound);
        if is_gone {
            return if marked.is_some() { Err(ListError::Gone(path)) } else { Ok(None) };
        }
        let Some(bytes) = Folder::open(&self.user)?.read(PASSKEYS_FILE)? else {
            return Err(ListError::Gone(path));
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed(&path, "it is not UTF-8"))?;
        let list = parse(&path, text)?;
        if !list.has_mac_of(keys) {
            return Err(ListError::Edited(path));
        }
        if marked.is_some_and(|marked| list.number < marked) {
            return Err(ListError::Disagrees(OLD_COPY.into()));
        }
        self.mark(list.number);
        Ok(Some(list))
    }

    /// Returns root's list, if this machine has one.
    ///
    /// # Errors
    /// [`ListError`]; then no passkey counts.
    pub fn roots_list(&self) -> Result<Option<PasskeyList>, ListError> {
        let Some(text) = roots(&self.system, self.owner)? else { return Ok(None) };
        parse(&self.system, &text).map(Some)
    }

    /// Checks that a list could be written: its folder is this user's alone.
    ///
    /// # Errors
    /// [`ListError`].
    pub fn check_folder(&self) -> Result<(), ListError> {
        Folder::open(&self.user)?;
        Ok(())
    }

    /// Changes the user's list, whole and on disk, under the folder's lock. Returns its new number, which is above `noted`.
    ///
    /// # Errors
    /// [`ListError`]; then nothing has changed.
    pub fn change(
        &self,
        keys: &KeyRing,
        noted: u64,
        change: impl FnOnce(&mut PasskeyList) -> Result<(), ListError>,
    ) -> Result<u64, ListError> {
        let folder = Folder::open(&self.user)?;
        let _lock = folder.lock()?;
        self.changed(&folder, keys, noted, change)
    }

    /// Changes the list unless another process holds the folder at the moment, so that tidying up waits for no process.
    ///
    /// # Errors
    /// [`ListError`]; then nothing has changed.
    pub fn change_if_free(
        &self,
        keys: &KeyRing,
        noted: u64,
        change: impl FnOnce(&mut PasskeyList) -> Result<(), ListError>,
    ) -> Result<u64, ListError> {
        let folder = Folder::open(&self.user)?;
        let _lock = folder.lock_if_free()?.ok_or_else(|| KeyError::Held(self.user.clone()))?;
        self.changed(&folder, keys, noted, change)
    }

    fn changed(
        &self,
        folder: &Folder,
        keys: &KeyRing,
        noted: u64,
        change: impl FnOnce(&mut PasskeyList) -> Result<(), ListError>,
    ) -> Result<u64, ListError> {
        let mut list = self.read(keys)?.unwrap_or_default();
        if list.of_root {
            return Err(ListError::OfRoot(self.system.clone()));
        }
        list.number = list.number.max(noted) + 1;
        change(&mut list)?;
        let number = list.number;
        self.write(folder, keys, list)?;
        Ok(number)
    }

    /// Begins an empty list with the next count of resets, even if the present list is gone or was edited by hand.
    /// Its number is above `noted`.
    ///
    /// # Errors
    /// [`ListError`]; then nothing has changed.
    pub fn reset(
        &self,
        keys: &KeyRing,
        noted: u64,
        resets: u64,
        waits_until: Timestamp,
    ) -> Result<(), ListError> {
        if roots(&self.system, self.owner)?.is_some() {
            return Err(ListError::OfRoot(self.system.clone()));
        }
        let folder = Folder::open(&self.user)?;
        let _lock = folder.lock()?;
        let number = noted.max(self.marked().unwrap_or(0)) + 1;
        let list = PasskeyList { resets, waits_until: Some(waits_until), number, ..PasskeyList::default() };
        self.write(&folder, keys, list)
    }

    /// Returns the highest number in the marks; `None` without a mark. Anything else in a mark's place counts as
    /// the mark of some list.
    fn marked(&self) -> Option<u64> {
        let read = |folder: &PathBuf| match fs::symlink_metadata(folder.join(MARK_FILE)) {
            Ok(_) => Some(read_mark(folder).unwrap_or(0)),
            Err(_) => None,
        };
        self.marks.iter().filter_map(read).max()
    }

    /// Raises the marks to this number. If a mark cannot be written, only a second safeguard is lost.
    fn mark(&self, number: u64) {
        for folder in self.marks.iter().filter(|it| it.is_dir()) {
            if read_mark(folder).is_some_and(|it| it >= number) {
                continue;
            }
            // Without the folder's lock, which would block a mere look-up: if two processes write at once, one fails and looks again.
            let written =
                Folder::open(folder).and_then(|it| it.write(MARK_FILE, format!("{number}\n").as_bytes()));
            if let Err(why) = written {
                tracing::warn!(%why, "the mark of the list of passkeys cannot be written");
            }
        }
    }

    fn write(&self, folder: &Folder, keys: &KeyRing, mut list: PasskeyList) -> Result<(), ListError> {
        if list.passkeys.len() > PASSKEYS_MAX {
            return Err(ListError::Full);
        }
        list.version = VERSION;
        list.mac = Some(list.mac(&keys.derived_for_all(PURPOSE)));
        let path = self.user.join(PASSKEYS_FILE);
        let text = toml::to_string(&list).map_err(|err| malformed(&path, err.to_string()))?;
        let head =
            "# Passkeys, written by `provost passkey`. An edit by hand is noticed, and then none counts.\n";
        if head.len() + text.len() > KEY_FILE_BYTES_MAX {
            return Err(ListError::Full);
        }
        folder.write(PASSKEYS_FILE, format!("{head}{text}").as_bytes())?;
        self.mark(list.number);
        Ok(())
    }
}

fn read_mark(folder: &Path) -> Option<u64> {
    let text = Folder::open(folder).ok()?.read(MARK_FILE).ok()??;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Checks whether the files seem to list passkeys, without checking the MAC. For advice alone.
pub fn any_listed(user: &Path, system: &Path) -> bool {
    // An unreadable list counts as a list: the daemon reports its problem.
    let has_any = |path: &Path| match fs::read_to_string(path) {
        Ok(text) => parse(path, &text).map_or(true, |list| !list.passkeys.is_empty()),
        Err(err) => err.kind() != std::io::ErrorKind::NotFound,
    };
    if system.exists() { has_any(system) } else { has_any(&user.join(PASSKEYS_FILE)) }
}

/// Copies passkeys of a user's list into root's, by name; returns the names of all in root's list then, with their
/// keys' fingerprints. For root alone, since root must own the file afterwards.
///
/// # Errors
/// A sentence; then root's list is unchanged. The user's list must have the MAC of the key ring beside it.
pub fn install(from: &Path, names: &[String], target: &Path) -> Result<Vec<(String, String)>, String> {
    let text = bounded(from)?;
    let users = parse(from, &text).map_err(|err| err.to_string())?;
    let ring = from.with_file_name("keys").join(SHARED);
    let secret = Secret::new(bounded(&ring)?.trim_end_matches(['\r', '\n']).as_bytes().to_vec());
    if !users.has_mac(&derived(&secret, PURPOSE)) {
        return Err(ListError::Edited(from.to_owned()).to_string());
    }
    let mut list = match roots(target, 0).map_err(|err| err.to_string())? {
        Some(text) => parse(target, &text).map_err(|err| err.to_string())?,
        None => PasskeyList { version: VERSION, ..PasskeyList::default() },
    };
    for name in names {
        let found = users.passkeys.iter().find(|it| it.name == *name);
        let found = found.ok_or_else(|| format!("{} has no passkey named {name}", from.display()))?;
        // A passkey that is installed again replaces its earlier row.
        list.passkeys.retain(|it| it.id != found.id);
        list.passkeys.push(found.clone());
    }
    if list.passkeys.len() > PASSKEYS_MAX {
        return Err(ListError::Full.to_string());
    }
    let text = toml::to_string(&list).map_err(|err| err.to_string())?;
    let folder = target.parent().unwrap_or(target);
    // Root's list is replaced as a whole: a reader never sees half of it.
    let aside = folder.join(".new-passkeys.toml");
    let write = || {
        fs::create_dir_all(folder)?;
        fs::write(&aside, text)?;
        fs::File::open(&aside)?.sync_all()?;
        fs::rename(&aside, target)
    };
    write().map_err(|err| format!("{}: {err}", target.display()))?;
    Ok(list.passkeys.into_iter().map(|it| (it.name, it.key.fingerprint())).collect())
}

/// Returns a file's text, no longer than a file of keys may be.
fn bounded(path: &Path) -> Result<String, String> {
    use std::io::Read as _;

    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let file = fs::File::open(path).map_err(|err| wrong(&err))?;
    let mut text = String::new();
    let most = KEY_FILE_BYTES_MAX as u64 + 1;
    file.take(most).read_to_string(&mut text).map_err(|err| wrong(&err))?;
    if text.len() > KEY_FILE_BYTES_MAX { Err(wrong(&"it is too large")) } else { Ok(text) }
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

/// Returns the text of root's list, if there is one. Only root may be able to write or replace the file.
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

/// Refuses a list: other systems have no administrator's list, since the check of the file's writers is missing there.
#[cfg(not(unix))]
fn roots(path: &Path, _owner: u32) -> Result<Option<String>, ListError> {
    match fs::exists(path) {
        Ok(false) => Ok(None),
        _ => Err(ListError::NotRoots { path: path.to_owned(), why: "this system has no such list".into() }),
    }
}
