//! Turns TOML into rules: every key known, every value of its type, every complaint with its line.

use super::condition::When;
use super::file::{
    APPROVAL_WAIT, Action, Ask, CREDENTIALS, Example, File, Limit, RULINGS, Rule, Ruling, TIERS,
};
use super::reader::{Notes, Problems, Section, choice, words};
use super::request::{REQUEST_KEYS, Request};
use super::rule;
use super::units::{duration, rate, size};
use provost_base::limits::{APPROVAL_AGAIN_MAX, POLICY_BYTES_MAX, POLICY_RULES_MAX, RETRIES_MAX};
use provost_base::{AgentId, Destination, RuleId};
use provost_domain::Approver;

const RULE_KEYS: &[&str] = &["id", "decision", "reason", "when", "limit", "approve", "example"];
const LIMIT_KEYS: &[&str] =
    &["tier_min", "timeout", "memory", "processes", "concurrent", "rate", "hosts", "credentials", "retries"];
const APPROVE_KEYS: &[&str] = &["by", "auth", "expires", "ask_again", "scope"];

impl File {
    /// Reads a rule file without trying its examples; [`super::Layer::parse`] tries them.
    ///
    /// # Errors
    /// All mistakes in the file.
    pub fn parse(text: &str, name: &str) -> Result<Self, Problems> {
        let mut notes = Notes::new(name, text);
        if text.len() > POLICY_BYTES_MAX {
            notes.add(0, format!("is larger than {POLICY_BYTES_MAX} bytes"));
            return notes.finish(File { name: name.into(), rules: Vec::new() });
        }
        let table = notes.toml();
        let rules = table.map(|table| {
            let top = Section::new(&mut notes, table.get_ref(), 0, "", &["version", "default", "rule"]);
            read_header(&mut notes, &top);
            read_rules(&mut notes, &top)
        });
        notes.finish(File { name: name.into(), rules: rules.unwrap_or_default() })
    }
}

fn read_header(notes: &mut Notes<'_>, top: &Section<'_, '_>) {
    match top.number(notes, "version") {
        None if top.has("version") => {}
        Some(1) => {}
        None => notes.add(0, "`version` is missing; begin the file with `version = 1`"),
        Some(other) => top.wrong(notes, "version", format!("{other} is not known to this program; write 1")),
    }
    top.text(notes, "default", |text| match text {
        "deny" => Ok(()),
        _ => Err("what no rule matches is always denied; write \"deny\" or leave it out".to_owned()),
    });
}

fn read_rules(notes: &mut Notes<'_>, top: &Section<'_, '_>) -> Vec<Rule> {
    let sections = top.sections(notes, "rule", RULE_KEYS);
    if sections.len() > POLICY_RULES_MAX {
        top.wrong(notes, "rule", format!("there are more than {POLICY_RULES_MAX} rules"));
        return Vec::new();
    }
    let mut rules: Vec<Rule> = Vec::new();
    for section in &sections {
        let Some(rule) = read_rule(notes, section) else { continue };
        if let Some(first) = rules.iter().find(|it| it.id == rule.id) {
            let why = format!("`{}` is already the name of the rule in line {}", rule.id, first.line);
            section.wrong(notes, "id", why);
        }
        rules.push(rule);
    }
    rules
}

fn read_rule(notes: &mut Notes<'_>, section: &Section<'_, '_>) -> Option<Rule> {
    let id = section.text(notes, "id", |text| RuleId::parse(text).map_err(|e| e.to_string()));
    let decision = section.text(notes, "decision", |text| choice(RULINGS, text));
    let reason = section.text(notes, "reason", words);
    for (key, hint) in [
        ("id", "give the rule a name that is its own"),
        ("decision", "say allow, approve or deny"),
        ("reason", "give a reason, for the readers of the decision"),
    ] {
        if !section.has(key) {
            section.wrong(notes, key, format!("is missing; {hint}"));
        }
    }
    let when = section.section(notes, "when", When::KEYS);
    let when = when.map(|when| When::read(notes, &when)).unwrap_or_default();
    let limit = section.section(notes, "limit", LIMIT_KEYS);
    let limit = limit.map(|limit| read_limit(notes, &limit)).unwrap_or_default();
    let (id, decision, reason) = (id?, decision?, reason?);
    let ask = read_ask(notes, section, decision);
    check_scope(notes, section, decision, &when);
    if decision == Ruling::Deny && section.has("limit") {
        section.wrong(notes, "limit", "a deny rule lets nothing through that could be limited; remove it");
    }
    if let Err(why) = rule::Rule::compile(decision, &when) {
        section.wrong(notes, "when", why);
    }
    let examples = read_examples(notes, section, decision);
    let line = notes.line(section.at());
    Some(Rule { id, decision, reason, when, limit, ask, line, examples })
}

