//! Adds one `[[agent]]` entry to a file of settings, or removes one: all other bytes stay, comments too.
//!
//! A change is checked before it is written: parsed again, the file must have the same content with one entry more or
//! less. The new file is put beside the old one and replaces it in one step; if the file has changed in the meantime,
//! it stays unchanged. A link is never followed.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use toml::{Table, Value};

use crate::CliError;
use provost_base::limits::SETTINGS_FILE_BYTES_MAX;
use provost_system as system;

/// The name of the list of entries.
const LIST: &str = "agent";
/// The head of an entry.
const HEAD: &str = "[[agent]]";
/// Heads behind an entry that are tried as its end.
const ENDS_TRIED_MAX: usize = 8;
/// The beginning of an entry that `provost agent add` has made.
pub(super) const OURS: &str = "# Added by `provost agent add`";

/// A file of settings, as it was read.
#[derive(Debug)]
pub(super) struct SettingsFile {
    folder: PathBuf,
    name: String,
    /// The file's text; `None` if there is no file.
    text: Option<String>,
}

impl SettingsFile {
    /// Reads it.
    ///
    /// # Errors
    /// The file is a link, belongs to another user, or is no TOML.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
        let folder = path.parent().unwrap_or(path).to_owned();
        let mut file = Self { folder, name, text: None };
        file.text = file.present()?;
        file.table(file.text.as_deref().unwrap_or_default())?;
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Returns the text that was read, or written since; `None` where the file does not exist.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Restores an earlier text; `None` means that the file did not exist.
    ///
    /// # Errors
    /// As for [`Self::replace`].
    pub(super) fn put_back(&mut self, before: Option<&str>) -> Result<(), CliError> {
        match before {
            Some(text) => self.replace(text),
            None if self.present()? == self.text => std::fs::remove_file(self.path()).map_err(|err| {
                CliError::of(format!("{} cannot be removed", self.path().display())).because(err)
            }),
            None => Err(self.changed()),
        }
    }

