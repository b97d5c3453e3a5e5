//! The types that a setting may have: how each is written in TOML, checked and printed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use toml::de::{DeInteger, DeValue};

use super::mcp_tools::McpTools;
pub(super) use super::web_origin::{PageName, ProxySocket, PublicOrigin, WebOrigin, WebRead};
use provost_base::{AgentId, Json, RepoPath, Ttl};

/// A row of the table of settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The key as written in the file.
    pub key: &'static str,
    /// The type of its value, in words.
    pub kind: &'static str,
    /// The words of a choice; empty for other types.
    pub words: &'static [&'static str],
    /// The default as TOML, or `None` where the setting is absent by default.
    pub default: Option<String>,
    /// The unit or meaning of the value; empty where the type tells it.
    pub unit: &'static str,
    /// Its properties beyond the value, for checks and documents.
    pub marks: &'static [Mark],
    /// Its purpose, in a sentence.
    pub says: &'static str,
}

/// A property of a setting beyond its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// It enforces something: a wrong value or a misspelt key is an error instead of a default.
    Strict,
    /// The key must be given.
    Required,
    /// Files that a repository brings may not set it.
    Owner,
}

/// The context in which a value is read: the folder of its file, and the home that `~` stands for.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Folder of the file; relative paths begin here.
    pub dir: PathBuf,
    /// The user's home, for `~/`.
    pub home: Option<PathBuf>,
}

/// A type that a setting may have.
pub trait Value: Sized {
    /// The name of the type in the documentation.
    const NAME: &'static str;
    /// The words of a choice; empty for other types.
    const WORDS: &'static [&'static str] = &[];
    /// Whether `"off"` is a value of the optional form.
    const MAY_BE_OFF: bool = false;

    /// Reads a value from a file.
    ///
    /// # Errors
    /// A sentence that says what was expected, for the person who wrote the file.
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String>;

    /// Returns the value as TOML; `None` for an absent one.
    fn print(&self) -> Option<String>;
}

/// Reads a value and checks it against the row's range.
pub(super) fn checked<T: Value + PartialOrd>(
    value: &DeValue<'_>,
    context: &Context,
    range: Option<RangeInclusive<T>>,
) -> Result<T, String> {
    let value = T::read(value, context)?;
    match range {
        Some(range) if !range.contains(&value) => {
            let bound = |edge: &T| edge.print().unwrap_or_else(|| "nothing".into());
            Err(format!("must lie between {} and {}", bound(range.start()), bound(range.end())))
        }
        _ => Ok(value),
    }
}

pub(super) fn text<'a>(value: &'a DeValue<'_>) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("expected text in quotes, found {}", value.type_str()))
}

pub(super) fn integer(value: &DeValue<'_>) -> Result<u64, String> {
    let number =
        value.as_integer().ok_or_else(|| format!("expected a whole number, found {}", value.type_str()))?;
    let parse = |number: &DeInteger<'_>| u64::from_str_radix(number.as_str(), number.radix());
    parse(number).map_err(|_| format!("expected a whole number from 0 upwards, found {number}"))
}

pub(super) fn paths(globs: &[&str]) -> Vec<String> {
    globs.iter().map(|it| (*it).to_owned()).collect()
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

impl Value for bool {
    const NAME: &'static str = "true or false";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("expected true or false, found {}", value.type_str()))
    }
    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for u64 {
    const NAME: &'static str = "number";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        integer(value)
    }
    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for u16 {
    const NAME: &'static str = "number";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        integer(value)?.try_into().map_err(|_| format!("must not be above {}", u16::MAX))
    }
    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for u32 {
    const NAME: &'static str = "number";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        integer(value)?.try_into().map_err(|_| format!("must not be above {}", u32::MAX))
    }
    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for String {
    const NAME: &'static str = "text";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        match text(value)? {
            blank if blank.trim().is_empty() => Err("must not be blank".into()),
            text => Ok(text.into()),
        }
    }
    fn print(&self) -> Option<String> {
        Some(quoted(self))
    }
}

impl Value for AgentId {
    const NAME: &'static str = "text";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        Self::parse(text(value)?).map_err(|e| e.to_string())
    }
    fn print(&self) -> Option<String> {
        Some(quoted(self.as_str()))
    }
}

