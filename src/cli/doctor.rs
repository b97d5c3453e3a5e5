//! `provost doctor`: checks one by one for everything that could be wrong, each with the next step.
//!
//! It only looks and changes nothing, but for a temporary folder that exists while it tries a jail.

use std::path::Path;

use serde::Serialize;

use super::cli_error::{DONE, FAILED};
use super::repo_context::{now, wait_for};
use super::{CliError, RepoContext, database, out};
use provost_base::EventSeq;
use provost_base::limits::CLOCK_JUMP_MS_MIN;
use provost_client::keys::KeyRing;
use provost_config::env::weak_secret;
use provost_config::{Loaded, Severity, awaiting, sockets};
use provost_jail::{OPEN_IN_JOB, OPEN_IN_LL, Supervisor, Tier, probe};
use provost_policy::{SYSTEM_POLICY, Source, by_passkey_alone, check};
use provost_store as store;

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Health {
    Fine,
    Note,
    Broken,
}

/// The result of one check.
#[derive(Serialize, Debug)]
struct Found {
    what: String,
    health: Health,
    says: String,
}

/// The results of all checks.
#[derive(Default)]
struct Findings(Vec<Found>);

impl Findings {
    fn add(&mut self, what: impl Into<String>, health: Health, says: impl ToString) {
        let says = out::one_line(&says.to_string(), 1_000);
        self.0.push(Found { what: what.into(), health, says });
    }
}

pub(super) fn doctor(json: bool) -> Result<u8, CliError> {
    let mut found = Findings::default();
    found.add("program", Health::Fine, format!("provost {}", env!("CARGO_PKG_VERSION")));
    confinement(&mut found);
    user(&mut found);
    limits(&mut found);
    match RepoContext::find(json) {
        Err(error) => found.add("places", Health::Broken, error.text()),
        Ok(here) => {
            places(&here, &mut found);
            if let Some(missing) = super::git::without_git(&here) {
                found.add("git", Health::Note, missing);
            }
            environment(&here, &mut found);
            keys(&here, &mut found);
            hooks(&here, &mut found);
            if let Some(loaded) = configuration(&here, &mut found) {
                policy(&here, &loaded, &mut found);
                phone(&here, &loaded, &mut found);
            }
            journal(&here, &mut found);
            daemon(&here, &mut found);
        }
    }
    report(json, &found)
}

fn report(json: bool, found: &Findings) -> Result<u8, CliError> {
    let broken = found.0.iter().filter(|it| it.health == Health::Broken).count();
    if json {
        out::json(&serde_json::json!({ "ok": broken == 0, "findings": found.0 }))?;
    } else {
        let mark = |health| match health {
            Health::Fine => "ok",
            Health::Note => "note",
            Health::Broken => "BROKEN",
        };
        let row = |it: &Found| [mark(it.health).to_owned(), it.what.clone(), it.says.clone()];
        out::text_as_is(&out::table(&found.0.iter().map(row).collect::<Vec<_>>()))?;
        match broken {
            0 => out::line("\nnothing is broken")?,
            _ => out::line(format!("\n{broken} broken"))?,
        }
    }
    Ok(if broken == 0 { DONE } else { FAILED })
}

fn confinement(found: &mut Findings) {
    let host = match wait_for(async { Ok(probe(&Supervisor::default()).await) }) {
        Ok(host) => host,
        Err(error) => return found.add("confinement", Health::Broken, error.text()),
    };
    for finding in &host.findings {
        let health = if finding.works { Health::Fine } else { Health::Note };
        found.add(finding.name, health, &finding.note);
    }
    let tiers: Vec<String> = host.tiers.iter().map(|tier| tier.name().to_owned()).collect();
    match tiers.is_empty() {
        true => found.add(
            "confinement",
            Health::Broken,
            "no worker can be confined here, so none will run; see above",
        ),
        false => {
            found.add("confinement", Health::Fine, format!("workers can run in tier {}", tiers.join(" and ")))
        }
    }
    if host.tiers.contains(&Tier::Job) {
        let open: Vec<&str> = OPEN_IN_JOB.iter().map(|open| open.what).collect();
        let says = format!("runs only where a rule names it, since a worker there can {}", open.join("; "));
        found.add("tier job", Health::Note, says);
    }
    if host.tiers.contains(&Tier::Ll) {
        let open: Vec<&str> = OPEN_IN_LL.iter().map(|open| open.what).collect();
        let says = format!("needs an approval by default, since a worker there can {}", open.join(", "));
        found.add("tier ll", Health::Note, says);
    }
}