/// Checks that a rule that permits something states its conditions.
fn check_scope(notes: &mut Notes<'_>, section: &Section<'_, '_>, decision: Ruling, when: &When) {
    let stated = *when != When::default();
    if when.any && *when != (When { any: true, ..When::default() }) {
        section.wrong(notes, "when", "`when.any` matches everything; remove it or the other conditions");
    }
    match decision {
        _ if !stated => section.wrong(
            notes,
            "when",
            "the rule has no condition; add one, or say `when.any = true` if it is meant for every request",
        ),
        Ruling::Allow if when.action.is_none() && !when.any => section.wrong(
            notes,
            "when",
            "an allow rule says what it allows; add `when.action`, for example `when.action = [\"delegate\"]`",
        ),
        Ruling::Approve if when.action.as_ref().is_some_and(|it| it.contains(&Action::Approve)) => section
            .wrong(notes, "when", "an answer to an approval cannot wait for another one; allow or deny it"),
        Ruling::Approve if when.action.as_ref().is_some_and(|it| it.contains(&Action::Token)) => section.wrong(
            notes,
            "when",
            "a token is made while the caller waits, so it cannot wait for an approval; allow or deny it",
        ),
        _ => {}
    }
}

fn read_limit(notes: &mut Notes<'_>, from: &Section<'_, '_>) -> Limit {
    let limit = Limit {
        tier_min: from.text(notes, "tier_min", |text| choice(TIERS, text)),
        timeout: from.text(notes, "timeout", duration),
        memory: from.amount(notes, "memory", size),
        processes: from.small(notes, "processes"),
        concurrent: from.small(notes, "concurrent"),
        rate: from.text(notes, "rate", rate),
        hosts: from.texts(notes, "hosts", host).map(sorted),
        credentials: from.text(notes, "credentials", |text| choice(CREDENTIALS, text)),
        retries: from.small(notes, "retries"),
    };
    if limit.retries.is_some_and(|it| it > RETRIES_MAX) {
        from.wrong(notes, "retries", format!("a task begins again {RETRIES_MAX} times at the most"));
    }
    for (key, value) in [
        ("memory", limit.memory),
        ("processes", limit.processes.map(u64::from)),
        ("concurrent", limit.concurrent.map(u64::from)),
    ] {
        if value == Some(0) {
            from.wrong(notes, key, "nothing could run with 0; write a deny rule instead");
        }
    }
    limit
}

fn read_ask(notes: &mut Notes<'_>, section: &Section<'_, '_>, decision: Ruling) -> Option<Ask> {
    if decision != Ruling::Approve {
        if section.has("approve") {
            let why = format!("belongs to approve rules, this one says {}", decision.name());
            section.wrong(notes, "approve", why);
        }
        return None;
    }
    if !section.has("approve") {
        let why = "is missing; say who may answer, for example `approve.by = [\"human\"]`";
        section.wrong(notes, "approve.by", why);
    }
    let from = section.section(notes, "approve", APPROVE_KEYS)?;
    if !from.has("by") {
        from.wrong(notes, "by", "is missing; say who may answer, for example [\"human\"]");
    }
    let by = from.texts(notes, "by", approver).map(in_approver_order);
    let expires = from.text(notes, "expires", duration).unwrap_or(APPROVAL_WAIT);
    let again = from.small(notes, "ask_again").unwrap_or(0);
    if again > APPROVAL_AGAIN_MAX {
        from.wrong(
            notes,
            "ask_again",
            format!("a question is asked again at most {APPROVAL_AGAIN_MAX} times"),
        );
    }
    from.text(notes, "scope", |text| match text {
        "once" => Ok(()),
        _ => {
            Err("an answer counts for the one request that was shown; write \"once\" or leave it out".into())
        }
    });
    from.text(notes, "auth", |text| check_auth(text, by.as_deref().unwrap_or_default()));
    Some(Ask { by: by?, expires, again })
}

