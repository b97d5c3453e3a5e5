//! Features that the page over all repositories lacks: repositories that want a passkey to sign in first, push services, and an app
//! that a browser keeps.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind, b64, unb64};
use crate::support::hub::{Hub, free_port};
use crate::support::own_api::own;
use crate::support::passkeys::{asks, assertion, code, get, json_at_the_terminal, rules_by, waits};
use crate::support::{World, eventually};

const AS_PAGE: [(&str, &str); 1] = [("x-provost-agent", "web-page")];

fn root(world: &World) -> String {
    world.repo().canonicalize().unwrap().display().to_string()
}

/// A world whose page over all repositories is at this port, with these lines in `[web]`.
fn settings(world: &World, port: u16, more: &str) {
    world.configure(&format!("[web]\nall_port = {port}\n{more}"));
    world.rule(&rules_by("\"passkey\""));
}

/// Reads the stream of the page until this text has come.
fn streamed(hub: &Hub, until: &str) -> String {
    let mut connection = hub.door.connect();
    let asked = hub.door.bytes("GET /event-stream?after=x", &[("Host", "provost.localhost:PORT")], b"");
    connection.write_all(&asked).unwrap();
    let (mut said, mut piece) = (String::new(), [0; 4096]);
    while !said.contains(until) {
        let n = connection.read(&mut piece).unwrap();
        assert_ne!(n, 0, "the stream has ended: {said}");
        said.push_str(&String::from_utf8_lossy(&piece[..n]));
    }
    said
}

#[test]
fn a_repository_that_wants_a_passkey_to_sign_in_is_not_shown_on_it() {
    let (world, port) = (World::new(), free_port());
    settings(&world, port, "");
    let daemon = world.start();
    let hub = Hub::start(&world, port);
    let root = root(&world);
    eventually("it is live", || hub.state(&root) == "live");
    let approval = asks(&world, "the secret plan of this repository");
    let needs = || hub.json("/rows/needs-you").to_string();
    eventually("it is shown while all may read it", || needs().contains("secret plan"));
    let base = hub.base(&world);
    // From its next start on, a passkey has to sign in. What was known of it goes.
    daemon.stop();
    settings(&world, port, "read = \"passkey\"\n");
    let daemon = world.start();
    eventually("it is read elsewhere", || hub.state(&root) == "its own page");
    let said = needs();
    assert!(!said.contains("secret plan"), "{said}");
    assert!(said.contains("it is read at its own page") && said.contains("web open"), "{said}");
    for view in ["needs-you", "approval", "tasks", "task", "audit", "passkeys", "search", "output", "health"]
    {
        let answer = hub.door.look(&format!("{base}/rows/{view}?id={approval}&q=plan"));
        assert_eq!(
            (answer.status, answer.json()["error"].clone()),
            (403, json!("own_page_only")),
            "{view}: {answer:?}"
        );
    }
    for path in ["/word-challenge", "/signed-word", "/begin-passkey", "/hold-passkey", "/vouch-passkey"] {
        let answer = hub.post(&format!("{base}{path}"), &json!({ "approval": approval, "grant": true }));
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
    }
    // The daemon refuses it, whatever the page would show: anything that speaks as it does gets no more than what the daemon is.
    for path in ["/approvals", "/passkeys", "/tasks", "/search?words=plan", "/event-stream", "/events"] {
        let (status, answer) = own(&world, ("GET", path), &AS_PAGE, &json!({}));
        assert_eq!((status, answer["error"].clone()), (403, json!("own_page_only")), "{path}: {answer}");
    }
    assert_eq!(own(&world, ("GET", "/about"), &AS_PAGE, &json!({})).0, 200);
    // The user's own processes have other ways to read.
    assert!(waits(&world, approval));
    // Events of it are not told, and no passkey is enrolled on it.
    let heard = streamed(&hub, "its own page");
    assert!(!heard.contains("event: change"), "{heard}");
    let shown = json_at_the_terminal(&world, "passkey add --even-so --json");
    assert!(!shown["origins"].to_string().contains("/r/"), "{shown}");
    // And back again.
    daemon.stop();
    settings(&world, port, "");
    let _daemon = world.start();
    eventually("it is live again", || hub.state(&root) == "live");
    eventually("it is shown again", || needs().contains("secret plan"));
}

