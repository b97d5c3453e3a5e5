//! Puts Provost's hooks into a host's configuration, removes them, and tells whether they are in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::common::Ranged as _;
use serde::Serialize;
use serde_json::Value;

use super::file::HostFile;
use super::form::{self, Http};
use super::host::{HookHost, Wish};
use super::json::{self, Tree};
use super::{rule, trust};
use crate::cli_error::DONE;
use crate::{CliError, RepoContext, out};

/// The state of a host's file.
#[derive(Serialize)]
pub(super) struct Standing {
    host: &'static str,
    file: String,
    /// `installed`, `untrusted`, `outdated`, `partly`, `missing`, `unreadable`.
    pub(super) state: &'static str,
    /// The reason why it is unreadable, or the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Whether its hooks are requests over HTTP, where they may be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    over_http: bool,
}

impl Standing {
    /// Makes the state of a file of Codex' own, outside of the repository.
    pub(super) fn of_codex(file: &Path, state: &'static str, why: Option<String>) -> Self {
        Self { host: HookHost::Codex.word(), file: file.display().to_string(), state, why, over_http: false }
    }

    /// Returns the host, whether nothing has to be done, and the state in words; `None` where the file has none of Provost's hooks.
    pub(super) fn in_short(&self) -> Option<(&'static str, bool, String)> {
        if self.state == "missing" && self.why.is_none() {
            return None;
        }
        let more = match self.state {
            "outdated" => format!("; provost hook install {}", self.host),
            _ => self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default(),
        };
        let form = if self.over_http { ", over HTTP" } else { "" };
        Some((self.host, self.state == "installed", format!("{}{form}{more}", self.state)))
    }
}

/// Parses the file. If the part that contains hooks does not have the host's form, this fails and the file stays unchanged.
fn parse<'a>(file: &HostFile, text: &'a str) -> Result<Tree<'a>, CliError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let tree = json::parse(text).map_err(|why| file.wrong(why))?;
    let odd = |what: &str| file.wrong(format!("{what} is not as its host has it"));
    let root = tree.root.as_object().ok_or_else(|| odd("it"))?;
    let hooks = match root.get("hooks") {
        Some(hooks) => Some(hooks.value.as_object().ok_or_else(|| odd("`hooks`"))?),
        None => None,
    };
    for event in hooks.map_or(&[][..], |it| &it.properties) {
        if event.value.as_array().is_none() {
            return Err(odd(&format!("`hooks.{}`", event.name.as_str())));
        }
    }
    // If two members have one name, hosts differ in which of them they read.
    let ours = |name: &str| matches!(name, "hooks" | "permissions");
    let twice = said_twice(root, ours)
        .or_else(|| said_twice(hooks?, |_| true))
        .or_else(|| said_twice(root.get_object("permissions")?, |name| name == "allow"));
    match twice {
        Some(name) => Err(file.wrong(format!("it says `{name}` twice"))),
        None => Ok(tree),
    }
}

/// Returns a relevant name that two members of an object have.
fn said_twice<'t>(object: &'t Object<'_>, matters: impl Fn(&str) -> bool) -> Option<&'t str> {
    let mut seen = BTreeSet::new();
    let names = object.properties.iter().map(|it| it.name.as_str());
    names.filter(|it| matters(it)).find(|it| !seen.insert(*it))
}

/// Checks whether a hook is Provost's, by its command or address, in a group or by itself.
fn is_ours(host: HookHost, node: &Node<'_>) -> bool {
    let text = |name| json::member(node, name).and_then(json::text);
    text("command").is_some_and(|it| host.is_ours(it))
        || text("url").is_some_and(|it| form::is_ours(host, it))
}

/// Returns the hooks of a group.
fn inner<'t, 'a>(entry: &'t Node<'a>) -> &'t [Node<'a>] {
    json::member(entry, "hooks").map_or(&[], json::items)
}