impl Value for PathBuf {
    const NAME: &'static str = "path";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let written = String::read(value, context)?;
        if written.contains('\0') {
            return Err("must not contain a NUL".into());
        }
        match written.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = context.home.as_ref().ok_or("begins with `~`, and HOME is not set")?;
                Ok(home.join(rest.trim_start_matches('/')))
            }
            _ => Ok(context.dir.join(written)),
        }
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.to_string_lossy()))
    }
}

impl<T: Value> Value for Option<T> {
    const NAME: &'static str = T::NAME;
    const WORDS: &'static [&'static str] = T::WORDS;
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        match value.as_str() {
            Some("off") if T::MAY_BE_OFF => Ok(None),
            _ => T::read(value, context).map(Some),
        }
    }
    fn print(&self) -> Option<String> {
        match self {
            None if T::MAY_BE_OFF => Some(quoted("off")),
            value => value.as_ref()?.print(),
        }
    }
}

macro_rules! lists {
    ($($Item:ty => $name:literal),*) => {$(
        impl Value for Vec<$Item> {
            const NAME: &'static str = $name;
            fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
                let items = value.as_array().ok_or_else(|| format!("expected a list, found {}", value.type_str()))?;
                items.iter().map(|item| <$Item>::read(item.get_ref(), context)).collect()
            }
            fn print(&self) -> Option<String> {
                Some(format!("[{}]", self.iter().filter_map(Value::print).collect::<Vec<_>>().join(", ")))
            }
        }
    )*};
}

impl Value for RepoPath {
    const NAME: &'static str = "path in the workspace";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let text = text(value)?;
        match RepoPath::parse(text) {
            Ok(path) if path.is_root() => Err(format!("{text:?} is the workspace itself")),
            parsed => parsed.map_err(|why| format!("{text:?} {why}")),
        }
    }
    fn print(&self) -> Option<String> {
        Some(quoted(self.as_str()))
    }
}

pub(super) use lists;
lists! { AgentId => "list of idents", RepoPath => "list of paths in the workspace", String => "list of text", PathBuf => "list of paths", u16 => "list of numbers", u32 => "list of numbers", McpTools => "list of words", WebOrigin => "list of origins", PageName => "list of names", PublicOrigin => "list of origins" }

impl Value for BTreeMap<String, String> {
    const NAME: &'static str = "table of text";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let table =
            value.as_table().ok_or_else(|| format!("expected a table, found {}", value.type_str()))?;
        let pair = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            let text = text(value.get_ref()).map_err(|e| format!("`{name}`: {e}"))?;
            Ok((name.to_string(), text.to_string()))
        };
        table.iter().map(pair).collect()
    }
    fn print(&self) -> Option<String> {
        let pairs: Vec<_> =
            self.iter().map(|(key, value)| format!("{} = {}", quoted(key), quoted(value))).collect();
        Some(if pairs.is_empty() { "{}".into() } else { format!("{{ {} }}", pairs.join(", ")) })
    }
}

/// A TOML table kept as JSON, because it travels on as JSON.
impl Value for Json {
    const NAME: &'static str = "table";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        match value {
            DeValue::Table(_) => Ok(Self::from_value(&to_json(value)?)),
            other => Err(format!("expected a table, found {}", other.type_str())),
        }
    }
    fn print(&self) -> Option<String> {
        Some(self.as_str().into())
    }
}

fn to_json(value: &DeValue<'_>) -> Result<serde_json::Value, String> {
    use serde_json::Value as J;
    Ok(match value {
        DeValue::String(text) => J::String(text.to_string()),
        DeValue::Boolean(yes) => J::Bool(*yes),
        DeValue::Integer(n) => J::from(
            i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| format!("{n} is too large a number"))?,
        ),
        DeValue::Float(n) => {
            let number: f64 = n.as_str().parse().map_err(|_| format!("{n} is not a number"))?;
            serde_json::Number::from_f64(number).map(J::Number).ok_or("JSON has no `nan` and no `inf`")?
        }
        DeValue::Datetime(moment) => J::String(moment.to_string()),
        DeValue::Array(items) => {
            J::Array(items.iter().map(|item| to_json(item.get_ref())).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let pair =
                |(key, value): (&toml::Spanned<std::borrow::Cow<'_, str>>, &toml::Spanned<DeValue<'_>>)| {
                    to_json(value.get_ref()).map(|value| (key.get_ref().to_string(), value))
                };
            J::Object(table.iter().map(pair).collect::<Result<_, String>>()?)
        }
    })
}

