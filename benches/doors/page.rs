//! What a person waits for at the page, over a store of 10,000 tasks and 1,000,000 events with 256 approvals waiting. The floor
//! of each row is the same over a store with next to nothing in it, so that a ratio of 1 means that it does not grow.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use provost::api::wire;
use provost::base::{AgentId, Digest};
use provost::client::Client;
use provost::passkey::{
    AnswerWord, Assertion, Party, PublicKey, StoredCredential, Transcript, Word, asserted,
};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use sha2::Digest as _;

use crate::browser::Browser;
use crate::http::{Line, Server, of_the_page};
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World, fresh};
use provost_test_equipment::full_store::{COMMON, RARE, Size, fill, holder};

const ROUNDS: usize = 20;
const PAINTS: usize = 9;
const ASKED: usize = 100;
const CHECKS: usize = 500;
const DECISIONS: usize = 50;
const LOG_BYTES: usize = 50_000_000;
const DIFF_LINES: usize = 20_000;

/// What is there before the first question: one of each was made by a daemon itself.
const FULL: Size = Size { tasks: 9_700, approvals: 254, events: 1_000_000, agents: 200, locks: 10_000 };
const EMPTY: Size = Size { tasks: 0, approvals: 0, events: 0, agents: 0, locks: 0 };

const SETTINGS: &str = "[web]\nenabled = true\n[limits]\ntasks_per_agent = 10000\n[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n";

const RULE: &str = "\n[[rule]]\nid = \"bench.ask\"\ndecision = \"approve\"\nreason = \"a person looks at it\"\n\
                    when.action = [\"delegate\"]\nwhen.client = [\"asker:*\"]\napprove.by = [\"human\"]\napprove.expires = \"2h\"\n";

/// How long anything here may take that is waited for and not measured.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// A daemon with its page.
struct Side {
    world: World,
    daemon: Daemon,
    server: Server,
}

impl Side {
    fn begun(size: Size) -> Result<Self> {
        let world = World::new()?;
        world.configure(SETTINGS)?;
        world.rule(RULE)?;
        let (daemon, _) = world.start()?;
        delegate(&daemon, "bench:0", "absent", "look at the parser and its vectors")?;
        delegate(&daemon, "asker:0", "shell", "true")?;
        daemon.stop()?;
        fill(&world.state_dir()?, size, chrono::Utc::now().timestamp_millis())
            .map_err(|why| anyhow::anyhow!("{why}"))?;
        let (daemon, _) = world.start()?;
        let server = Server::new(daemon.port("web")?, daemon.pid());
        Ok(Self { world, daemon, server })
    }

    fn address(&self, path: &str) -> String {
        format!("http://provost.localhost:{}{path}", self.server.at.port())
    }

    fn client(&self) -> Result<Client> {
        Ok(Client::at(self.daemon.socket.parent().context("the socket is in a folder")?.join("own.sock")))
    }
}

/// Delegates, and says how long the answer took.
fn delegate(daemon: &Daemon, from: &str, to: &str, goal: &str) -> Result<(String, Duration)> {
    let id = fresh("3f2a9c1e-7b64-4d0a-9e21");
    let task = serde_json::json!({ "action": "devit_delegate", "goal": goal, "timeout": 600 });
    let payload = serde_json::json!({ "return_to": from, "task": task }).to_string();
    let frame = daemon.frame_named("DELEGATE", &id, from, to, &payload);
    let mut line = UnixStream::connect(&daemon.socket)?;
    let begun = Instant::now();
    line.write_all(&frame)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(b"\n") {
        let read = line.read(&mut buffer)?;
        ensure!(read > 0, "the daemon hung up");
        answer.extend_from_slice(&buffer[..read]);
    }
    let took = begun.elapsed();
    let text = String::from_utf8_lossy(&answer);
    ensure!(text.contains("\"ACK\""), "{text}");
    Ok((id, took))
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let begun = Instant::now();
    let (full, empty) = (Side::begun(FULL)?, Side::begun(EMPTY)?);
    table.note(&format!(
        "{} tasks, {} events and {} approvals were written in {:.1} s, the starts of both daemons included.\n",
        FULL.tasks + FULL.approvals,
        FULL.events,
        FULL.approvals + 1,
        begun.elapsed().as_secs_f64()
    ))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        index(table, &full).await?;
        table.ratios(ROUNDS)?;
        answers(table, &full, &empty).await?;
        whole_journal(table, &full).await?;
        other_rules(table, &full, &empty).await?;
        signatures(table)?;
        match Browser::start(&full.world.path("browser")).await? {
            Some(mut browser) => in_a_browser(table, &mut browser, &full, &empty).await,
            None => table.note("\nWithout Chromium nothing of the page itself is measured."),
        }
    })?;
    full.daemon.stop()?;
    empty.daemon.stop()
}