/// Returns the text without Provost's entries; groups, events and the whole object are removed when they become empty.
fn without(host: HookHost, file: &HostFile, text: &str) -> Result<String, CliError> {
    let mut text = text.to_owned();
    loop {
        let tree = parse(file, &text)?;
        let Some(next) = less_hooks(host, &tree).or_else(|| less_rules(host, &tree)) else {
            return Ok(text);
        };
        text = next;
    }
}

/// Returns the text without the rule that allows Provost's own tools, and without the members that were made for it.
fn less_rules(host: HookHost, tree: &Tree<'_>) -> Option<String> {
    let rule = host.allow_rule()?;
    let whole = tree.root.as_object()?.get("permissions")?;
    let kinds = whole.value.as_object()?;
    let allowed = kinds.get("allow")?;
    let ours = json::items(&allowed.value).iter().find(|it| json::text(it) == Some(rule))?;
    Some(if json::items(&allowed.value).len() > 1 {
        tree.remove(&allowed.value, ours.range())
    } else if kinds.properties.len() > 1 {
        tree.remove(&whole.value, allowed.range)
    } else {
        tree.remove(&tree.root, whole.range)
    })
}

/// Returns the text without one of Provost's hooks, and without the members that were made for it.
fn less_hooks(host: HookHost, tree: &Tree<'_>) -> Option<String> {
    let whole = tree.root.as_object()?.get("hooks")?;
    let events = &whole.value.as_object()?.properties;
    for event in events {
        let entries = json::items(&event.value);
        for entry in entries {
            let inner = inner(entry);
            let ours = is_ours(host, entry) || (inner.len() == 1 && is_ours(host, &inner[0]));
            if ours {
                return Some(if entries.len() > 1 {
                    tree.remove(&event.value, entry.range())
                } else if events.len() > 1 {
                    tree.remove(&whole.value, event.range)
                } else {
                    tree.remove(&tree.root, whole.range)
                });
            }
            if let Some(one) = inner.iter().find(|it| is_ours(host, it)) {
                return Some(tree.remove(json::member(entry, "hooks")?, one.range()));
            }
        }
    }
    None
}

/// Returns the text with exactly the wanted entries of Provost.
fn with(host: HookHost, file: &HostFile, text: &str, wish: &Wish<'_>) -> Result<String, CliError> {
    let mut text = without(host, file, text)?;
    if text.trim().is_empty() {
        text = host.blank().to_owned();
    }
    for (event, entry) in host.entries(wish) {
        let tree = parse(file, &text)?;
        let entry = serde_json::to_string_pretty(&entry).map_err(|err| file.wrong(err))?;
        let (into, part) = match json::member(&tree.root, "hooks") {
            None => (&tree.root, named("hooks", &braced('{', &named(event, &braced('[', &entry, ']')), '}'))),
            Some(hooks) => match json::member(hooks, event) {
                None => (hooks, named(event, &braced('[', &entry, ']'))),
                Some(entries) => (entries, entry),
            },
        };
        text = tree.append(into, &part);
    }
    if let Some(rule) = host.allow_rule().filter(|_| !wish.shared) {
        text = with_rule(file, &text, rule)?;
    }
    // The new text is parsed once more: a host that cannot read it would run no hooks at all.
    parse(file, &text)?;
    Ok(text)
}

/// Returns the text with a rule that allows the tools that it names.
fn with_rule(file: &HostFile, text: &str, rule: &str) -> Result<String, CliError> {
    let tree = parse(file, text)?;
    let rule = format!("\"{rule}\"");
    let list = braced('[', &rule, ']');
    let (into, part) = match json::member(&tree.root, "permissions") {
        None => (&tree.root, named("permissions", &braced('{', &named("allow", &list), '}'))),
        Some(rules) => match (rules, json::member(rules, "allow")) {
            (Node::Object(_), None) => (rules, named("allow", &list)),
            (Node::Object(_), Some(allowed @ Node::Array(_))) => (allowed, rule),
            _ => return Err(file.wrong("`permissions` is not as its host has it")),
        },
    };
    Ok(tree.append(into, &part))
}

fn named(name: &str, value: &str) -> String {
    format!("\"{name}\": {value}")
}

