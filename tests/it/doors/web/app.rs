//! The page as an app, in a real browser: its manifest, its worker, what that keeps, and what comes by a push service.

use serde_json::{Value, json};

use super::{OPEN, ask, at, examine, open_world};
use crate::support::browser::{Browser, Tab};
use crate::support::loopback_client::Http;
use crate::support::passkeys::{code, get};
use crate::support::push_browser::PushBrowser;
use crate::support::receiver::{Receiver, status};
use crate::support::rules::ASK;
use crate::support::waits::until_some;
use crate::support::{World, eventually};

const OWN: (&str, &str) = ("Host", "provost.localhost:PORT");

/// A tab whose worker is at work.
fn with_worker(browser: &Browser, door: Http) -> Tab<'_> {
    let tab = browser.open(&at(door, "/"));
    tab.shows("live");
    tab.until("the worker", "navigator.serviceWorker.controller !== null");
    tab
}

/// Width and height, as a picture says them.
fn size(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    (number(16), number(20))
}

#[test]
fn the_manifest_makes_an_app_of_the_page_and_names_pictures_that_are_there() {
    let (_world, _daemon, door) = open_world();
    let answer = door.bare("GET /manifest.webmanifest", &[OWN], b"");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/manifest+json")));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    let manifest = answer.json();
    assert_eq!((&manifest["id"], &manifest["scope"]), (&json!("/"), &json!("/")));
    assert_eq!((&manifest["start_url"], &manifest["display"]), (&json!("/?from=app"), &json!("standalone")));
    assert_eq!(manifest["shortcuts"][0]["name"], "Needs you");
    let icons = manifest["icons"].as_array().unwrap();
    assert_eq!(icons.len(), 4);
    for icon in icons {
        let picture = door.bare(&format!("GET {}", icon["src"].as_str().unwrap()), &[OWN], b"");
        assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")));
        let (width, height) = size(&picture.body);
        assert_eq!(icon["sizes"], format!("{width}x{height}"));
    }
    for (purpose, count) in [("any", 2), ("maskable", 2)] {
        assert_eq!(icons.iter().filter(|it| it["purpose"] == purpose).count(), count);
    }
    let browser = Browser::start();
    let tab = with_worker(&browser, door);
    let read = tab.ask("Page.getAppManifest", &json!({}));
    assert_eq!(read["errors"], json!([]), "{read}");
    let wrong = tab.ask("Page.getInstallabilityErrors", &json!({}));
    assert_eq!(wrong["installabilityErrors"], json!([]), "{wrong}");
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn the_pictures_are_those_that_the_script_draws() {
    let root = crate::support::source::project_root();
    let drawn =
        std::process::Command::new("python3").arg(root.join("scripts/icons")).arg("check").output().unwrap();
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
}

/// The paths that the worker has kept.
fn kept(tab: &Tab<'_>) -> Vec<String> {
    let all = tab.eval(
        "caches.keys().then((names) => Promise.all(names.map(async (name) => \
         (await (await caches.open(name)).keys()).map((it) => new URL(it.url).pathname))))",
    );
    all.as_array()
        .unwrap()
        .iter()
        .flat_map(|it| it.as_array().unwrap())
        .map(|it| it.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_worker_keeps_files_alone_and_without_the_daemon_nothing_is_shown() {
    let (world, mut daemon, door) = open_world();
    ask(&world, &daemon, "the secret plan of this repository");
    let answer = door.bare("GET /service-worker.js", &[OWN], b"");
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-cache")));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("worker-src 'self'") && policy.contains("manifest-src 'self'"), "{policy}");
    assert!(policy.contains("require-trusted-types-for 'script'; trusted-types provost-worker"), "{policy}");
    let browser = Browser::start();
    let tab = with_worker(&browser, door);
    for (path, text) in [
        ("/", "the secret plan"),
        ("/a/1", "the secret plan"),
        ("/tasks", "the secret plan"),
        ("/e", "approval_asked"),
    ] {
        tab.go(&at(door, path));
        tab.shows(text);
    }
    let paths = kept(&tab);
    assert!(paths.len() > 15 && paths.contains(&"/offline".to_owned()), "{paths:?}");
    assert!(paths.iter().all(|it| it.starts_with("/assets/") || it == "/offline"), "{paths:?}");
    let found = tab.eval(
        "caches.keys().then(async (names) => { let text = ''; for (const name of names) { const kept = await caches.open(name); \
         for (const it of await kept.keys()) text += await (await kept.match(it)).text(); } \
         return text.includes('secret plan'); })",
    );
    assert_eq!(found, json!(false));
    daemon.kill();
    for path in ["/", "/a/1?d=1f9ac2", "/tasks"] {
        tab.go(&at(door, path));
        tab.shows("The daemon does not answer");
        tab.shows("Nothing is shown, since nothing here would be live");
        assert!(!tab.text().contains("secret plan"), "{}", tab.text());
        assert_eq!(tab.eval("location.pathname + location.search"), json!(path));
    }
    let wrong: Vec<String> = super::LOOKS
        .into_iter()
        .flat_map(|(width, height, scheme)| {
            tab.looks(width, height, scheme);
            examine(&tab, "/offline", (width, scheme), "offline")
        })
        .collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn no_text_but_the_workers_path_becomes_a_script() {
    let (_world, _daemon, door) = open_world();
    let browser = Browser::start();
    let tab = with_worker(&browser, door);
    let outcome = |script: &str| {
        tab.eval(&format!(
            "(async () => {{ try {{ {script}; return 'done' }} catch (err) {{ return err.name }} }})()"
        ))
    };
    assert_eq!(outcome("await navigator.serviceWorker.register('/assets/x.js')"), "TypeError");
    assert_eq!(outcome("trustedTypes.createPolicy('mine', { createHTML: (it) => it })"), "TypeError");
    assert_eq!(
        outcome("trustedTypes.createPolicy('provost-worker', { createHTML: (it) => it })"),
        "TypeError",
        "it is made once"
    );
    assert_eq!(outcome("document.body.innerHTML = '<b>x</b>'"), "TypeError");
}

/// Has a message come for the page's worker, as the push service brings it, and waits until something was shown for it.
///
/// The worker counts: to ask the browser for its notifications while one of them comes makes it forget that one.
fn deliver(browser: &Browser, tab: &Tab<'_>, door: Http, data: &str) {
    tab.ask("ServiceWorker.enable", &json!({}));
    let registration = until_some("the registration", || {
        tab.eval("0");
        let told = browser.told("ServiceWorker.workerRegistrationUpdated");
        let all = told.iter().flat_map(|it| it["registrations"].as_array().unwrap().clone());
        all.last().map(|it| it["registrationId"].as_str().unwrap().to_owned())
    });
    let before = notified(browser);
    let origin = at(door, "");
    let message = json!({ "origin": origin, "registrationId": registration, "data": data });
    tab.ask("ServiceWorker.deliverPushMessage", &message);
    eventually("it is shown", || notified(browser) > before);
}

/// How many notifications the worker has had shown since it was asked first.
fn notified(browser: &Browser) -> u64 {
    let counted = browser.worker().eval(
        "(() => { if (globalThis.notified === undefined) { globalThis.notified = 0; \
         const show = registration.showNotification.bind(registration); \
         registration.showNotification = async (...it) => { await show(...it); globalThis.notified += 1; }; } \
         return globalThis.notified; })()",
    );
    counted.as_u64().unwrap()
}

/// The notifications that are shown.
fn shown(tab: &Tab<'_>) -> Value {
    tab.eval(
        "navigator.serviceWorker.ready.then((it) => it.getNotifications()).then((all) => \
         all.map(({ title, body, tag, silent, data, actions }) => ({ title, body, tag, silent, data, actions })))",
    )
}

#[test]
fn a_message_is_shown_and_a_click_on_it_opens_exactly_that_approval() {
    let (world, daemon, door) = open_world();
    ask(&world, &daemon, "make the release");
    let digest = get(&world, "/approvals")[0]["digest"].as_str().unwrap()[..6].to_owned();
    let browser = Browser::start();
    browser.lets_notify(&at(door, ""));
    let tab = with_worker(&browser, door);
    let to = at(door, &format!("/a/1?d={digest}"));
    let message = |title: &str, silent: bool, to: &str| {
        json!({
            "web_push": 8030, "app_badge": 1,
            "notification": {
                "title": title, "body": "asked by orch · 1f9ac2", "navigate": to, "tag": "approval-1", "silent": silent,
                "lang": "en", "dir": "ltr", "data": { "navigate": to, "kind": "approval" },
            },
        })
        .to_string()
    };
    deliver(&browser, &tab, door, &message("Approval 1 waits (risk <b>high</b>)", false, &to));
    eventually("it is shown", || shown(&tab).as_array().unwrap().len() == 1);
    let notification = shown(&tab)[0].clone();
    assert_eq!(notification["title"], "Approval 1 waits (risk <b>high</b>)");
    assert_eq!((&notification["tag"], &notification["data"]["navigate"]), (&json!("approval-1"), &json!(to)));
    let actions: Vec<&str> =
        notification["actions"].as_array().unwrap().iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["open", "later"], "no verdict");
    // What a click opens; a script of a test is no person, whom alone the browser lets open a window.
    let worker = browser.worker();
    let click = |action: &str| {
        worker.eval(&format!(
            "(async () => {{ const opened = []; self.clients.openWindow = async (it) => {{ opened.push(it); }}; \
             const it = (await registration.getNotifications()).find((it) => it.tag === 'approval-1' || it.tag === 'news'); const waits = []; \
             const event = new NotificationEvent('notificationclick', {{ notification: it, action: '{action}' }}); \
             event.waitUntil = (it) => waits.push(it); self.dispatchEvent(event); await Promise.all(waits); return opened; }})()"
        ))
    };
    // To be told later needs the browser's address, which this one does not have.
    let before = notified(&browser);
    assert_eq!(click("later"), json!([]));
    eventually("it says so", || notified(&browser) > before);
    assert_eq!(shown(&tab)[0]["title"], "This was not put off");
    deliver(&browser, &tab, door, &message("Approval 1 waits", false, &to));
    eventually("it is shown", || shown(&tab).as_array().unwrap().iter().any(|it| it["tag"] == "approval-1"));
    assert_eq!(click("open"), json!([to]));
    tab.go(&to);
    tab.shows("make the release");
    assert!(!tab.text().contains("made for another request"));
    // The number of another request is told.
    tab.go(&at(door, "/a/1?d=000000"));
    tab.shows("The link was made for another request");
    // Its end takes its place, without a sound.
    deliver(&browser, &tab, door, &message("Approval 1 waits", false, &to));
    deliver(&browser, &tab, door, &message("Approval 1: approved at the desk", true, &to));
    eventually("its end is shown", || {
        let all = shown(&tab).as_array().unwrap().clone();
        let of_it: Vec<&Value> = all.iter().filter(|it| it["tag"] == "approval-1").collect();
        of_it.len() == 1 && of_it[0]["title"] == "Approval 1: approved at the desk"
    });
    // A click leads nowhere but to this page, and what is no message of ours is shown as that.
    deliver(&browser, &tab, door, &message("elsewhere", false, "https://evil.example/a/1"));
    let is_there = |title: &str| shown(&tab).as_array().unwrap().iter().any(|it| it["title"] == title);
    eventually("it is shown", || is_there("elsewhere"));
    assert_eq!(click(""), json!([at(door, "/")]));
    deliver(&browser, &tab, door, "\u{0}no json");
    eventually("it is shown", || is_there("Provost has news"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_browser_is_subscribed_on_the_page_with_a_passkey_and_gets_what_it_can_open() {
    let service = Receiver::tls();
    service.be(status("201 Created"));
    let world = World::new();
    std::fs::create_dir_all(world.config_dir()).unwrap();
    std::fs::write(world.config_dir().join("ca.pem"), &service.authority).unwrap();
    world.configure(&format!(
        "{OPEN}[push]\nsubject = \"mailto:me@example.org\"\nhosts = [\"hooks.example:{}=127.0.0.1\"]\nauthority = \"ca.pem\"\n",
        service.port
    ));
    world.rule(ASK);
    let daemon = world.start();
    let door = Http::web(&world);
    let browser = Browser::start();
    browser.lets_notify(&at(door, ""));
    let tab = browser.open(&at(door, "/passkeys"));
    tab.shows("A passkey signs for each browser, and none is enrolled.");
    let _authenticator = tab.authenticator("internal");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(&code(&world));
    tab.eval("document.querySelector('#passkey-name').focus()");
    tab.write("laptop");
    tab.click("button[data-does=enrol]");
    tab.shows("laptop answers from now on");
    // No push service of a browser's own can be reached here: the browser says that it has subscribed at this one.
    let own = PushBrowser::new();
    let endpoint = format!("https://hooks.example:{}/send/x", service.port);
    let made = json!({ "endpoint": endpoint, "keys": { "p256dh": own.p256dh(), "auth": own.auth() } });
    tab.before(&format!(
        "PushManager.prototype.getSubscription = async () => null; PushManager.prototype.subscribe = async (asked) => {{ \
         globalThis.asked = {{ visible: asked.userVisibleOnly, length: asked.applicationServerKey.length }}; \
         return {{ toJSON: () => ({made}) }}; }};"
    ));
    tab.go(&at(door, "/passkeys"));
    tab.until("the form", "document.querySelector('#browser-name')");
    tab.click("button[data-does=subscribe]");
    tab.shows("Type a name for this browser");
    tab.eval("document.querySelector('#browser-name').focus()");
    tab.write("my phone");
    tab.picture("push");
    tab.click("button[data-does=subscribe]");
    eventually("it is told", || get(&world, "/push")["browsers"][0]["name"] == "my phone");
    tab.shows("my phone");
    assert_eq!(tab.eval("globalThis.asked"), json!({ "visible": true, "length": 65 }));
    assert_eq!(get(&world, "/push")["browsers"][0]["origin"], at(door, ""));
    ask(&world, &daemon, "make the release");
    let message = own.reads(&service.hears(1).remove(0).raw);
    assert!(
        message["notification"]["navigate"].as_str().unwrap().starts_with(&at(door, "/a/1?d=")),
        "{message}"
    );
    let wrong: Vec<String> = super::LOOKS
        .into_iter()
        .flat_map(|(width, height, scheme)| {
            tab.looks(width, height, scheme);
            examine(&tab, "/passkeys", (width, scheme), "browsers")
        })
        .collect();
    assert_eq!(wrong, [""; 0]);
    // And no more, by signature.
    tab.looks(1280, 800, "light");
    tab.eval("document.querySelector('tr[data-key^=\"push:\"] details').open = true");
    tab.click("button[data-does=remove-push]");
    eventually("it gets no more notices", || get(&world, "/push")["browsers"] == json!([]));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}