fn user(found: &mut Findings) {
    if provost_system::is_superuser() {
        let who = provost_system::SUPERUSER;
        let says = format!("you are {who}, and the daemon does not run as {who}: use an ordinary user");
        found.add("user", Health::Note, says);
    }
}

/// Checks this shell's limits, which a daemon that is started from here gets.
fn limits(found: &mut Findings) {
    if let Err(why) = provost_system::check_headroom() {
        found.add("limits", Health::Broken, why);
    }
}

fn places(here: &RepoContext, found: &mut Findings) {
    found.add("repository", Health::Fine, here.places.root.display());
    here.places.notes.iter().for_each(|note| found.add("places", Health::Note, note));
    // This checks existing folders; `init` and `up` create missing ones.
    if here.places.state.exists() {
        match here.places.create() {
            Ok(()) => found.add("state", Health::Fine, here.places.state.display()),
            Err(err) => found.add("state", Health::Broken, err),
        }
    } else {
        found.add("state", Health::Note, format!("{} is made by `provost up`", here.places.state.display()));
    }
    if here.places.config.exists() {
        match here.places.create_config() {
            Ok(()) => found.add("configuration", Health::Fine, here.places.config.display()),
            Err(err) => found.add("configuration", Health::Broken, err),
        }
    } else {
        found.add("configuration", Health::Note, "not made yet; run `provost config init`");
    }
}

fn environment(here: &RepoContext, found: &mut Findings) {
    if let Some(why) = here.environment.secret.as_ref().and_then(weak_secret) {
        found.add("DEVIT_SECRET", Health::Broken, why);
    }
    if let Some(socket) = &here.environment.socket
        && *socket != here.places.devit_socket()
    {
        let says = format!(
            "clients of this shell go to {}; for this daemon: eval \"$(provost env)\"",
            socket.display()
        );
        found.add("DEVIT_SOCK", Health::Note, says);
    }
}

fn keys(here: &RepoContext, found: &mut Findings) {
    let folder = here.keys_folder();
    if !folder.exists() {
        return found.add("keys", Health::Note, "not made yet; run `provost config init`");
    }
    match KeyRing::open(&folder) {
        Ok(ring) => found.add(
            "keys",
            Health::Fine,
            format!("the shared secret, and {} of their own", ring.list().len()),
        ),
        Err(err) => found.add("keys", Health::Broken, err),
    }
}

/// Checks the hooks of hosts in this work tree. A host that does not trust them runs none, and does not report it.
fn hooks(here: &RepoContext, found: &mut Findings) {
    match super::hooks::standings(here) {
        Ok(all) if all.is_empty() => {
            let says = "none is installed here: provost hook install claude, or codex, cursor";
            found.add("hooks", Health::Fine, says);
        }
        Ok(all) => {
            for (host, is_fine, says) in all {
                let health = if is_fine { Health::Fine } else { Health::Note };
                found.add(format!("hooks of {host}"), health, says);
            }
        }
        Err(err) => found.add("hooks", Health::Note, err.in_short()),
    }
}