fn braced(open: char, inner: &str, close: char) -> String {
    let inner: String = inner.lines().map(|line| format!("  {line}\n")).collect();
    format!("{open}\n{inner}{close}")
}

/// Returns the path of this program, for configurations that outlive it.
pub(super) fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|err| CliError::of("this program does not know where it is").because(err))
}

pub(super) fn install(here: &RepoContext, host: HookHost, wish: &Wish<'_>) -> Result<u8, CliError> {
    let [own, shared] = host.files();
    let file = HostFile::at(here, if wish.shared { shared } else { own })?;
    let before = file.read()?;
    let text = before.as_ref().map_or(host.blank(), |it| &it.text);
    let wanted = with(host, &file, text, wish)?;
    if before.is_none() || !says_the_same(host, &parse(&file, text)?, wish) {
        let rest = before.as_ref().map(|it| without(host, &file, &it.text)).transpose()?;
        file.write(before.as_ref(), rest, &wanted)?;
    }
    if host == HookHost::Codex && !wish.shared {
        // Without the rule, the hook answers about Provost's tools; the state is reported below.
        let _not_put = rule::put(here);
    }
    let done = status(here, &[host])?;
    let is_of_git = here.places.worktree.join(".git").exists();
    if !here.json && !wish.shared && is_of_git {
        let own = out::one_line(own, 200);
        out::note(format!(
            "{own} holds paths of this machine; to keep it out of commits: \
             echo {own} >> \"$(git rev-parse --git-path info/exclude)\""
        ));
    }
    Ok(done)
}

/// Says how a host gets the tools that refusals of the hook mention.
fn tools_of(host: HookHost) -> Option<&'static str> {
    match host {
        HookHost::Claude => Some("claude mcp add provost -- provost mcp"),
        // Codex' state has a line of its own, from its configuration.
        HookHost::Codex => None,
        HookHost::Cursor => Some(
            r#"in .cursor/mcp.json: {"mcpServers": {"provost": {"command": "provost", "args": ["mcp"]}}}"#,
        ),
    }
}

/// Checks whether the file has every wanted entry once, and no other one of Provost's.
fn says_the_same(host: HookHost, tree: &Tree<'_>, wish: &Wish<'_>) -> bool {
    let wanted = host.entries(wish);
    let ours = ours(host, tree);
    let rules = json::member(&tree.root, "permissions");
    let allowed = rules.and_then(|it| json::member(it, "allow")).map_or(&[][..], json::items);
    let has = |rule| allowed.iter().any(|it| json::text(it) == Some(rule));
    host.allow_rule().is_none_or(|rule| has(rule) != wish.shared)
        && ours.len() == wanted.len()
        && wanted.iter().all(|(event, entry)| ours.contains(&((*event).to_owned(), entry.clone())))
}

/// Returns all of Provost's entries, each with its event.
fn ours(host: HookHost, tree: &Tree<'_>) -> Vec<(String, Value)> {
    let hooks = json::member(&tree.root, "hooks").and_then(Node::as_object);
    let mut found = Vec::new();
    for event in hooks.map_or(&[][..], |it| &it.properties) {
        for entry in json::items(&event.value) {
            if is_ours(host, entry) || inner(entry).iter().any(|it| is_ours(host, it)) {
                found.push((event.name.as_str().to_owned(), entry.clone().into()));
            }
        }
    }
    found
}

pub(super) fn remove(here: &RepoContext, host: HookHost) -> Result<u8, CliError> {
    let files: Vec<_> =
        both(host).into_iter().map(|path| HostFile::at(here, path)).collect::<Result<_, _>>()?;
    // The files share a folder, which was made for the first of them.
    let made = files.iter().map(HostFile::made).max().unwrap_or(0);
    let mut had_ours = false;
    for file in files {
        let Some(seen) = file.read()? else { continue };
        let has_none = ours(host, &parse(&file, &seen.text)?).is_empty();
        had_ours |= !has_none;
        if has_none || file.bring_back(&seen, made)? {
            continue;
        }
        let left = without(host, &file, &seen.text)?;
        file.let_go(&seen, &left)?;
    }
    if host == HookHost::Codex {
        rule::take_out(here)?;
    }
    if !here.json {
        out::note(match had_ours {
            true => format!("the hooks of {} are removed", host.word()),
            false => format!("{} has no hooks of Provost here, so nothing was removed", host.word()),
        });
    }
    status(here, &[host])
}