    /// Reads the text that the file has now.
    fn present(&self) -> Result<Option<String>, CliError> {
        let path = self.path();
        let unfit = |why: String| {
            CliError::refusal(format!("{} stays as it is", path.display()))
                .because(why)
                .next("write the entry there yourself: provost agent add … --dry-run prints it")
        };
        for at in [&self.folder, &path] {
            match at.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => {
                    return Err(unfit(format!("{} is a symbolic link", at.display())));
                }
                Ok(_) => system::trusted(at).map_err(&unfit)?,
                Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(err) => return Err(unfit(err.to_string())),
            }
        }
        let text = system::short_text(&path, SETTINGS_FILE_BYTES_MAX);
        text.map(Some).map_err(|err| unfit(format!("it cannot be read: {err}")))
    }

    fn table(&self, text: &str) -> Result<Table, CliError> {
        text.parse::<Table>().map_err(|err| {
            CliError::refusal(format!("{} is no TOML", self.path().display()))
                .because(err.message())
                .next("provost doctor names the line; correct it first")
        })
    }

    /// Returns the ids of the file's entries.
    pub(super) fn ids(&self) -> Vec<String> {
        let table = self.table(self.text.as_deref().unwrap_or_default()).unwrap_or_default();
        ids(&table)
    }

    /// Returns the names of an entry's secrets.
    pub(super) fn secrets(&self, id: &str) -> Vec<String> {
        let table = self.table(self.text.as_deref().unwrap_or_default()).unwrap_or_default();
        let entries = table.get(LIST).and_then(Value::as_array).into_iter().flatten();
        let mut entry = entries.filter(|it| it.get("id").and_then(Value::as_str) == Some(id));
        let names = entry.next().and_then(|it| it.get("secrets")?.as_array()).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Returns the whole file with one more entry at its end.
    ///
    /// # Errors
    /// The entry does not fit after the present text.
    pub(super) fn with(&self, entry: &str) -> Result<String, CliError> {
        let before = self.text.clone().unwrap_or_default();
        let gap = match before.as_str() {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let after = format!("{before}{gap}{entry}");
        let mut expected = self.table(&before)?;
        let added: Table = self.table(entry)?;
        let Some(Value::Array(added)) = added.get(LIST).cloned() else { return Err(self.odd()) };
        match expected.entry(LIST).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(list) => list.extend(added),
            _ => return Err(self.odd()),
        }
        let now = after.parse::<Table>().map_err(|_| self.odd())?;
        if now == expected { Ok(after) } else { Err(self.odd()) }
    }

    /// Returns the whole file without an entry; `None` if it has no entry of this id.
    ///
    /// # Errors
    /// The entry is written in a way that cannot be cut out.
    pub(super) fn without(&self, id: &str) -> Result<Option<String>, CliError> {
        let before = self.text.clone().unwrap_or_default();
        let mut expected = self.table(&before)?;
        let Some(at) = ids(&expected).iter().position(|it| it == id) else { return Ok(None) };
        if let Some(Value::Array(list)) = expected.get_mut(LIST) {
            list.remove(at);
            if list.is_empty() {
                expected.remove(LIST);
            }
        }
        let fits = |after: &String| after.parse::<Table>().is_ok_and(|now| now == expected);
        cuts(&before).find(fits).map(Some).ok_or_else(|| self.odd())
    }

    fn odd(&self) -> CliError {
        CliError::refusal(format!("{} stays as it is", self.path().display()))
            .because("its agents are written in a form that is not changed by a program")
            .next("edit it yourself: an entry begins with [[agent]]")
    }

    /// Writes the whole file, if it is still as it was read.
    ///
    /// # Errors
    /// The file has changed, or the system's error; then the file is unchanged.
    pub(super) fn replace(&mut self, text: &str) -> Result<(), CliError> {
        let broken = |err: io::Error| {
            CliError::of(format!("{} cannot be written", self.path().display()))
                .because(err)
                .next("make the file and its folder writable for you")
        };
        if self.present()? != self.text {
            return Err(self.changed());
        }
        let beside = format!(".{}.{}.new", self.name, std::process::id());
        let path = self.folder.join(&beside);
        self.write_beside(&path, text).map_err(broken)?;
        let done = self.exchange(&beside);
        let _gone = std::fs::remove_file(&path);
        match done {
            Ok(true) => self.text = Some(text.to_owned()),
            Ok(false) => return Err(self.changed()),
            Err(err) => return Err(broken(err)),
        }
        Ok(())
    }

    fn changed(&self) -> CliError {
        CliError::refusal(format!("{} has changed meanwhile and stays as it is", self.path().display()))
            .next("try again")
    }

    fn write_beside(&self, path: &Path, text: &str) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = system::private_file(&mut options).open(path)?;
        let write = || {
            if let Ok(meta) = self.path().metadata() {
                file.set_permissions(meta.permissions())?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        let written = { write }();
        if written.is_err() {
            let _gone = std::fs::remove_file(path);
        }
        written
    }

    /// Puts the new file in the place of the old one; returns `false` if the old one is a different file by now.
    fn exchange(&self, beside: &str) -> io::Result<bool> {
        let (new, path) = (self.folder.join(beside), self.path());
        let Some(before) = &self.text else {
            // Unlike a rename, a hard link is refused where a file exists.
            return match std::fs::hard_link(&new, &path) {
                Ok(()) => Ok(true),
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(err) => Err(err),
            };
        };
        let folder = Dir::open_ambient_dir(&self.folder, ambient_authority())?;
        if !system::exchange(&folder, beside, &self.name)? {
            folder.rename(beside, &folder, &self.name)?;
            return Ok(true);
        }
        let taken = system::short_text(&new, SETTINGS_FILE_BYTES_MAX);
        if taken.is_ok_and(|it| it == *before) {
            return Ok(true);
        }
        system::exchange(&folder, beside, &self.name)?;
        Ok(false)
    }
}

fn ids(table: &Table) -> Vec<String> {
    let list = table.get(LIST).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let id = |it: &Value| it.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    list.iter().map(id).collect()
}

/// Returns the texts without one of the entries: from its head, with Provost's comment above that, to the next later
/// head. Lines in longer texts may look like heads, so each text is a guess until it has been parsed.
fn cuts(text: &str) -> impl Iterator<Item = String> + '_ {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = |is: fn(&str) -> bool| -> Vec<usize> {
        lines.iter().enumerate().filter(|(_, line)| is(line.trim_start())).map(|(at, _)| at).collect()
    };
    let heads = at(|line| line.starts_with(HEAD));
    let ends: Vec<usize> =
        at(|line| line.starts_with('[') && !is_own(line)).into_iter().chain([lines.len()]).collect();
    let pairs: Vec<(usize, usize)> = heads
        .iter()
        .flat_map(|from| {
            let later = ends.iter().filter(move |to| **to > *from).take(ENDS_TRIED_MAX);
            later.map(|to| (*from, *to))
        })
        .collect();
    pairs.into_iter().map(move |(from, to)| cut(&lines, from, to))
}

/// Checks whether a head belongs to the entry before it.
fn is_own(line: &str) -> bool {
    let head: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    head.starts_with("[agent.") || head.starts_with("[[agent.")
}

fn cut(lines: &[&str], mut from: usize, mut to: usize) -> String {
    // Comments right above the next head belong to that head.
    if to < lines.len() {
        while to > from + 1 && lines[to - 1].trim_start().starts_with('#') {
            to -= 1;
        }
    }
    while from > 0 && lines[from - 1].starts_with(OURS) {
        from -= 1;
    }
    // Of the empty lines around the entry, one stays before the text after it.
    let is_empty = |at: usize| lines[at].trim().is_empty();
    if from > 0 && is_empty(from - 1) && (to == lines.len() || is_empty(to - 1)) {
        from -= 1;
        to -= usize::from(to < lines.len());
    }
    lines[..from].concat() + &lines[to..].concat()
}