fn configuration(here: &RepoContext, found: &mut Findings) -> Option<Loaded> {
    let loaded = match here.config(None) {
        Ok(loaded) => loaded,
        Err(error) => {
            found.add("settings", Health::Broken, error.text());
            return None;
        }
    };
    for note in &loaded.notes {
        let health = if note.severity == Severity::Error { Health::Broken } else { Health::Note };
        found.add("settings", health, note);
    }
    for (name, refused) in &loaded.config.refused_workers {
        found.add(format!("worker {name}"), Health::Broken, format!("{}: {}", refused.file, refused.reason));
    }
    for (name, refused) in &loaded.config.notify_targets.refused {
        let says = format!("{}: {}", refused.file, refused.reason);
        found.add(format!("notices {name}"), Health::Broken, says);
    }
    if loaded.notes.is_empty() {
        found.add("settings", Health::Fine, "no problems found");
    }
    Some(loaded)
}

fn policy(here: &RepoContext, loaded: &Loaded, found: &mut Findings) {
    let source = super::policy::base(here, loaded);
    let rules = source.and_then(|source| {
        Source::load_layers(&source, SYSTEM_POLICY.as_ref())?;
        Ok(source)
    });
    match rules {
        Err(err) => found.add("policy", Health::Broken, err),
        Ok(Source::Builtin(builtin)) => {
            found.add("policy", Health::Fine, format!("the built-in rules `{}`", builtin.name()));
            passkeys(here, builtin.text(), builtin.name(), found);
        }
        Ok(Source::File(path)) => {
            found.add("policy", Health::Fine, path.display());
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let report = check(&text, &path.display().to_string());
            report.warnings.iter().for_each(|warning| found.add("policy", Health::Note, warning));
            passkeys(here, &text, &path.display().to_string(), found);
        }
    }
}

/// Finds rules whose requests cannot be answered, and a list that only root can change.
fn passkeys(here: &RepoContext, rules: &str, name: &str, found: &mut Findings) {
    let answer = wait_for(async { Ok(here.daemon(None).await?.passkeys().await?) });
    if let Some(until) = answer.as_ref().ok().and_then(|all| all.waits_until.as_ref()) {
        // A passkey that is enrolled now would not count until then.
        let says = format!(
            "all passkeys were given up, and what asks for one is answered by none until {until}, if the daemon runs until then; \
             enrol one afterwards: provost passkey add"
        );
        return found.add("passkeys", Health::Note, says);
    }
    if !super::passkeys::any_listed(here) {
        let missing = by_passkey_alone(rules, name);
        return missing.iter().for_each(|warning| found.add("policy", Health::Note, warning));
    }
    let Ok(all) = answer else { return };
    match all.problem {
        Some(problem) => found.add("passkeys", Health::Broken, problem),
        None if all.of_root => found.add("passkeys", Health::Fine, "root's list is in force"),
        None => {
            let says = "any process of yours can change their list, which is noticed and not prevented; for more: sudo provost \
                        passkey install";
            found.add("passkeys", Health::Note, says);
            if all.enrolled {
                let says = "where a rule says passkey-if-enrolled, no terminal and no key of an approver answers; where a rule names \
                            human or a client without that word, they do, and an agent can read a key";
                found.add("passkeys", Health::Note, says);
            }
        }
    }
}

/// Checks the conditions under which other machines' browsers get the page, where a setting offers it to them.
fn phone(here: &RepoContext, loaded: &Loaded, found: &mut Findings) {
    let web = &loaded.config.web;
    if web.public.is_empty() && web.proxy_uids.is_empty() {
        return;
    }
    let about = wait_for(async { here.client().about().await.map_err(CliError::from) }).ok();
    for step in super::web::steps(here, &loaded.config, about.as_ref()) {
        let health = if step.is_done { Health::Fine } else { Health::Note };
        found.add(format!("page elsewhere: {}", step.what), health, step.says);
    }
    if about.is_some_and(|it| !it.public.is_empty()) {
        let socket = web.socket.within(&here.places.runtime);
        let says = format!(
            "whether one serves the socket cannot be seen from here; sudo tailscale serve --bg unix:{}",
            socket.display()
        );
        found.add(
            "page elsewhere: proxy in front",
            Health::Note,
            format!("{says}; provost web setup for others"),
        );
    }
}

