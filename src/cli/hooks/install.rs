//! Putting our hooks into a host's configuration, taking them out, and telling whether they are in it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::file::{HostFile, Seen};
use super::host::{Host, Wish};
use super::json::{self, Node};
use super::{rule, trust};
use crate::cli::complaint::DONE;
use crate::cli::{Complaint, Here, out};

/// A file of a host, as it is.
#[derive(Serialize)]
pub(super) struct Standing {
    host: &'static str,
    file: String,
    /// `installed`, `untrusted`, `outdated`, `partly`, `missing`, `unreadable`.
    pub(super) state: &'static str,
    /// Why it is unreadable, or what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl Standing {
    /// One of Codex' own, outside of the repository.
    pub(super) fn of_codex(file: &Path, state: &'static str, why: Option<String>) -> Self {
        Self { host: Host::Codex.word(), file: file.display().to_string(), state, why }
    }
}

/// A file that is read, with everything in its place.
struct Read {
    seen: Seen,
    root: Node,
}

fn read(file: &HostFile) -> Result<Option<Read>, Complaint> {
    let Some(seen) = file.read()? else { return Ok(None) };
    let root = parse(file, &seen.text)?;
    Ok(Some(Read { seen, root }))
}

/// What hooks stand in has to be as the host has it, or nothing of it is touched.
fn parse(file: &HostFile, text: &str) -> Result<Node, Complaint> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let root = json::parse(text).map_err(|why| file.wrong(why))?;
    let odd = |what: &str| file.wrong(format!("{what} is not as its host has it"));
    let json::What::Object(members) = &root.what else { return Err(odd("it")) };
    if members.iter().filter(|it| it.name == "hooks").count() > 1 {
        return Err(file.wrong("it says `hooks` twice"));
    }
    if let Some(hooks) = root.member("hooks") {
        let json::What::Object(events) = &hooks.what else { return Err(odd("`hooks`")) };
        if let Some(event) = events.iter().find(|it| !matches!(it.value.what, json::What::Array(_))) {
            return Err(odd(&format!("`hooks.{}`", event.name)));
        }
    }
    Ok(root)
}

/// A hook of ours is one whose command is, in a group or by itself.
fn is_ours(host: Host, node: &Node) -> bool {
    node.member("command").and_then(Node::text).is_some_and(|it| host.is_ours(it))
}

/// The text without anything of ours; groups, events and the whole that have nothing left go, too.
fn without(host: Host, file: &HostFile, text: &str) -> Result<String, Complaint> {
    let mut text = text.to_owned();
    loop {
        let root = parse(file, &text)?;
        let Some(next) = less(host, &text, &root) else { return Ok(text) };
        text = next;
    }
}

/// One thing of ours less.
fn less(host: Host, text: &str, root: &Node) -> Option<String> {
    less_hooks(host, text, root).or_else(|| less_rules(host, text, root))
}

/// The rule that lets our own tools be used less, and what was made for it.
fn less_rules(host: Host, text: &str, root: &Node) -> Option<String> {
    let rule = host.allow_rule()?;
    let rules = root.member("permissions")?;
    let allowed = rules.member("allow")?;
    let ours = allowed.items().iter().find(|it| it.text() == Some(rule))?;
    let (json::What::Object(members), json::What::Object(kinds)) = (&root.what, &rules.what) else {
        return None;
    };
    Some(if allowed.items().len() > 1 {
        json::remove(text, allowed, &ours.at)
    } else if kinds.len() > 1 {
        json::remove(text, rules, &kinds.iter().find(|it| it.name == "allow")?.at)
    } else {
        json::remove(text, root, &members.iter().find(|it| it.name == "permissions")?.at)
    })
}

fn less_hooks(host: Host, text: &str, root: &Node) -> Option<String> {
    let hooks = root.member("hooks")?;
    let json::What::Object(events) = &hooks.what else { return None };
    for event in events {
        let entries = event.value.items();
        for entry in entries {
            let inner = entry.member("hooks").map_or(&[][..], Node::items);
            let ours = is_ours(host, entry) || (inner.len() == 1 && is_ours(host, &inner[0]));
            if ours && entries.len() > 1 {
                return Some(json::remove(text, &event.value, &entry.at));
            }
            if ours && events.len() > 1 {
                return Some(json::remove(text, hooks, &event.at));
            }
            if ours {
                let json::What::Object(members) = &root.what else { return None };
                let whole = members.iter().find(|it| it.name == "hooks")?;
                return Some(json::remove(text, root, &whole.at));
            }
            if let Some(one) = inner.iter().find(|it| is_ours(host, it)) {
                return Some(json::remove(text, entry.member("hooks")?, &one.at));
            }
        }
    }
    None
}