/// Waits until all events can be searched.
async fn index(table: &mut Table, full: &Side) -> Result<()> {
    let (client, begun) = (full.client()?, Instant::now());
    let asked = wire::SearchQuery { words: RARE.into(), ..wire::SearchQuery::default() };
    while client.search(&asked).await?.not_yet > 0 {
        ensure!(begun.elapsed() < WAIT_MAX, "the index is not made");
    }
    let took = begun.elapsed().as_secs_f64();
    table.note(&format!("The index of the words of all events was made behind the start in {took:.1} s.\n"))
}

/// Answers of the page's door and of the own API, by turns with those of a daemon with next to nothing.
async fn answers(table: &mut Table, full: &Side, empty: &Side) -> Result<()> {
    let rare = format!("/rows/search?q={RARE}");
    let common = format!("/rows/search?q={COMMON}");
    let one = format!("/rows/agents?q={}", holder(7));
    let at = format!("/rows/events?at={}", chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ"));
    for (what, path) in [
        ("first page of the tasks", "/rows/tasks"),
        ("tasks that pass a filter", "/rows/tasks?q=state:queued%20vectors"),
        ("first page of the events", "/rows/events"),
        ("a page of events in the middle", "/rows/events?before=500000"),
        ("search of a word that one of 10,000 events has", &rare),
        ("search of a word that each event has", &common),
        ("search of a word that none has", "/rows/search?q=albatross"),
        ("what needs a person", "/rows/needs-you"),
        ("health", "/rows/health"),
        ("agents, 200", "/rows/agents"),
        ("one of the agents", &one),
        ("locks, 10,000", "/rows/locks"),
        ("locks of one file of those", "/rows/locks?q=src/room3/file100.py"),
        ("who is in the way of a change", "/rows/locks?q=way:src/room3/file100.py:f7"),
        ("waits", "/rows/waits"),
        ("a time in a million events", &at),
        ("one event, whole", "/rows/event?id=2"),
    ] {
        let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
        let (mut to, mut to_floor) = (Line::to(full.server).await?, Line::to(empty.server).await?);
        for round in 0..=ROUNDS {
            for (side, line, rounds) in [(full, &mut to, &mut ours), (empty, &mut to_floor, &mut floor)] {
                let request = of_the_page(side.server.at.port(), path);
                let begun = Instant::now();
                line.ask(&request).await?;
                if round > 0 {
                    rounds.push(begun.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        table.ratio(what, Unit::Milliseconds, &ours, &floor)?;
    }
    Ok(())
}

/// A check of the whole journal, as the page asks for it, beside a page that is asked for meanwhile.
async fn whole_journal(table: &mut Table, full: &Side) -> Result<()> {
    let (client, begun) = (full.client()?, Instant::now());
    let mut told = client.journal_check(&wire::JournalCheckQuery::default()).await?;
    let mut meanwhile = Rounds::default();
    let mut line = Line::to(full.server).await?;
    while told.found.is_none() {
        let request = of_the_page(full.server.at.port(), "/rows/tasks");
        let asked = Instant::now();
        line.ask(&request).await?;
        meanwhile.push(asked.elapsed().as_secs_f64() * 1e3);
        let query = wire::JournalCheckQuery { check: Some(told.check), wait_ms: Some(50) };
        told = client.journal_check(&query).await?;
        ensure!(begun.elapsed() < WAIT_MAX, "the check does not end");
    }
    let (took, found) = (begun.elapsed().as_secs_f64(), told.found.context("the check has ended")?);
    ensure!(found.ok, "{}", found.says);
    table.note(&format!(
        "\nThe whole journal of {} events was checked in {took:.1} s; the first page of the tasks took {:.2} ms meanwhile (median).\n",
        found.events,
        meanwhile.median()
    ))
}

/// What other rules would have decided of the newest decisions, which lie behind a million events; the floor has next to none behind few.
async fn other_rules(table: &mut Table, full: &Side, empty: &Side) -> Result<()> {
    let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
    let (to, to_floor) = (full.client()?, empty.client()?);
    for (daemon, client) in [(&full.daemon, &to), (&empty.daemon, &to_floor)] {
        let asker = client.clone().speaking_as(Some(AgentId::parse("asker:0")?));
        for _ in 0..DECISIONS {
            // No more than 256 wait at once: each is taken back.
            let (task, _) = delegate(daemon, "asker:0", "shell", "true")?;
            asker.cancel(&wire::Cancel { task, reason: None }).await?;
        }
    }
    let asked = wire::ReplayRules { builtin: Some("strict".into()), ..wire::ReplayRules::default() };
    let mut told = wire::RulesReplayed::default();
    for round in 0..=ROUNDS {
        for (client, rounds) in [(&to, &mut ours), (&to_floor, &mut floor)] {
            let begun = Instant::now();
            let found = client.replay_rules(&asked).await?;
            if round > 0 {
                rounds.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            told = if told.to < found.to { found } else { told };
        }
    }
    ensure!(told.asked as usize >= DECISIONS, "{} decisions were found", told.asked);
    table.ratio("other rules, asked about what was decided", Unit::Milliseconds, &ours, &floor)?;
    table.note(&format!(
        "{} decisions were found among the events {} to {}{}.\n",
        told.asked,
        told.from,
        told.to,
        if told.late { ", as far as the time went" } else { "" }
    ))
}

/// The checks of a signed answer, against the signature's alone.
fn signatures(table: &mut Table) -> Result<()> {
    let random = SystemRandom::new();
    let broken = |_| anyhow::anyhow!("no key can be made");
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).map_err(broken)?;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), &random);
    let pair = pair.map_err(|_| anyhow::anyhow!("the key cannot be read"))?;
    let point = pair.public_key().as_ref();
    let key = PublicKey::Es256 { x: point[1..33].try_into()?, y: point[33..].try_into()? };
    let (rp_id, origin) = ("provost.localhost".to_owned(), "http://provost.localhost:4720".to_owned());
    let word = AnswerWord {
        approval: 7,
        shown: Digest::of(b"shown"),
        view: Digest::of(b"view"),
        expires: "2026-07-01T10:00:00.000Z".into(),
        grant: true,
        note: "as we have said".into(),
        scope: "once".into(),
    };
    let transcript = Transcript::new("0123456789abcdef", [7; 32], Word::Answer(word));
    let challenge = transcript.digest();
    let client_data = serde_json::json!({
        "type": "webauthn.get", "challenge": provost::passkey::text_of(challenge.as_bytes()), "origin": origin,
        "crossOrigin": false,
    });
    let client_data = client_data.to_string().into_bytes();
    let data = [&sha2::Sha256::digest(rp_id.as_bytes())[..], &[5], &9_u32.to_be_bytes()].concat();
    let message = [&data[..], &sha2::Sha256::digest(&client_data)].concat();
    let signature = pair.sign(&random, &message).map_err(broken)?;
    let it =
        Assertion { authenticator_data: &data, client_data: &client_data, signature: signature.as_ref() };
    let party = Party { rp_id, origins: vec![origin] };
    let known = StoredCredential { key: &key, backup_eligible: false, counter: 8 };
    let bare = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point);
    let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
    for _ in 0..CHECKS {
        let begun = Instant::now();
        let read = Transcript::read(transcript.as_str()).map_err(|why| anyhow::anyhow!("{why}"))?;
        asserted(&party, read.digest().as_bytes(), &known, &it).map_err(|why| anyhow::anyhow!("{why}"))?;
        ours.push(begun.elapsed().as_secs_f64() * 1e6);
        let begun = Instant::now();
        bare.verify(&message, signature.as_ref()).map_err(broken)?;
        floor.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    table.ratios(CHECKS)?;
    table.ratio("a signed answer checked, to its signature alone", Unit::Microseconds, &ours, &floor)
}

/// Says when rows are there and drawn, in milliseconds since the address was gone to.
const PAINTED: &str = "globalThis.painted = new Promise((done) => { const look = () => (document.querySelector('#blocks tr[data-key], #blocks .empty:not([hidden])') \
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)) : requestAnimationFrame(look)); \
    requestAnimationFrame(look); }); globalThis.longest = 0; { let last = performance.now(); const tick = () => { \
    const now = performance.now(); globalThis.longest = Math.max(globalThis.longest, now - last); last = now; \
    requestAnimationFrame(tick); }; requestAnimationFrame(tick); }";

async fn in_a_browser(table: &mut Table, browser: &mut Browser, full: &Side, empty: &Side) -> Result<()> {
    browser.before(PAINTED).await?;
    table.note("")?;
    table.ratios(PAINTS)?;
    for (what, path) in [
        ("first paint of the tasks", "/tasks"),
        ("first paint of what needs a person", "/"),
        ("first paint of the locks", "/locks"),
        ("first paint of the agents", "/agents"),
    ] {
        let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
        for round in 0..=PAINTS {
            for (side, rounds) in [(full, &mut ours), (empty, &mut floor)] {
                browser.go(&side.address(path)).await?;
                let took = browser.eval("globalThis.painted").await?.as_f64().context("a time")?;
                if round > 0 {
                    rounds.push(took);
                }
            }
        }
        table.ratio(what, Unit::Milliseconds, &ours, &floor)?;
    }
    approvals(table, browser, full).await?;
    log(table, browser, full).await?;
    difference(table, browser, full).await
}

/// Waits for the row of an approval that is not there yet, drawn.
const NEW_ROW: &str = "new Promise((done) => { const rows = () => [...document.querySelectorAll('tr[data-key^=\"approval:\"]')]; \
    const before = new Set(rows().map((it) => it.dataset.key)); \
    const look = () => (rows().some((it) => !before.has(it.dataset.key)) ? requestAnimationFrame(() => setTimeout(() => done(true), 0)) \
    : requestAnimationFrame(look)); look(); })";

/// From the first byte of a question to its row on the page, drawn; the floor is the door's own answer.
async fn approvals(table: &mut Table, browser: &mut Browser, full: &Side) -> Result<()> {
    browser.go(&full.address("/")).await?;
    browser.eval("globalThis.painted").await?;
    let asker = full.client()?.speaking_as(Some(AgentId::parse("asker:0")?));
    let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
    for n in 0..ASKED {
        // Questions do not come at the pace of the page.
        tokio::time::sleep(Duration::from_millis((n as u64 * 137) % 400)).await;
        let there = browser.begin(NEW_ROW).await?;
        let begun = Instant::now();
        let (task, answered) = delegate(&full.daemon, "asker:0", "shell", "true")?;
        browser.value(there).await?;
        ours.push(begun.elapsed().as_secs_f64() * 1e3);
        floor.push(answered.as_secs_f64() * 1e3);
        // No more than 256 wait at once, and 64 of one agent.
        asker.cancel(&wire::Cancel { task, reason: None }).await?;
    }
    let behind = Rounds(ours.0.iter().zip(&floor.0).map(|(page, door)| page - door).collect());
    let of = |it: &Rounds, part: usize| {
        let mut sorted = it.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() * part / 100).or(sorted.last()).copied().unwrap_or(f64::NAN)
    };
    table.note(&format!(
        "\n| from a question to | median | 90 of 100 | p99 | worst |\n|---|---|---|---|---|\n\
         | its row on the page, drawn, among {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms |\n\
         | the answer of its own door | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms |\n\
         | from that answer to the row | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms |\n",
        FULL.approvals + 2,
        of(&ours, 50),
        of(&ours, 90),
        of(&ours, 98),
        of(&ours, 100),
        of(&floor, 50),
        of(&floor, 90),
        of(&floor, 98),
        of(&floor, 100),
        of(&behind, 50),
        of(&behind, 90),
        of(&behind, 98),
        of(&behind, 100),
    ))
}

/// A log that is followed from its beginning to its end.
async fn log(table: &mut Table, browser: &mut Browser, full: &Side) -> Result<()> {
    let goal = format!(
        "yes 'a line of the log, as long as such lines are: 0123456789 0123456789' | head -c {LOG_BYTES}; echo; echo the-end"
    );
    let (id, _) = delegate(&full.daemon, "bench:0", "shell", &goal)?;
    let begun = Instant::now();
    browser.go(&full.address(&format!("/t/{id}"))).await?;
    let there = "document.querySelector('pre.log')?.textContent.includes('the-end') ?? false";
    while browser.eval(there).await? != true {
        ensure!(begun.elapsed() < WAIT_MAX, "the end of the log does not come");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = begun.elapsed().as_secs_f64();
    let said = browser
        .eval("[document.querySelectorAll('pre.log .line').length, performance.memory.usedJSHeapSize / 1048576, globalThis.longest]")
        .await?;
    let number = |at: usize| said[at].as_f64().unwrap_or(f64::NAN);
    table.note(&format!(
        "A log of {} MB was written and followed to its end in {took:.1} s: {} lines are in the document, {:.1} MiB in the \
         heap of its scripts, and the longest time between two frames was {:.0} ms.\n",
        LOG_BYTES / 1_000_000,
        number(0),
        number(1),
        number(2)
    ))
}

/// A difference of many lines, from its address to its file and from a press to its lines.
async fn difference(table: &mut Table, browser: &mut Browser, full: &Side) -> Result<()> {
    let goal = format!("seq 1 {DIFF_LINES} | sed 's/.*/let x& = go(\"&\", & + 1); \\/\\/ &/' > large.js");
    let (id, _) = delegate(&full.daemon, "bench:0", "coder", &goal)?;
    let (client, begun) = (full.client()?, Instant::now());
    loop {
        let asked = wire::TaskQuery { id: id.clone(), wait_ms: Some(1_000), ..wire::TaskQuery::default() };
        let task = client.task(&asked).await?;
        if ["completed", "failed"].contains(&task.state.as_str()) {
            ensure!(task.state == "completed", "{task:?}");
            break;
        }
        ensure!(begun.elapsed() < WAIT_MAX, "it does not end");
    }
    browser.go(&full.address(&format!("/t/{id}"))).await?;
    let closed = browser
        .eval(
            "new Promise((done) => { const look = () => (document.querySelector('details.file') \
             ? requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)) : requestAnimationFrame(look)); look(); })",
        )
        .await?;
    let opened = browser
        .eval(
            "new Promise((done) => { const from = performance.now(); document.querySelector('details.file summary').click(); \
             const look = () => (document.querySelector('pre.diff .line') ? requestAnimationFrame(() => setTimeout(() => \
             done([performance.now() - from, document.querySelectorAll('pre.diff .line').length, \
             document.querySelectorAll('pre.diff .line [class]').length]), 0)) : requestAnimationFrame(look)); look(); })",
        )
        .await?;
    table.note(&format!(
        "A difference of {DIFF_LINES} lines was there, closed, {:.0} ms after its address was gone to, and drawn {:.0} ms after a press: \
         {} lines with {} coloured parts.",
        closed.as_f64().unwrap_or(f64::NAN),
        opened[0].as_f64().unwrap_or(f64::NAN),
        opened[1],
        opened[2],
    ))
}