fn journal(here: &RepoContext, found: &mut Findings) {
    if !here.places.state.exists() {
        return;
    }
    let database = match database::of(here) {
        Ok(database) => database,
        Err(err) => return found.add("store", Health::Broken, err.text()),
    };
    if let Some(database) = &database {
        in_database(&here.places.state, database, found);
    }
    if let Err(err) = database::look(here, true) {
        return found.add("store", Health::Broken, err.text());
    }
    if !store::is_begun(&here.places.state) {
        return;
    }
    found.add("store", Health::Fine, "it is intact, and its history is complete up to the last mark");
    let state = &here.places.state;
    let read = out::Progress::begin("checking the journal").beside(|| {
        let mut reader = store::open_reader_in(state, database.as_ref())?;
        let verdict = reader.verify(None)?;
        clock(&verdict, reader.as_mut(), found);
        Ok::<_, store::StoreError>(verdict)
    });
    let told = read.map_err(CliError::from).and_then(|it| super::journal::unchanged(here, it));
    match told {
        Ok(journal) => found.add("journal", Health::Fine, format!("{} events, unchanged", journal.events)),
        Err(error) => found.add("journal", Health::Broken, error.text()),
    }
}

/// Checks the guarantees that a database gives for acknowledged writes.
fn in_database(state: &Path, database: &store::Database, found: &mut Findings) {
    let it = match database::ask(|| store::protection(state, database)) {
        Ok(it) => it,
        Err(err) => return found.add("database", Health::Broken, err),
    };
    found.add("database", Health::Fine, format!("PostgreSQL {}, timeline {}", it.version, it.timeline));
    if !it.waits_for_disk {
        let says =
            "fsync is off: acknowledged writes can be lost when the server's machine stops; set fsync = on";
        found.add("database disk", Health::Broken, says);
    }
    match (it.standbys, it.waits_for_standby) {
        (_, true) => found.add("database standby", Health::Fine, "a commit waits for a standby"),
        (0, false) => found.add(
            "database standby",
            Health::Note,
            "there is no standby: data that the server's disk loses is lost",
        ),
        (_, false) => found.add(
            "database standby",
            Health::Note,
            "acknowledged writes can be lost at a failover: set synchronous_standby_names = 'ANY 1 (…)'",
        ),
    }
    if it.owns_tables {
        let says = "the daemon's role owns the tables, and could rewrite events that are past: use one in provost_host \
                    (provost store migrate --print-roles)";
        found.add("database role", Health::Note, says);
    }
}

/// Shows the state of the running daemon's connection to the database, which may differ from this program's.
fn database_of(here: &RepoContext, found: &mut Findings) {
    let health = wait_for(async { here.client().health().await.map_err(CliError::from) });
    let Some(it) = health.ok().and_then(|it| it.database) else { return };
    let server = it.server.as_deref().unwrap_or("a server that is not known yet");
    match (&it.away_since, it.unsure, it.slow_ms) {
        (Some(since), _, _) => {
            let why = it.why.as_deref().unwrap_or("it does not say why");
            found.add(
                "database of the daemon",
                Health::Broken,
                format!("{server} takes nothing since {since}: {why}"),
            );
        }
        (None, true, _) => {
            let says = format!("{server} has not said whether the last writes are stored");
            found.add("database of the daemon", Health::Note, says);
        }
        (None, false, Some(ms)) => {
            let says = format!("a write at {server} takes {ms} ms at present: it, or the way to it, is slow");
            found.add("database of the daemon", Health::Note, says);
        }
        (None, false, None) => {
            found.add("database of the daemon", Health::Fine, format!("{server} takes every write"))
        }
    }
    if let Some(ms) = it.stale_ms {
        let says = format!("what the daemon shows may be {} s old", ms / 1_000);
        found.add("database of the daemon", Health::Note, says);
    }
}