/// The text with what is wanted, and nothing else of ours.
fn with(host: Host, file: &HostFile, text: &str, wish: &Wish<'_>) -> Result<String, Complaint> {
    let mut text = without(host, file, text)?;
    if text.trim().is_empty() {
        text = host.blank().to_owned();
    }
    for (event, entry) in host.entries(wish) {
        let root = parse(file, &text)?;
        let entry = serde_json::to_string_pretty(&entry).map_err(|err| file.wrong(err))?;
        let (into, part) = match root.member("hooks") {
            None => (&root, named("hooks", &braced('{', &named(event, &braced('[', &entry, ']')), '}'))),
            Some(hooks) => match hooks.member(event) {
                None => (hooks, named(event, &braced('[', &entry, ']'))),
                Some(entries) => (entries, entry),
            },
        };
        text = json::append(&text, &root, into, &part);
    }
    if let Some(rule) = host.allow_rule().filter(|_| !wish.shared) {
        text = with_rule(file, &text, rule)?;
    }
    // What we are about to write is read once more: a host that cannot read it would have no hooks at all.
    parse(file, &text).map(|_| text)
}

/// The text with a rule that allows what it names.
fn with_rule(file: &HostFile, text: &str, rule: &str) -> Result<String, Complaint> {
    let root = parse(file, text)?;
    let rule = format!("\"{rule}\"");
    let (into, part) = match root.member("permissions") {
        None => (&root, named("permissions", &braced('{', &named("allow", &braced('[', &rule, ']')), '}'))),
        Some(rules) => match rules.member("allow") {
            None => (rules, named("allow", &braced('[', &rule, ']'))),
            Some(allowed) => (allowed, rule),
        },
    };
    let is_as_known = match &into.what {
        json::What::Array(_) => into.at != root.at,
        json::What::Object(_) => true,
        _ => false,
    };
    match is_as_known {
        true => Ok(json::append(text, &root, into, &part)),
        false => Err(file.wrong("`permissions` is not as its host has it")),
    }
}

fn named(name: &str, value: &str) -> String {
    format!("\"{name}\": {value}")
}

fn braced(open: char, inner: &str, close: char) -> String {
    let inner: String = inner.lines().map(|line| format!("  {line}\n")).collect();
    format!("{open}\n{inner}{close}")
}

/// This program, for configurations that outlive it.
pub(super) fn program() -> Result<PathBuf, Complaint> {
    std::env::current_exe()
        .map_err(|err| Complaint::of("this program does not know where it is").because(err))
}

pub(super) fn install(here: &Here, host: Host, wish: &Wish<'_>) -> Result<u8, Complaint> {
    let [own, shared] = host.files();
    let file = HostFile::at(here, if wish.shared { shared } else { own })?;
    let before = read(&file)?;
    let text = before.as_ref().map_or(host.blank(), |it| &it.seen.text);
    let wanted = with(host, &file, text, wish)?;
    if before.as_ref().is_none_or(|it| !says_the_same(host, it, wish)) {
        let seen = before.as_ref().map(|it| &it.seen);
        let rest = seen.map(|it| without(host, &file, &it.text)).transpose()?;
        file.write(seen, rest, &wanted)?;
    }
    if host == Host::Codex && !wish.shared {
        // Without it, the hook answers about our tools; how it stands is said below.
        let _not_put = rule::put(here);
    }
    status(here, &[host])
}