impl Value for Ttl {
    const NAME: &'static str = "duration";
    const MAY_BE_OFF: bool = true;
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        if let Ok(number) = integer(value) {
            return Err(format!("needs a unit: write \"{number}s\" for seconds (or ms, m, h, d)"));
        }
        let (number, unit) = split_number(text(value)?);
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => {
                return Err(
                    "expected a duration such as \"800ms\", \"30s\", \"10m\", \"24h\" or \"7d\"".into()
                );
            }
        };
        let ms = number.and_then(|number| number.checked_mul(unit_ms));
        ms.and_then(Self::from_millis).ok_or_else(|| "must be between one millisecond and seven days".into())
    }
    fn print(&self) -> Option<String> {
        let ms = u64::from(self.as_millis());
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        let (size, unit) = units.into_iter().find(|(size, _)| ms.is_multiple_of(*size)).unwrap_or((1, "ms"));
        Some(format!("\"{}{unit}\"", ms / size))
    }
}

/// Splits `10m` into 10 and `m`; the number is `None` when it is missing or too large.
pub(super) fn split_number(text: &str) -> (Option<u64>, &str) {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (text[..digits].parse().ok(), text[digits..].trim())
}

/// A size in bytes, written as `"512MiB"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ByteSize(pub u64);

const SIZE_UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

impl Value for ByteSize {
    const NAME: &'static str = "size";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let wrong = || "expected a size such as \"512MiB\" or \"2GiB\"".to_string();
        let (number, unit) = split_number(value.as_str().ok_or_else(wrong)?);
        let (_, shift) = SIZE_UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        number.and_then(|number| number.checked_mul(1 << shift)).map(Self).ok_or_else(wrong)
    }
    fn print(&self) -> Option<String> {
        let fits = |(_, shift): &(&str, u32)| self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift);
        let (unit, shift) = SIZE_UNITS.into_iter().find(fits).unwrap_or(("B", 0));
        Some(format!("\"{}{unit}\"", self.0 >> shift))
    }
}

/// The worker versions that are accepted; an empty list accepts all.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug, Default)]
pub struct Versions(pub Vec<String>);

impl Versions {
    /// Checks whether the list names any version; only then is REGISTER required.
    pub fn enforced(&self) -> bool {
        !self.0.is_empty()
    }

    /// Checks whether a worker of this version may register.
    pub fn admits(&self, version: Option<&str>) -> bool {
        !self.enforced() || version.is_some_and(|version| self.0.iter().any(|one| one == version))
    }
}

impl Value for Versions {
    const NAME: &'static str = "text or list of text";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        match value {
            DeValue::Array(_) => Vec::read(value, context).map(Self),
            _ => String::read(value, context).map(|one| Self(vec![one])),
        }
    }
    fn print(&self) -> Option<String> {
        self.0.print()
    }
}

/// The rules that decide: a file, or rules that come with the program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct Rules(pub String);

impl Rules {
    /// The prefix of rules that come with the program.
    pub const BUILTIN: &'static str = "builtin:";
}

impl Value for Rules {
    const NAME: &'static str = "path, or the name of built-in rules";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let written = String::read(value, context)?;
        if written.starts_with(Self::BUILTIN) {
            return Ok(Self(written));
        }
        let path = PathBuf::read(value, context)?;
        path.into_os_string().into_string().map(Self).map_err(|_| "its folder is not UTF-8".into())
    }
    fn print(&self) -> Option<String> {
        self.0.print()
    }
}

macro_rules! words {
    ($($(#[doc = $about:literal])+ $Name:ident { $($(#[doc = $says:literal])+ $Variant:ident = $word:literal,)+ })+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $Name { $($(#[doc = $says])+ $Variant,)+ }

        impl $Name {
            /// Returns the word that stands for it in a file.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $word,)+ }
            }
        }

        impl Value for $Name {
            const NAME: &'static str = "one of";
            const WORDS: &'static [&'static str] = &[$($word),+];
            fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
                match value.as_str() {
                    $(Some($word) => Ok(Self::$Variant),)+
                    _ => Err(format!("expected one of \"{}\"", [$($word),+].join("\", \""))),
                }
            }
            fn print(&self) -> Option<String> {
                Some(quoted(self.as_str()))
            }
        }
    )+};
}