#[test]
fn it_is_no_app_and_has_no_push_services() {
    let (world, port) = (World::new(), free_port());
    settings(&world, port, "");
    let _daemon = world.start();
    let hub = Hub::start(&world, port);
    let base = hub.base(&world);
    eventually("it is live", || hub.state(&root(&world)) == "live");
    for path in ["/manifest.webmanifest", "/service-worker.js", "/offline", "/session"] {
        assert_eq!(hub.door.look(path).status, 404, "{path}");
        assert_eq!(hub.door.look(&format!("{base}{path}")).status, 404, "{base}{path}");
    }
    for path in ["/", &format!("{base}/passkeys")] {
        let text = String::from_utf8(hub.door.look(path).body).unwrap();
        assert!(text.contains("data-over=\"all\"") && !text.contains("manifest"), "{text}");
    }
    for path in ["/begin-push", "/offer-push", "/snooze-push", "/begin-session", "/open-session", "/sign-out"]
    {
        assert_eq!(hub.post(&format!("{base}{path}"), &json!({})).status, 405, "{path}");
    }
    let shown = hub.json(&format!("{base}/rows/passkeys"));
    let blocks: Vec<&Value> = shown["blocks"].as_array().unwrap().iter().map(|it| &it["block"]).collect();
    assert!(blocks.contains(&&json!("enrol")) && !blocks.contains(&&json!("push")), "{blocks:?}");
}

/// Makes a passkey on the page at this origin, for the repository of this world; answers with the challenge that it signs for itself.
fn made(hub: &Hub, world: &World, origin: &str, name: &str) -> (Authenticator, Value) {
    let (mut key, base) = (Authenticator::new(Kind::Es256), hub.base(world));
    key.origin = origin.into();
    let begun = json!({ "code": code(world), "name": name, "origin": origin });
    let options = hub.post(&format!("{base}/begin-passkey"), &begun);
    assert_eq!(options.status, 200, "{options:?}");
    let options = options.json();
    key.rp_id = options["rp_id"].as_str().unwrap().into();
    let (client, object) = key.register(&unb64(options["challenge"].as_str().unwrap()));
    let finished = json!({
        "nonce": options["nonce"], "client_data": b64(&client), "attestation_object": b64(&object),
        "transports": ["internal"],
    });
    let challenge = hub.post(&format!("{base}/finish-passkey"), &finished);
    assert_eq!(challenge.status, 200, "{challenge:?}");
    (key, challenge.json())
}

#[test]
fn a_passkey_of_it_signs_on_it_for_one_of_another_host() {
    let (world, port) = (World::new(), free_port());
    settings(&world, port, "");
    let _daemon = world.start();
    let hub = Hub::start(&world, port);
    let base = hub.base(&world);
    eventually("it is live", || hub.state(&root(&world)) == "live");
    let send = |path: &str, body: &Value| {
        let answer = hub.post(&format!("{base}{path}"), body);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    };
    let at = |host: &str| format!("http://{host}:{port}");
    let (mut first, challenge) = made(&hub, &world, &at("provost.localhost"), "desk");
    let own_word = assertion(&mut first, &challenge);
    send("/confirm-passkey", &json!({ "nonce": challenge["nonce"], "own": own_word }));
    let (mut second, challenge) = made(&hub, &world, &at("localhost"), "other");
    let own_word = assertion(&mut second, &challenge);
    let held = send("/hold-passkey", &json!({ "nonce": challenge["nonce"], "own": own_word }));
    assert_eq!(held["pages"], json!([format!("{}{base}", at("provost.localhost"))]));
    let shown = hub.json(&format!("{base}/rows/passkeys"));
    let vouch = shown["blocks"].as_array().unwrap().iter().find(|it| it["block"] == "vouch").unwrap().clone();
    let challenge = &vouch["waiting"]["challenge"];
    // Another process brings the same signature, and it counts for nothing.
    let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut first, challenge) });
    let (status, said) = own(&world, ("POST", "/vouch-passkey"), &AS_PAGE, &signed);
    assert_eq!(status, 403, "{said}");
    let done = send("/vouch-passkey", &signed);
    assert_eq!(done["name"], "other", "{done}");
    let known = get(&world, "/passkeys")["passkeys"].clone();
    let sources: Vec<&Value> = known.as_array().unwrap().iter().map(|it| &it["source"]).collect();
    assert_eq!(sources, [&json!("code"), &json!("vouched")]);
}