/// Finds a log whose newest event is in the future: the clock was set back.
fn clock(verdict: &store::Verdict, reader: &mut dyn store::Reader, found: &mut Findings) {
    let store::Verdict::Ok { head, .. } = verdict else { return };
    let newest = reader.events_after(EventSeq(head.seq.0.saturating_sub(1)), 1);
    let Some(at) = newest.ok().and_then(|page| page.last().map(|it| it.at)) else { return };
    let ahead_ms = at.since_ms(now());
    if ahead_ms >= CLOCK_JUMP_MS_MIN {
        let says = format!(
            "the newest event is of {at}, {} s ahead of the system's clock, which was set back since; the log's time \
             goes on from there, and leases and limits last as long as they should",
            ahead_ms / 1000
        );
        found.add("clock", Health::Note, says);
    }
}

fn daemon(here: &RepoContext, found: &mut Findings) {
    match wait_for(async { here.client().about().await.map_err(CliError::from) }) {
        Ok(about) => {
            found.add("daemon", Health::Fine, format!("{}, process {}", about.version, about.pid));
            about.notes.iter().for_each(|note| found.add("daemon", Health::Note, note));
            about.broken.iter().for_each(|why| found.add("daemon", Health::Broken, why));
            let broken =
                about.workers.iter().filter_map(|worker| Some((&worker.id, worker.broken.as_ref()?)));
            broken.for_each(|(id, why)| found.add(format!("worker {id}"), Health::Broken, why));
            about.notices.iter().for_each(|it| notices(it, found));
            browsers(here, found);
            database_of(here, found);
        }
        Err(error) if error.is_not_running() => match sockets::of_running(&here.places.state) {
            Some(at) => {
                let says = "has this repository's state and does not answer; end it, then `provost up`";
                found.add("daemon", Health::Broken, format!("process {} {says}", at.pid));
            }
            None => match awaiting::awaiting(&here.places) {
                Some(it) => {
                    let says = "waits for its database, and answers no request yet; `provost down` ends it";
                    found.add("daemon", Health::Note, format!("process {} {says}: {}", it.pid, it.why));
                }
                None => found.add("daemon", Health::Note, "does not run; start it with `provost up`"),
            },
        },
        Err(error) => found.add("daemon", Health::Broken, error.text()),
    }
}

/// Checks the browsers that subscribe to notices, if any do.
fn browsers(here: &RepoContext, found: &mut Findings) {
    let Ok(push) = wait_for(async { here.client().browsers().await.map_err(CliError::from) }) else { return };
    if let Some(problem) = push.problem.as_ref().filter(|_| !push.browsers.is_empty()) {
        found.add("browsers", Health::Broken, problem);
    }
    for it in &push.browsers {
        let failed = it.last.as_ref().is_some_and(|last| !last.delivered);
        let health = if failed { Health::Note } else { Health::Fine };
        let hint = if failed { format!("; try it: provost push test {}", it.id) } else { String::new() };
        found.add(format!("browser {}", it.name), health, format!("{}{hint}", super::push::last(it)));
    }
}

/// Checks an address that gets notices. An error in its entry was reported with the settings.
fn notices(it: &provost_api::wire::NoticeTarget, found: &mut Findings) {
    if it.kind.is_empty() || !it.enabled {
        return;
    }
    let failed = it.last.as_ref().is_some_and(|last| !last.delivered);
    let health = match (&it.broken, failed) {
        (Some(_), _) => Health::Broken,
        (None, true) => Health::Note,
        (None, false) => Health::Fine,
    };
    let hint = match health {
        Health::Fine => String::new(),
        _ => format!("; try it: provost notify test {}", it.name),
    };
    found.add(format!("notices {}", it.name), health, format!("{}{hint}", super::notify::standing(it)));
}
