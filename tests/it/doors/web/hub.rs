//! The page over all repositories, by raw requests and real daemons: who is let in, what each repository gets of it, and that it has no
//! right of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind};
use crate::support::hub::{Hub, free_port};
use crate::support::loopback_client::{Answer, Http};
use crate::support::own_api::own;
use crate::support::passkeys::{answered, asks, assertion, code, get, rules_by, waits};
use crate::support::{Daemon, UP, World, eventually};

const OWN: (&str, &str) = ("Host", "provost.localhost:PORT");
const AS_PAGE: [(&str, &str); 1] = [("x-provost-agent", "web-page")];

/// Two repositories of one user whose own pages are shut, and the page over both.
struct Both {
    one: World,
    other: World,
    _daemons: [Daemon; 2],
    hub: Hub,
}

fn both() -> Both {
    let (one, port) = (World::new(), free_port());
    let other = one.beside();
    one.configure(&format!("[web]\nall_port = {port}\n"));
    one.rule(&rules_by("\"passkey\""));
    let daemons = [one.start(), other.start()];
    let hub = Hub::start(&one, port);
    for world in [&one, &other] {
        let root = root(world);
        eventually("it is live", || hub.state(&root) == "live");
    }
    Both { one, other, _daemons: daemons, hub }
}

fn root(world: &World) -> String {
    world.repo().canonicalize().unwrap().display().to_string()
}

fn origin(hub: &Hub) -> String {
    format!("http://provost.localhost:{}", hub.door.port)
}

/// A passkey that was made at the page over all repositories, for the repository of this world.
fn enrolled(hub: &Hub, world: &World) -> Authenticator {
    let (mut key, base) = (Authenticator::new(Kind::Es256), hub.base(world));
    key.origin = origin(hub);
    let begun = json!({ "code": code(world), "name": "phone", "origin": key.origin });
    let options = hub.post(&format!("{base}/begin-passkey"), &begun);
    assert_eq!(options.status, 200, "{options:?}");
    let options = options.json();
    let b64 = crate::support::authenticator::b64;
    let (client, object) =
        key.register(&crate::support::authenticator::unb64(options["challenge"].as_str().unwrap()));
    let finished = json!({
        "nonce": options["nonce"], "client_data": b64(&client), "attestation_object": b64(&object),
        "transports": ["internal"],
    });
    let challenge = hub.post(&format!("{base}/finish-passkey"), &finished);
    assert_eq!(challenge.status, 200, "{challenge:?}");
    let challenge = challenge.json();
    let own = assertion(&mut key, &challenge);
    let confirmed =
        hub.post(&format!("{base}/confirm-passkey"), &json!({ "nonce": challenge["nonce"], "own": own }));
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    key
}

