//! The entries of `[notify.<name>]`: addresses outside of Provost that get notices.
//!
//! An invalid entry is refused alone, with its file and reason. A repository's file may have none: its author could
//! send notices about this machine anywhere.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use super::load::{File, Loading, RefusedWorker, Severity, join};
use super::table::{key, section};
use super::value::{Context, Mark, Row, Value, checked, lists, quoted, text, words};
use super::worker::unknown;
use provost_base::limits::{NOTICE_KEYS_MAX, NOTICE_TARGETS_MAX};
use provost_base::{Hostname, WebAddress};

words! {
    /// The form in which an address takes notices.
    NotifyType {
        /// A program that takes Standard Webhooks.
        Webhook = "webhook",
        /// A topic of ntfy.
        Ntfy = "ntfy",
        /// An incoming webhook of Slack.
        Slack = "slack",
        /// A webhook of Discord.
        Discord = "discord",
        /// An incoming webhook of Mattermost.
        Mattermost = "mattermost",
    }
    /// The kinds of notices.
    NotifyKind {
        /// A question to a person, asked for the first time or again.
        Approval = "approval",
        /// A question about a tool of an agent's host, which waits for seconds.
        Permission = "permission",
        /// A question that does not wait any more.
        Answered = "answered",
        /// A task that has failed.
        Failed = "failed",
        /// A task that is completed.
        Done = "done",
        /// A run that has left a file that runs later.
        Tainted = "tainted",
        /// A passkey that was added, revoked or reset.
        Passkey = "passkey",
    }
    /// The amount of detail in notices.
    NotifyDetail {
        /// Facts of the daemon alone.
        Facts = "facts",
        /// Facts, and words of agents, marked as such.
        Full = "full",
    }
}

lists! { NotifyKind => "list of words" }

section! {
    /// One `[notify.<name>]` entry: an address elsewhere that gets notices, from the user's own files alone. docs/notices.md shows entries for each type.
    NotifyTarget {
        /// `webhook`: Standard Webhooks, signed; `ntfy`: a topic; `slack`, `discord`, `mattermost`: an incoming webhook of a channel. None of them can answer anything.
        kind as "type": NotifyType = NotifyType::Webhook, "", Required, Strict;
        /// Where notices go: `https://`, or `http://` to a loopback address. A name has to lead to public addresses.
        url: Option<NotifyUrl> = None, "address", Strict;
        /// The secret that has the address, in the place of `url`: the addresses of chats and topics are passwords.
        url_secret: Option<String> = None, "name", Strict;
        /// The address to connect to, in the place of what the name of the host leads to; also a private one.
        address: Option<NotifyIp> = None, "IP address", Strict;
        /// The certificate authority of the host (PEM), if it is not a public one.
        authority: Option<PathBuf> = None, "path", Strict;
        /// Names of secrets: for `webhook` the keys (`whsec_…`) that sign each notice, more than one while they are changed; for `ntfy` an access token.
        keys: Vec<String> = Vec::new(), "name", Strict;
        /// What it is told: `approval`, `permission` (questions about tools of agents' hosts, which wait for seconds), `answered`, `failed`, `done`, `tainted`, `passkey`.
        kinds: Vec<NotifyKind> = vec![NotifyKind::Approval, NotifyKind::Failed, NotifyKind::Tainted, NotifyKind::Passkey], "", Strict;
        /// `facts`: what the daemon knows; `full`: also what agents wrote, marked as such.
        detail: NotifyDetail = NotifyDetail::Facts, "", Strict;
        /// The page to which its links lead, such as `https://host.example.ts.net`; by default the page of this daemon, where it is open.
        link: Option<NotifyUrl> = None, "address", Strict;
        /// Whether it gets notices at all.
        enabled: bool = true, "", Strict;
    }
}

/// The address of a target, or of a page.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct NotifyUrl(pub String);

impl Value for NotifyUrl {
    const NAME: &'static str = "address";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let text = text(value)?;
        WebAddress::parse(text).map(|_| Self(text.to_owned())).map_err(|why| why.to_string())
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

/// An IP address in its canonical spelling.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct NotifyIp(pub IpAddr);

impl Value for NotifyIp {
    const NAME: &'static str = "IP address";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        let text = text(value)?;
        let bracketed = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
        match provost_base::Authority::parse_or(&bracketed, 443).map(|it| it.host) {
            Ok(Hostname::Address(address)) => Ok(Self(address)),
            _ => Err("must be an IP address, such as \"192.168.1.5\"".into()),
        }
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0.to_string()))
    }
}