/// Returns its files, each once.
fn both(host: HookHost) -> Vec<&'static str> {
    let mut files = host.files().to_vec();
    files.dedup();
    files
}

fn standing(here: &RepoContext, host: HookHost, path: &'static str) -> Result<Standing, CliError> {
    let file = HostFile::at(here, path)?;
    let shown = file.shown.display().to_string();
    let stands =
        |state, why| Standing { host: host.word(), file: shown.clone(), state, why, over_http: false };
    let unreadable = |error: CliError| Ok(stands("unreadable", Some(error.in_short())));
    let seen = match file.read() {
        Ok(Some(seen)) => seen,
        Ok(None) => return Ok(stands("missing", None)),
        Err(error) => return unreadable(error),
    };
    let ours = match parse(&file, &seen.text) {
        Ok(tree) => ours(host, &tree),
        Err(error) => return unreadable(error),
    };
    let program = program()?;
    // If the file has one hook for permission requests, it should have all of them.
    let patience_s = ours.iter().any(|(event, _)| *event == "PermissionRequest").into();
    let wish = Wish { program: &program, shared: false, agent: None, patience_s, http: None };
    let http = Http::known(here);
    let over_http = ours.iter().any(|(_, entry)| form::is_http(&entry.to_string()));
    let wanted = host.entries(&wish);
    let lacks =
        wanted.iter().map(|(event, _)| *event).filter(|event| !ours.iter().any(|(it, _)| it == event));
    let lacks: Vec<&str> = lacks.collect();
    let state = match () {
        () if ours.is_empty() => "missing",
        () if !lacks.is_empty() => {
            let next = format!("without {}; provost hook install {}", lacks.join(", "), host.word());
            return Ok(Standing { over_http, ..stands("partly", Some(next)) });
        }
        () if ours.iter().all(|(_, entry)| host.names(&entry.to_string(), &program, http.as_ref())) => {
            "installed"
        }
        () => "outdated",
    };
    if state == "installed"
        && host == HookHost::Codex
        && let Some(why) = trust::of(here, &file.shown, &seen.text).advice()
    {
        return Ok(stands("untrusted", Some(why.into())));
    }
    Ok(Standing { over_http, ..stands(state, None) })
}

pub(super) fn standings(here: &RepoContext, hosts: &[HookHost]) -> Result<Vec<Standing>, CliError> {
    let files = hosts.iter().flat_map(|host| both(*host).into_iter().map(|path| (*host, path)));
    let mut all = files.map(|(host, path)| standing(here, host, path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(at) = all.iter().position(|it| it.host == HookHost::Codex.word() && it.state != "missing")
        && let Some(rule) = rule::standing(here)?
    {
        all.insert(at + 1, rule);
    }
    Ok(all)
}

pub(super) fn status(here: &RepoContext, hosts: &[HookHost]) -> Result<u8, CliError> {
    let all = standings(here, hosts)?;
    if here.json {
        return out::json(&all).map(|()| DONE);
    }
    let is_there = |host: &str| all.iter().any(|it| it.host == host && it.state != "missing");
    for it in &all {
        // One of the two files is enough.
        if it.state == "missing" && it.why.is_none() && is_there(it.host) {
            continue;
        }
        let more = match it.state {
            "outdated" => format!("; provost hook install {}", it.host),
            _ => it.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default(),
        };
        let form = if it.over_http { " (over HTTP)" } else { "" };
        out::line(out::one_line(&format!("{}: {}: {}{form}{more}", it.host, it.state, it.file), 4_400))?;
    }
    for host in hosts.iter().filter(|it| is_there(it.word())) {
        if let Some(how) = tools_of(*host) {
            out::note(format!("{}: for Provost's tools in it, once (docs/mcp.md): {how}", host.word()));
        }
    }
    Ok(DONE)
}