fn challenge(hub: &Hub, base: &str, body: &Value) -> Value {
    let answer = hub.post(&format!("{base}/word-challenge"), body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn hand_in(hub: &Hub, base: &str, nonce: &Value, assertion: &Value) -> Answer {
    hub.post(&format!("{base}/signed-word"), &json!({ "nonce": nonce, "assertion": assertion }))
}

#[test]
fn what_is_signed_on_it_reaches_the_daemon_it_is_for_and_no_other() {
    let Both { one, other, hub, .. } = &both();
    let mut key = enrolled(hub, one);
    let (here, there) = (hub.base(one), hub.base(other));
    let (first, second) = (asks(one, "true"), asks(other, "false"));
    assert_eq!(first, second, "the numbers are the same, so that one could stand for the other");
    let yes = json!({ "approval": first, "grant": true });
    // What was asked for here is handed in there, with its own nonce and with that of a challenge there.
    let (ours, theirs) = (challenge(hub, &here, &yes), challenge(hub, &there, &yes));
    let signed = assertion(&mut key, &ours);
    assert_eq!(hand_in(hub, &there, &ours["nonce"], &signed).json()["error"], "challenge_gone");
    let swapped = hand_in(hub, &there, &theirs["nonce"], &signed);
    assert_eq!(swapped.status, 403, "{swapped:?}");
    assert!(waits(one, first) && waits(other, second));
    // As it is, it answers one of them.
    let answer = hand_in(hub, &here, &ours["nonce"], &signed);
    assert_eq!((answer.status, answer.json()["approval"].clone()), (200, json!(first)), "{answer:?}");
    let event = answered(one, first).to_string();
    assert!(event.contains("\"proof\":\"passkey\""), "{event}");
    assert!(waits(other, second));
    // The same passkey counts in the other repository, which has heard of it from the list.
    let asked = challenge(hub, &there, &json!({ "approval": second, "grant": false, "note": "no" }));
    let answer = hand_in(hub, &there, &asked["nonce"], &assertion(&mut key, &asked));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!waits(other, second));
}

#[test]
fn a_page_that_swaps_what_was_signed_is_refused_by_the_daemon() {
    let Both { one, hub, .. } = &both();
    let mut key = enrolled(hub, one);
    let base = hub.base(one);
    let (first, second) = (asks(one, "true"), asks(one, "false"));
    let task = get(one, "/approvals")[1]["task"].clone();
    let view = get(one, &format!("/approval?id={first}"))["view_digest"].clone();
    let no = challenge(hub, &base, &json!({ "approval": first, "grant": false, "note": "no", "view": view }));
    let signed = assertion(&mut key, &no);
    for (what, asked) in [
        ("the verdict", json!({ "approval": first, "grant": true, "view": view })),
        ("the note", json!({ "approval": first, "grant": false, "note": "why not", "view": view })),
        ("the approval", json!({ "approval": second, "grant": false, "note": "no" })),
        ("the verb", json!({ "verb": "cancel-task", "arguments": { "task": task } })),
    ] {
        let other = challenge(hub, &base, &asked);
        let answer = hand_in(hub, &base, &other["nonce"], &signed);
        assert_eq!(answer.status, 403, "{what}: {answer:?}");
    }
    // Another text than the one that waits is not signed for.
    let changed = hub
        .post(&format!("{base}/word-challenge"), &json!({ "approval": second, "grant": true, "view": view }));
    assert_eq!((changed.status, changed.json()["error"].clone()), (409, json!("approval_changed")));
    assert!(waits(one, first) && waits(one, second));
    // One of the four verbs, as it was signed.
    let asked = challenge(hub, &base, &json!({ "verb": "cancel-task", "arguments": { "task": task } }));
    let answer = hand_in(hub, &base, &asked["nonce"], &assertion(&mut key, &asked));
    assert_eq!((answer.status, answer.json()["verb"].clone()), (200, json!("cancel-task")), "{answer:?}");
    assert!(waits(one, first) && !waits(one, second));
}

#[test]
fn it_reads_as_a_page_and_what_it_would_do_by_itself_is_refused() {
    let Both { one, hub, .. } = &both();
    let approval = asks(one, "true");
    for (path, body) in [
        ("/answer-approval", json!({ "approval": approval, "grant": true })),
        ("/cancel-task", json!({ "task": get(one, "/approvals")[0]["task"] })),
        ("/delegate", json!({ "goal": "true", "worker": "shell" })),
        ("/unlock", json!({ "symbol": "a.py:f", "force": true, "reason": "x" })),
        ("/passkey-code", json!({ "even_so": true })),
        ("/reset-passkeys", json!({})),
        ("/open-page", json!({})),
        ("/stop", json!({})),
        ("/reload", json!({})),
    ] {
        let (status, answer) = own(one, ("POST", path), &AS_PAGE, &body);
        assert_eq!(status, 403, "{path}: {answer}");
    }
    let (status, seen) = own(one, ("GET", "/approvals"), &AS_PAGE, &json!({}));
    assert_eq!((status, seen[0]["id"].clone()), (200, json!(approval)), "{seen}");
    // Nor does the page take anything but words, or anything at its own paths.
    let base = hub.base(one);
    for path in ["/answer-approval", "/stop", "/", "/rows/needs-you"] {
        for at in [&base, ""] {
            let answer = hub.post(&format!("{at}{path}"), &json!({ "approval": approval, "grant": true }));
            assert_eq!(answer.status, 405, "{at}{path}");
        }
    }
    for path in ["/word-challenge", "/signed-word", "/begin-passkey"] {
        assert_eq!(hub.post(path, &json!({})).status, 405, "{path}");
    }
    assert!(waits(one, approval));
}

#[test]
fn a_signature_that_was_made_at_its_origin_counts_only_while_it_is_the_page_that_brings_it() {
    let Both { one, mut hub, _daemons, .. } = both();
    let mut key = enrolled(&hub, &one);
    let approval = asks(&one, "true");
    let yes = json!({ "approval": approval, "grant": true });
    let bring = |key: &mut Authenticator, headers: &[(&str, &str)]| {
        let (status, asked) = own(&one, ("POST", "/word-challenge"), headers, &yes);
        assert_eq!(status, 200, "{asked}");
        let word = json!({ "nonce": asked["nonce"], "assertion": assertion(key, &asked) });
        own(&one, ("POST", "/signed-word"), headers, &word)
    };
    // Another process of this user, as itself and as a page, while the page is open.
    for headers in [&AS_PAGE[..], &[]] {
        let (status, answer) = bring(&mut key, headers);
        assert_eq!(status, 403, "{answer}");
    }
    // Another origin than the one that the settings name.
    for wrong in
        ["http://provost.localhost:1", "http://evil.localhost:PORT", "https://provost.localhost:PORT"]
    {
        key.origin = wrong.replace("PORT", &hub.door.port.to_string());
        let base = hub.base(&one);
        let asked = challenge(&hub, &base, &yes);
        let answer = hand_in(&hub, &base, &asked["nonce"], &assertion(&mut key, &asked));
        assert_eq!(answer.status, 403, "{wrong}: {answer:?}");
    }
    key.origin = origin(&hub);
    // The page has gone, and this process, which is another program, has its port at both addresses.
    hub.kill();
    let taken: Vec<TcpListener> = ["127.0.0.1", "[::1]"]
        .iter()
        .map(|it| TcpListener::bind(format!("{it}:{}", hub.door.port)).unwrap())
        .collect();
    for headers in [&AS_PAGE[..], &[]] {
        let (status, answer) = bring(&mut key, headers);
        assert_eq!(status, 403, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("refused"), "{answer}");
    }
    drop(taken);
    assert!(waits(&one, approval));
    // Nothing was lost with it.
    let hub = Hub::start(&one, hub.door.port);
    let base = hub.base(&one);
    let asked = challenge(&hub, &base, &yes);
    let answer = hand_in(&hub, &base, &asked["nonce"], &assertion(&mut key, &asked));
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn a_process_behind_it_is_held_to_its_own_limits() {
    let Both { one, hub, .. } = &both();
    let approval = asks(one, "true");
    let (base, yes) = (hub.base(one), json!({ "approval": approval, "grant": true }));
    let path = format!("{base}/word-challenge");
    for n in 0..provost::base::limits::CHALLENGES_PER_MINUTE_MAX {
        assert_eq!(hub.post(&path, &yes).status, 200, "{n}");
    }
    assert_eq!(hub.post(&path, &yes).json()["error"], "too_often");
    let own = origin(hub);
    let other = Command::new("curl")
        .args(["--silent", "--resolve", &format!("provost.localhost:{}:127.0.0.1", hub.door.port)])
        .args([
            "-H",
            &format!("Origin: {own}"),
            "-H",
            "Content-Type: application/json",
            "-d",
            &yes.to_string(),
        ])
        .arg(format!("{own}{path}"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(said.contains("\"transcript\""), "{said}");
}

#[test]
fn its_door_has_the_checks_of_the_page_of_one_repository() {
    let Both { one, hub, .. } = &both();
    asks(one, "the secret plan of this repository");
    let (door, base) = (hub.door, hub.base(one));
    let documents = [
        "/".into(),
        "/repositories".into(),
        format!("{base}/"),
        format!("{base}/a/1"),
        format!("{base}/tasks"),
    ];
    let rows = [
        "/rows/needs-you".into(),
        "/rows/repositories".into(),
        format!("{base}/rows/tasks"),
        "/event-stream".into(),
    ];
    let get = |path: &str, headers: &[(&str, &str)]| door.bare(&format!("GET {path}"), headers, b"");
    for path in documents.iter().chain(&rows) {
        for host in ["evil.example:PORT", "provost.localhost", "a.provost.localhost:PORT", "127.0.0.2:PORT"] {
            assert_eq!(get(path, &[("Host", host)]).status, 403, "{host} {path}");
        }
        let taken =
            [OWN, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty")];
        assert_eq!(get(path, &taken).status, 403, "{path}");
        let shown = [OWN, ("Authorization", "Bearer provost_x")];
        assert_eq!(get(path, &shown).status, 401, "no token is good here: {path}");
    }
    let link = [
        OWN,
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    for path in &documents {
        let answer = get(path, &link);
        assert_eq!(answer.status, 200, "{path}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("secret plan") && !text.contains(&root(one)), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("require-trusted-types-for 'script'") && !policy.contains("unsafe"),
            "{policy}"
        );
        let led_on = get(path, &[("Host", "127.0.0.1:PORT")]);
        assert_eq!(led_on.header("location"), Some(format!("{}{path}", origin(hub)).as_str()));
    }
    for path in &rows {
        assert_eq!(get(path, &link).status, 403, "{path}");
    }
    for origin in [None, Some("null"), Some("http://evil.example"), Some("http://localhost:PORT")] {
        let mut headers = vec![OWN, ("Content-Type", "application/json")];
        headers.extend(origin.map(|it| ("Origin", it)));
        assert_eq!(
            door.bare(&format!("POST {base}/word-challenge"), &headers, b"{}").status,
            403,
            "{origin:?}"
        );
    }
    let page = [OWN, ("Origin", "http://provost.localhost:PORT"), ("Content-Type", "text/plain")];
    assert_eq!(door.bare(&format!("POST {base}/word-challenge"), &page, b"{}").status, 415);
    for path in
        ["/r/", "/r/../", "/r/ABC/", "/r/xyz/", "/r//", "/tasks", "/a/1", "/rows/tasks", "/assets/main.js"]
    {
        assert_eq!(door.look(path).status, 404, "{path}");
    }
    let unknown = door.look("/r/0123456789abcdef/rows/tasks");
    assert_eq!(
        (unknown.status, unknown.json()["error"].clone()),
        (404, json!("no_such_repository")),
        "{unknown:?}"
    );
}

/// Reads the stream until this text has come.
fn streamed(door: Http, headers: &[(&str, &str)], until: &str) -> String {
    let mut connection = door.connect();
    connection.write_all(&door.bytes("GET /event-stream", &[&[OWN], headers].concat(), b"")).unwrap();
    let (mut said, mut piece) = (String::new(), [0; 4096]);
    while !said.contains(until) {
        let n =
            connection.read(&mut piece).unwrap_or_else(|err| panic!("{until} did not come: {err}: {said}"));
        assert_ne!(n, 0, "the stream has ended: {said}");
        said.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    said
}

/// The last number of an event that a text of the stream has.
fn last_id(said: &str) -> String {
    said.lines().filter_map(|it| it.strip_prefix("id: ")).next_back().unwrap().trim().to_owned()
}

#[test]
fn one_stream_has_the_changes_of_all_and_goes_on_where_its_reader_was() {
    let Both { one, other, hub, .. } = &both();
    let (here, there) = (hub.base(one), hub.base(other));
    let (here, there) = (&here["/r/".len()..], &there["/r/".len()..]);
    let standing = |id: &str| format!("\"repository\":\"{id}\"");
    let hello = streamed(hub.door, &[], "\"state\"");
    assert!(hello.contains("event: hello") && !hello.contains("event: gap"), "{hello}");
    let before = last_id(&hello);
    asks(one, "the secret plan of this repository");
    asks(other, "another one");
    // Behind the cursor each event of both comes once, and nothing of what it says.
    let said = streamed(hub.door, &[("Last-Event-ID", &before)], "approval_asked");
    let cursor = last_id(&said);
    let rest = streamed(hub.door, &[("Last-Event-ID", &before)], &standing(there));
    assert!(said.contains(&standing(here)) && !said.contains("secret plan"), "{said}");
    assert!(!said.contains("event: gap") && !rest.contains("event: gap"), "{said}{rest}");
    assert!(cursor.contains(here) && cursor.contains(there), "{cursor}");
    eventually("all of it", || {
        let said = streamed(hub.door, &[("Last-Event-ID", &before)], "approval_asked");
        said.matches("event: change").count() > 0
    });
    // Nothing is said twice to a reader that has seen it.
    let id = |text: &str, id: &str| -> u64 {
        let found = text.split('~').find_map(|it| it.strip_prefix(id)?.strip_prefix('.')).unwrap();
        found.parse().unwrap()
    };
    assert!(id(&cursor, here) >= id(&before, here), "{before} {cursor}");
    // A cursor of another journal, or none: what it is about is asked for again.
    for odd in
        ["x", "", "~~~", &format!("{here}.99999999"), &format!("{here}.-1~{there}.x"), &format!("{here}.0")]
    {
        let said = streamed(hub.door, &[("Last-Event-ID", odd)], "event: gap");
        assert!(said.contains("event: hello"), "{odd}: {said}");
    }
}

/// How long a look takes, in milliseconds, and what it brings.
fn timed(hub: &Hub, path: &str) -> (Duration, Answer) {
    let began = Instant::now();
    let answer = hub.door.look(path);
    (began.elapsed(), answer)
}

#[test]
fn a_daemon_that_stops_hangs_or_comes_takes_no_other_ones_time_or_place() {
    let (one, port) = (World::new(), free_port());
    let other = one.beside();
    one.configure(&format!("[web]\nall_port = {port}\n"));
    one.rule(&rules_by("\"passkey\""));
    let (_first, mut second) = (one.start(), other.start());
    let hub = Hub::start(&one, port);
    let (here, there) = (root(&one), root(&other));
    eventually("both", || hub.state(&here) == "live" && hub.state(&there) == "live");
    asks(&one, "ours");
    asks(&other, "theirs");
    let needs = || hub.json("/rows/needs-you");
    eventually("both requests", || needs()["needs"] == 2);
    // It hangs: the other one is shown, and nothing waits for it twice.
    let pid = Pid::from_raw(second.pid() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    eventually("it is known to hang", || {
        let _asked = needs();
        hub.state(&there) == "stale"
    });
    let (took, shown) = timed(&hub, "/rows/needs-you");
    assert!(took < Duration::from_millis(900), "{took:?}");
    let text = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(text.contains("ours") && text.contains("theirs") && text.contains("does not answer"), "{text}");
    let (took, refused) = timed(&hub, &format!("{}/rows/tasks", hub.base(&other)));
    assert_eq!((refused.status, refused.json()["error"].clone()), (503, json!("stale")), "{refused:?}");
    assert!(took < Duration::from_millis(900), "{took:?}");
    assert_eq!(hub.door.look(&format!("{}/rows/tasks", hub.base(&one))).status, 200);
    kill_process(pid, Signal::CONT).unwrap();
    eventually("it answers again", || hub.state(&there) == "live");
    // It is killed, and started again.
    second.kill();
    eventually("it is stopped", || hub.state(&there) == "stopped");
    let refused = hub.door.look(&format!("{}/rows/tasks", hub.base(&other)));
    assert!(refused.json()["hint"].as_str().unwrap().ends_with(" up"), "{refused:?}");
    assert_eq!(hub.state(&here), "live");
    let _second = other.start();
    eventually("it is back", || hub.state(&there) == "live");
    // One that is new.
    let third = one.beside();
    let _third = third.start();
    eventually("the third", || hub.state(&root(&third)) == "live");
}

#[test]
fn a_daemon_of_another_version_and_entries_that_none_has_written_take_no_place() {
    let (one, port) = (World::new(), free_port());
    one.configure(&format!("[web]\nall_port = {port}\n"));
    one.rule(&rules_by("\"passkey\""));
    let old = one.path("old");
    assert!(Command::new("git").args(["init", "-q"]).arg(&old).status().unwrap().success());
    let folder = one.home().join(".local/state/provost/daemons");
    let entry = {
        let mut command = one.command(UP);
        command.current_dir(&old);
        let daemon = one.start_as(command);
        let file = crate::support::waits::until_some("its entry", || {
            std::fs::read_dir(&folder)
                .ok()?
                .flatten()
                .map(|it| it.path())
                .find(|it| it.extension().is_some_and(|it| it == "json"))
        });
        let text: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        daemon.stop();
        (file, text)
    };
    // As if a daemon of a later version ran there: this process listens at its address.
    let (file, mut text) = entry;
    text["pid"] = json!(std::process::id());
    text["began"] = Value::Null;
    let listener = UnixListener::bind(text["own"].as_str().unwrap()).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _asked = stream.read(&mut [0; 4096]);
            let _told =
                stream.write_all(b"HTTP/1.1 200 OK\r\nx-provost-api: 99\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    std::fs::write(&file, text.to_string()).unwrap();
    std::fs::write(folder.join("cccccccccccccccc.json"), "no entry").unwrap();
    std::fs::write(folder.join("dddddddddddddddd.json"), "x".repeat(20_000)).unwrap();
    let _daemon = one.start();
    let hub = Hub::start(&one, port);
    eventually("ours", || hub.state(&root(&one)) == "live");
    let old = old.canonicalize().unwrap().display().to_string();
    eventually("the other version", || hub.state(&old) == "stale");
    let refused = hub.door.look(&format!("{}/rows/tasks", hub.base_of(&old)));
    assert!(refused.json()["message"].as_str().unwrap().contains("version 99"), "{refused:?}");
    assert_eq!(hub.json("/rows/repositories")["blocks"][0]["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn names_that_hide_something_or_look_alike_are_told_apart() {
    let (one, port) = (World::new(), free_port());
    let other = one.beside();
    one.configure(&format!("[web]\nall_port = {port}\n"));
    one.rule(&rules_by("\"passkey\""));
    let odd = one.path("<img src=x onerror=alert(1)>\u{202e}oper");
    assert!(Command::new("git").args(["init", "-q"]).arg(&odd).status().unwrap().success());
    let _daemons = [one.start(), other.start()];
    let mut command = one.command(UP);
    command.current_dir(&odd).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut third = command.spawn().unwrap();
    let hub = Hub::start(&one, port);
    let names = || -> Vec<String> {
        let rows = hub.json("/rows/repositories")["blocks"][0]["rows"].as_array().unwrap().clone();
        rows.iter().map(|it| it["cells"][1]["text"].as_str().unwrap().to_owned()).collect()
    };
    eventually("all three", || names().len() == 3);
    let names = names();
    // Both are called `repo`: the folder tells them apart.
    assert!(names.contains(&root(&one)) && names.contains(&root(&other)), "{names:?}");
    assert!(
        names.iter().any(|it| it.contains("\\u{202e}")) && names.iter().all(|it| !it.contains('\u{202e}')),
        "{names:?}"
    );
    third.kill().unwrap();
    third.wait().unwrap();
}

#[test]
fn a_port_that_a_daemon_has_for_its_own_page_is_named_with_what_to_do() {
    let (one, port) = (World::new(), free_port());
    one.configure(&format!("[web]\nenabled = true\nport = {port}\nall_port = {port}\n"));
    let daemon = one.start();
    for args in [&["web", "--all"][..], &["web", "--all", "--foreground"]] {
        let output = one.command(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(
            said.contains(&format!("port {port} is taken by the daemon of")) && said.contains("its own page"),
            "{said}"
        );
        assert!(said.contains("all_port"), "{said}");
    }
    daemon.stop();
    let squatter = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let output = one.command(&["web", "--all"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("process {}", std::process::id())) && said.contains("all_port"), "{said}");
    drop(squatter);
}

#[test]
fn the_command_opens_it_once_and_closes_it() {
    let (one, port) = (World::new(), free_port());
    one.configure(&format!("[web]\nall_port = {port}\n"));
    let _daemon = one.start();
    let said = |args: &[&str]| {
        let output = one.command(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let closed = one.command(&["web", "close"]).output().unwrap();
    assert_eq!(closed.status.code(), Some(3), "{closed:?}");
    let address = format!("http://provost.localhost:{port}/");
    assert_eq!(said(&["web", "--all"]), address);
    let door = Http { port };
    assert_eq!(door.look("/rows/repositories").status, 200);
    let again: Value = serde_json::from_str(&said(&["web", "open", "--all", "--json"])).unwrap();
    assert_eq!(again["address"], address);
    let second = one.command(&["web", "--all", "--foreground"]).output().unwrap();
    assert!(String::from_utf8_lossy(&second.stderr).contains("shows all repositories already"), "{second:?}");
    // A code for a passkey leads to it, while it is open.
    let shown = crate::support::passkeys::json_at_the_terminal(&one, "passkey add --even-so --json");
    let page = format!("http://provost.localhost:{port}/r/");
    assert!(shown["origins"].to_string().contains(&page), "{shown}");
    // It needs no folder of a repository, and ends by its command.
    let record = one.home().join(".local/state/provost/web-all.json");
    let pid =
        serde_json::from_slice::<Value>(&std::fs::read(&record).unwrap()).unwrap()["pid"].as_u64().unwrap();
    assert_eq!(said(&["web", "close"]), "closed");
    assert!(!std::path::Path::new(&format!("/proc/{pid}/exe")).exists() && !record.exists());
    // Of one that was killed nothing is left in the way.
    said(&["web", "--all"]);
    let pid =
        serde_json::from_slice::<Value>(&std::fs::read(&record).unwrap()).unwrap()["pid"].as_u64().unwrap();
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    eventually("its end", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(said(&["web", "--all"]), address);
    assert_eq!(said(&["web", "close"]), "closed");
}