/// All entries, and those that cannot be used.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NotifyTargets {
    /// The entries by name.
    pub targets: BTreeMap<String, NotifyTarget>,
    /// Entries that are invalid, by name.
    pub refused: BTreeMap<String, RefusedWorker>,
}

impl Loading {
    /// Reads the entries of `[notify]`: each stands alone, and replaces the entry of an earlier file with the same name.
    pub(super) fn notify(&mut self, file: &File<'_>, entries: &DeTable<'_>) {
        for (name, entry) in entries {
            let (name, at) = (name.get_ref().to_string(), name.span().start);
            let full = join("notify", &name);
            if file.foreign {
                let message = "is ignored: a repository may not say where notices go; put it into your own configuration";
                self.note(file, at, &full, message.into(), Severity::Warning);
                continue;
            }
            let known = &mut self.done.config.notify_targets;
            known.refused.remove(&name);
            known.targets.remove(&name);
            let is_full = known.targets.len() >= NOTICE_TARGETS_MAX;
            let read = match entry.get_ref() {
                _ if is_full => {
                    Err(format!("there are {NOTICE_TARGETS_MAX} entries already, which is as many as may be"))
                }
                _ if !is_name(&name) => {
                    Err("the name has other characters than letters, digits, `-` and `_`, or more than 64"
                        .into())
                }
                DeValue::Table(table) => self.notify_target(file, &full, table),
                other if matches!(name.as_str(), "command" | "timeout" | "env") => Err(format!(
                    "expected a table, found {}; the command for notifications is set in `[hooks.notify]`",
                    other.type_str()
                )),
                other => Err(format!("expected a table, found {}", other.type_str())),
            };
            match read {
                Ok(target) => {
                    self.done.config.notify_targets.targets.insert(name, target);
                    self.done.origins.insert(full, file.name.into());
                }
                Err(reason) => {
                    self.note(
                        file,
                        at,
                        &full,
                        format!("{reason}; this address gets no notices"),
                        Severity::Error,
                    );
                    let refused = RefusedWorker { file: file.name.into(), reason, is_agent: false };
                    self.done.config.notify_targets.refused.insert(name, refused);
                }
            }
        }
    }

    fn notify_target(
        &mut self,
        file: &File<'_>,
        full: &str,
        table: &DeTable<'_>,
    ) -> Result<NotifyTarget, String> {
        let (mut target, rows) = (NotifyTarget::default(), NotifyTarget::rows());
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match target.set(name, value.get_ref(), &file.context) {
                Some(result) => result.map_err(|why| format!("`{name}`: {why}"))?,
                None => {
                    let message = unknown(name, &rows, "an address for notices")?;
                    self.note(file, key.span().start, &join(full, name), message, Severity::Warning);
                }
            }
        }
        if !table.contains_key("type") {
            let words: Vec<&str> = NotifyType::WORDS.to_vec();
            return Err(format!("`type` is missing: write one of {}", words.join(", ")));
        }
        fits_together(target)
    }
}

pub(super) fn is_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

/// Checks the keys of an entry against each other.
fn fits_together(target: NotifyTarget) -> Result<NotifyTarget, String> {
    let refuse = |reason: &str| Err(reason.to_owned());
    match (&target.url, &target.url_secret) {
        (None, None) => {
            return refuse(
                "`url` is missing: say where notices go, or name the secret that has the address in `url_secret`",
            );
        }
        (Some(_), Some(_)) => return refuse("`url` and `url_secret` both say where notices go: remove one"),
        _ => {}
    }
    match (target.kind, target.keys.len()) {
        (NotifyType::Webhook, 0) => {
            return refuse(
                "`keys` is missing: store the key that the receiver has, `provost secret add NAME --daemon`, and name it here",
            );
        }
        (NotifyType::Webhook, count) if count > NOTICE_KEYS_MAX => {
            return Err(format!("`keys` may list at most {NOTICE_KEYS_MAX}"));
        }
        (NotifyType::Ntfy, count) if count > 1 => return refuse("`keys` may list one token"),
        (NotifyType::Slack | NotifyType::Discord | NotifyType::Mattermost, 1..) => {
            return refuse("`keys` is of no use here: the address itself is the password; remove it");
        }
        _ => {}
    }
    if target.kinds.is_empty() {
        return refuse("`kinds` is empty: say what it is told, or write `enabled = false`");
    }
    if target.link.as_ref().is_some_and(|it| it.0.contains(['?', ',', ';'])) {
        return refuse("`link` is the beginning of addresses: it may have no `?`, `,` and `;`");
    }
    Ok(target)
}