/// Whether everything that is wanted stands there, once, and nothing else of ours.
fn says_the_same(host: Host, read: &Read, wish: &Wish<'_>) -> bool {
    let wanted = host.entries(wish);
    let ours = ours(host, read);
    let allowed =
        read.root.member("permissions").and_then(|it| it.member("allow")).map_or(&[][..], Node::items);
    let has = |rule| allowed.iter().any(|it: &Node| it.text() == Some(rule));
    host.allow_rule().is_none_or(|rule| has(rule) != wish.shared)
        && ours.len() == wanted.len()
        && wanted.iter().all(|(event, entry)| ours.contains(&((*event).to_owned(), entry.clone())))
}

/// Everything of ours, with the event under which it stands.
fn ours(host: Host, read: &Read) -> Vec<(String, Value)> {
    let Some(Node { what: json::What::Object(events), .. }) = read.root.member("hooks") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for event in events {
        for entry in event.value.items() {
            let inner = entry.member("hooks").map_or(&[][..], Node::items);
            if is_ours(host, entry) || inner.iter().any(|it| is_ours(host, it)) {
                let value = serde_json::from_str(&read.seen.text[entry.at.clone()]).unwrap_or_default();
                found.push((event.name.clone(), value));
            }
        }
    }
    found
}

pub(super) fn remove(here: &Here, host: Host) -> Result<u8, Complaint> {
    let files: Vec<_> =
        both(host).into_iter().map(|path| HostFile::at(here, path)).collect::<Result<_, _>>()?;
    // They share a folder, which was made for the first of them.
    let made = files.iter().map(HostFile::made).max().unwrap_or(0);
    for file in files {
        let Some(read) = read(&file)? else { continue };
        if ours(host, &read).is_empty() || file.bring_back(&read.seen, made)? {
            continue;
        }
        let left = without(host, &file, &read.seen.text)?;
        file.let_go(&read.seen, &left)?;
    }
    if host == Host::Codex {
        rule::take_out(here)?;
    }
    status(here, &[host])
}

/// Its files, each once.
fn both(host: Host) -> Vec<&'static str> {
    let mut files = host.files().to_vec();
    files.dedup();
    files
}

fn standing(here: &Here, host: Host, path: &'static str) -> Result<Standing, Complaint> {
    let file = HostFile::at(here, path)?;
    let shown = file.shown.display().to_string();
    let stands = |state, why| Standing { host: host.word(), file: shown.clone(), state, why };
    let read = match read(&file) {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(stands("missing", None)),
        Err(complaint) => return Ok(stands("unreadable", Some(complaint.in_short()))),
    };
    let ours = ours(host, &read);
    let program = program()?;
    // Who has its permission requests answered here has all that belongs to that.
    let patience_s = ours.iter().any(|(event, _)| *event == "PermissionRequest").into();
    let wish = Wish { program: &program, shared: false, agent: None, patience_s };
    let wanted = host.entries(&wish);
    let state = match () {
        () if ours.is_empty() => "missing",
        () if wanted.iter().any(|(event, _)| !ours.iter().any(|(it, _)| it == event)) => "partly",
        () if ours.iter().all(|(_, entry)| host.names(&entry.to_string(), &program)) => "installed",
        () => "outdated",
    };
    if state == "installed"
        && host == Host::Codex
        && let Some(why) = trust::of(here, &file.shown, &read.seen.text).advice()
    {
        return Ok(stands("untrusted", Some(why.into())));
    }
    Ok(stands(state, None))
}

pub(super) fn standings(here: &Here, hosts: &[Host]) -> Result<Vec<Standing>, Complaint> {
    let files = hosts.iter().flat_map(|host| both(*host).into_iter().map(|path| (*host, path)));
    let mut all = files.map(|(host, path)| standing(here, host, path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(at) = all.iter().position(|it| it.host == Host::Codex.word() && it.state != "missing")
        && let Some(rule) = rule::standing(here)?
    {
        all.insert(at + 1, rule);
    }
    Ok(all)
}

pub(super) fn status(here: &Here, hosts: &[Host]) -> Result<u8, Complaint> {
    let all = standings(here, hosts)?;
    if here.json {
        return out::json(&all).map(|()| DONE);
    }
    for it in &all {
        let more = match it.state {
            "outdated" | "partly" => format!("; provost hooks install {}", it.host),
            _ => it.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default(),
        };
        out::line(out::one_line(&format!("{}: {}: {}{more}", it.host, it.state, it.file), 4_400))?;
    }
    Ok(DONE)
}