pub(super) use words;

words! {
    /// The commands that wait for the disk.
    Durability {
        /// Each verb waits or not, as its row in the table of verbs tells.
        Verb = "verb",
        /// Every command waits for the disk.
        Full = "full",
    }
    /// The least important message that is logged.
    LogLevel {
        /// A person has to act.
        Error = "error",
        /// A client may be an attacker or misconfigured.
        Warn = "warn",
        /// Something has changed, as intended.
        Info = "info",
        /// Details for those who work on Provost.
        Debug = "debug",
    }
    /// The ends of tasks that are shown on the desktop.
    DesktopTasks {
        /// All tasks except cancelled ones.
        All = "all",
        /// Tasks that have failed.
        Failed = "failed",
        /// No task is shown.
        None = "none",
    }
    /// The effect of a lock on a commit by another agent.
    Enforce {
        /// The commit is refused.
        Deny = "deny",
        /// The commit goes on, and its author is told of the lock.
        Advise = "advise",
        /// Commits are not checked for locks.
        Off = "off",
    }
    /// The answer to a request for a place that another agent has through another door.
    AcrossDoors {
        /// The request is granted, and both agents are told.
        Advise = "advise",
        /// It is refused, in the words of its own protocol.
        Deny = "deny",
    }
    /// The effect on a commit that could not be checked.
    Unchecked {
        /// The commit goes on, with a warning.
        Pass = "pass",
        /// The commit is refused.
        Block = "block",
    }
    /// The work trees in which the wit door has sockets.
    WitOpen {
        /// All work trees, once one of them has a folder `.wit`.
        Found = "found",
        /// All work trees.
        Always = "always",
        /// No work tree.
        Never = "never",
    }
    /// The handling of the published server's database in the repository.
    ImportFound {
        /// The daemon reports it once, with the command that imports it.
        Ask = "ask",
        /// The daemon puts its events on the timeline.
        Auto = "auto",
        /// The database is ignored.
        Never = "never",
    }
    /// The proof that a request over loopback HTTP needs.
    LoopbackAuth {
        /// The kernel confirms that the request comes from a process of this user.
        Peer = "peer",
        /// A token is needed as well.
        Token = "token",
    }
    /// Whether there is an audit log of messages in the repository.
    KeepLog {
        /// The log exists where the repository has a folder `.git-paw`.
        Found = "found",
        /// The log always exists; the folder is created.
        Always = "always",
        /// The log never exists.
        Never = "never",
    }
    /// The format of the log's lines.
    LogFormat {
        /// One JSON object in each line.
        Json = "json",
        /// Text, in git-paw's own words.
        Text = "text",
    }
    /// The program that takes pictures of the screen.
    ScreenBackend {
        /// Takes pictures under X11.
        Scrot = "scrot",
        /// Takes pictures under X11; a part of ImageMagick.
        Import = "import",
        /// The same program, as DevIt calls it.
        Imagemagick = "imagemagick",
        /// Takes pictures under Wayland.
        Grim = "grim",
    }
    /// The format of pictures.
    ImageFormat {
        /// Portable Network Graphics, without loss.
        Png = "png",
        /// JPEG, with loss.
        Jpg = "jpg",
        /// The same format, spelt out.
        Jpeg = "jpeg",
        /// Windows' bitmaps, without compression.
        Bmp = "bmp",
        /// WebP, which few programs take.
        Webp = "webp",
        /// Tagged Image File Format.
        Tiff = "tiff",
    }
    /// The format of a worker's standard output.
    ParseMode {
        /// One JSON value is the answer.
        Json = "json",
        /// The text is the answer.
        Text = "text",
    }
    /// The strength of a worker's jail.
    Tier {
        /// A job object and a write-restricted token.
        Job = "job",
        /// Landlock, seccomp and signal scope.
        Ll = "ll",
        /// Namespaces, and the layers of `ll`.
        Ns = "ns",
    }
    /// A worker's access to the repository whose files it changes.
    Git {
        /// The worker may read it.
        Read = "read",
        /// The worker may read it and write to it.
        Write = "write",
    }
    /// A worker's access to the network.
    Network {
        /// No network at all.
        None = "none",
        /// The listed ports of the host's loopback.
        Ports = "ports",
        /// The listed hosts, through the daemon's proxy.
        Hosts = "hosts",
    }
}