/// Checks `approve.auth`. The approvers determine how an answer is proved; a rule may repeat it for its readers, and must then be right.
fn check_auth(auth: &str, by: &[Approver]) -> Result<(), String> {
    let people = by.iter().any(|it| Approver::Human.covers(it));
    let agents = by.iter().any(|it| matches!(it, Approver::Agent(_)));
    let passkey = by.iter().any(|it| matches!(it, Approver::Passkey | Approver::PasskeyIfEnrolled));
    match auth {
        "terminal" | "key" if passkey => Err(format!(
            "\"{auth}\" is no passkey's proof, and `approve.by` names one; leave `approve.auth` out"
        )),
        "terminal" | "key" if by.contains(&Approver::Host) => Err(format!(
            "\"{auth}\" does not prove which person sits at a host, and `approve.by` names `host`; remove one of them"
        )),
        "ssh-signature" => {
            Err("signed answers are not available in this version; write \"terminal\" for people or \
                                \"key\" for agents"
                .to_owned())
        }
        "terminal" if agents => {
            Err("\"terminal\" is a person's proof, and `approve.by` names an agent; remove one of them"
                .to_owned())
        }
        "key" if people => {
            Err("\"key\" is an agent's proof, and `approve.by` names `human`; remove one of them".to_owned())
        }
        other => choice(&[("terminal", ()), ("key", ())], other),
    }
}

fn read_examples(notes: &mut Notes<'_>, section: &Section<'_, '_>, decision: Ruling) -> Vec<Example> {
    let Some(from) = section.section(notes, "example", &[decision.name(), "not"]) else { return Vec::new() };
    let mut examples = Vec::new();
    for (key, matches) in [(decision.name(), true), ("not", false)] {
        for item in from.sections(notes, key, REQUEST_KEYS) {
            let request = Request::read(notes, &item);
            examples.push(Example { line: notes.line(item.at()), matches, request });
        }
    }
    examples
}

fn approver(text: &str) -> Result<Approver, String> {
    match text {
        "human" => Ok(Approver::Human),
        "passkey" => Ok(Approver::Passkey),
        "passkey-if-enrolled" => Ok(Approver::PasskeyIfEnrolled),
        "host" => Ok(Approver::Host),
        _ => AgentId::parse(text).map(Approver::Agent).map_err(|why| format!("`{text}` {why}")),
    }
}

fn in_approver_order(mut by: Vec<Approver>) -> Vec<Approver> {
    by.sort_by(|one, other| approver_rank(one).cmp(&approver_rank(other)));
    by.dedup();
    by
}

/// Returns the place of an approver in a list; a wider word stands before a narrower one.
pub(super) fn approver_rank(it: &Approver) -> (u8, &str) {
    match it {
        Approver::Human => (0, ""),
        Approver::PasskeyIfEnrolled => (1, ""),
        Approver::Passkey => (2, ""),
        Approver::Host => (3, ""),
        Approver::Agent(id) => (4, id.as_str()),
    }
}

/// Reads `host:port` or `host:port=address`, in the spelling of the configuration.
fn host(text: &str) -> Result<Box<str>, String> {
    let wrong =
        |why| format!("`{text}` is not a host; write \"name:port\", as in \"crates.example:443\": it {why}");
    Destination::parse(text).map(|it| it.to_string().into()).map_err(wrong)
}

fn sorted(mut list: Vec<Box<str>>) -> Vec<Box<str>> {
    list.sort();
    list.dedup();
    list
}
