//! Pages in a real browser that do their worst against the doors over loopback HTTP: none of that reaches the core.
//!
//! The page's requests are in `fixtures/browser/hostile.html`: every way that a browser offers, to every route.

mod attacks;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::loopback_client::Http;
use crate::support::wit_client;
use crate::support::{Daemon, World};
use attacks::{Attack, Prey, doors};

const PAGE: &str = include_str!("../../fixtures/browser/hostile.html");
const SERVICE: &str = include_str!("../../fixtures/browser/service.js");

/// A name that the page's owner controls, and that leads to this machine.
const EVIL: &str = "evil.example";

/// Another one, which has led to a server of its owner's when the page came from there, and leads to a door
/// since.
const REBOUND: &str = "rebound.example";

/// Where that server is.
const ELSEWHERE: &str = "127.0.0.2";

/// The answer of a door that refuses a request.
const REFUSED: &str = r#"{"error":"Forbidden"}"#;

/// A request: its head, and its body as far as it was announced.
struct Heard {
    head: String,
    body: String,
}

impl Heard {
    fn read(stream: &mut TcpStream) -> Option<Self> {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let announced = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; announced.unwrap_or(0)];
        stream.read_exact(&mut body).ok()?;
        Some(Self { head, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server of the page's owner, which tells what it was asked.
fn serve(page: impl Fn(u16) -> String) -> (u16, Receiver<Heard>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let page = page(port);
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (sender, page) = (sender.clone(), page.clone());
            std::thread::spawn(move || answer(stream, &page, &sender));
        }
    });
    (port, heard)
}

fn answer(mut stream: TcpStream, page: &str, sender: &Sender<Heard>) -> Option<()> {
    let heard = Heard::read(&mut stream)?;
    let said = match heard.path().strip_prefix("/redirect/").and_then(|it| it.split_once('/')) {
        Some((status, to)) => {
            let to = to.replace("%3A", ":").replace("%2F", "/").replace("%3F", "?").replace("%3D", "=");
            format!(
                "HTTP/1.1 {status} Go\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        }
        None if heard.path() == "/service.js" => whole("text/javascript", SERVICE),
        None => whole("text/html", page),
    };
    sender.send(heard).ok()?;
    stream.write_all(said.as_bytes()).ok()
}

fn whole(kind: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// Makes a name lead to a door after all, as in DNS rebinding: serves the page under the door's port, and passes
/// everything else on as it is.
fn rebind(door: Http, page: String) {
    let listener = TcpListener::bind((ELSEWHERE, door.port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let page = page.clone();
            std::thread::spawn(move || pass(stream, door, &page));
        }
    });
}

fn pass(mut stream: TcpStream, door: Http, page: &str) -> Option<()> {
    let heard = Heard::read(&mut stream)?;
    if heard.path() == "/page" {
        return stream.write_all(whole("text/html", page).as_bytes()).ok();
    }
    let mut door = door.connect();
    door.write_all(heard.head.as_bytes()).ok()?;
    door.write_all(heard.body.as_bytes()).ok()?;
    std::io::copy(&mut door, &mut stream).ok().map(drop)
}

/// A browser without a screen; ended when dropped.
struct Browser {
    child: Child,
    _profile: TempDir,
}

impl Browser {
    fn at(url: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(profile.path().join("log")).unwrap();
        let rules = format!("MAP {EVIL} 127.0.0.1, MAP {REBOUND} {ELSEWHERE}, MAP *.invalid ~NOTFOUND");
        let child = Command::new("chromium")
            // Nothing but this machine is there, and the page's names are this machine.
            .arg(format!("--host-resolver-rules={rules}"))
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--no-proxy-server", "--remote-debugging-port=0", url])
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("chromium is installed: scripts/test names its package");
        Self { child, _profile: profile }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the texts that the page could read, each once, when it has tried everything.
fn until_done(heard: &Receiver<Heard>) -> String {
    loop {
        let request =
            heard.recv_timeout(Duration::from_secs(300)).expect("the page does not come to its end");
        if request.head.starts_with("POST /done ") {
            return request.body;
        }
    }
}

/// All that a door can change: the journal, and what the doors show.
fn all_there_is(world: &World) -> [String; 4] {
    let said = |args: &[&str]| {
        let output = world.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let state = Http::agent_protocol(world).get("/state").json().to_string();
    let roster = Http::broker(world).get("/status").json()["agents"].to_string();
    [said(&["journal", "head"]), said(&["log", "--json"]), state, roster]
}

/// A world in which there is something to lose, and nothing happens by itself.
fn prey() -> (World, Daemon, Prey) {
    let world = wit_client::world();
    world.configure("[agent_protocol]\ndead_after = \"24h\"\n[broker]\nwatch = false\n");
    world.put(&world.repo().join("src/mine.rs"), "fn main() {}\n");
    let daemon = world.start();
    let prey = Prey::new(&world);
    (world, daemon, prey)
}

/// Returns the page's orders against one server under some of its names; the first name gets all attacks.
fn targets(names: &[&str], port: u16, attacks: &[Attack]) -> Vec<Value> {
    let target = |(number, name): (usize, &&str)| json!({ "origin": format!("http://{name}:{port}"), "routes": attacks, "few": number > 0 });
    names.iter().enumerate().map(target).collect()
}

fn page(home: &str, targets: &[Value], world: &World) -> String {
    let sockets = [world.repo().join(".wit/daemon.sock"), world.own_socket()];
    let plan = json!({ "home": home, "targets": targets, "sockets": sockets });
    PAGE.replace("@PLAN@", &plan.to_string())
}

/// The ports at which the daemon listens, as it shows them.
fn listening(world: &World) -> BTreeSet<u16> {
    let status = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let addresses = status["doors"].as_array().unwrap().iter().map(|it| it["address"].as_str().unwrap());
    // All others are paths.
    let (ports, paths): (Vec<&str>, Vec<&str>) = addresses.partition(|it| it.contains(':'));
    assert!(paths.iter().all(|it| it.starts_with('/')), "{paths:?}");
    ports.iter().map(|it| it.rsplit_once(':').unwrap().1.parse().unwrap()).collect()
}

/// All doors' attacks, and of each what this user's own process would be answered.
fn all_attacks(world: &World, prey: &Prey) -> [(Http, Vec<(Attack, u16)>); 4] {
    let [one, other] =
        doors(world).map(|(door, routes)| (door, prey.attacks(world, routes.into_iter()).collect()));
    // Among what the page does with an address to get is to open a socket there.
    let socket = (("GET", "/ws".to_owned(), String::new()), 101);
    // A page that looks at what waits would show it to whoever made the page.
    let look = |path: &str| (("GET", path.to_owned(), String::new()), 200);
    let looks = vec![look("/approvals"), look("/mcp?agent=ada")];
    [one, other, (Http::a6s(world), vec![socket]), (Http::mcp(world), looks)]
}

fn without_answers(attacks: &[(Attack, u16)]) -> Vec<Attack> {
    attacks.iter().map(|(attack, _)| attack.clone()).collect()
}

/// A page that a server of this machine has under this name, against the doors and a server that lets anybody
/// in; what that one heard.
fn foreign_page(name: &str, names: &[&str]) -> (World, Daemon, Prey, Vec<Heard>) {
    let (world, daemon, prey) = prey();
    let (victim, reached) = serve(|_| "{}".into());
    let all = all_attacks(&world, &prey);
    let ports: BTreeSet<u16> = all.iter().map(|(door, _)| door.port).collect();
    // A browser reaches ports alone, and there are no others.
    assert_eq!(listening(&world), ports);
    let everything: Vec<Attack> = all.iter().flat_map(|(_, attacks)| without_answers(attacks)).collect();
    let mut aims = targets(&["127.0.0.1"], victim, &everything);
    for (door, attacks) in &all {
        aims.extend(targets(names, door.port, &without_answers(attacks)));
    }
    let before = all_there_is(&world);
    assert_eq!(all_there_is(&world), before, "nothing happens by itself");
    let (port, heard) = serve(|port| page(&format!("http://{name}:{port}"), &aims, &world));
    let browser = Browser::at(&format!("http://{name}:{port}/"));
    assert_eq!(until_done(&heard), "", "what the page could read");
    drop(browser);
    assert_eq!(all_there_is(&world), before);
    let through = reached.try_iter().collect();
    (world, daemon, prey, through)
}

#[test]
fn a_hostile_page_reads_nothing_and_changes_nothing() {
    let (world, _daemon, prey, through) = foreign_page(EVIL, &["127.0.0.1", "localhost", "[::1]", EVIL]);
    let came = |wanted: &dyn Fn(&Heard) -> bool| through.iter().any(wanted);
    // The attacks came through to where nobody keeps them out.
    for ((method, path, body), _) in all_attacks(&world, &prey).iter().flat_map(|(_, attacks)| attacks) {
        let there = |it: &Heard| it.path() == path;
        // Before other methods, a browser asks whether it may.
        let sent = |it: &Heard| match *method {
            "POST" => it.method() == "POST" && it.body == *body,
            "GET" => it.method() == "GET",
            _ => it.method() == "OPTIONS" && it.head.contains(method),
        };
        assert!(came(&|it| there(it) && sent(it)), "{method} {path}");
        if *method == "POST" {
            for kind in
                ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/ping"]
            {
                assert!(came(&|it| there(it) && it.head.contains(kind)), "{kind} {path}");
            }
            // By a redirect, and by a page without an origin.
            assert!(came(&|it| there(it) && it.head.contains("Origin: null")), "{path}");
        }
        if *method == "GET" {
            for kind in
                ["Upgrade: websocket", "text/event-stream", "Sec-Fetch-Dest: image", "Sec-Fetch-Dest: script"]
            {
                assert!(came(&|it| there(it) && it.head.contains(kind)), "{kind} {path}");
            }
        }
    }
    // They were refused here for each of the reasons.
    let log = world.log();
    for cause in ["the Host is not this door", "the Origin is not this door", "a page of another site asks"] {
        assert!(log.contains(cause), "{cause} is in no line of the log");
    }
    // Each of them is one that changes something when a process of this user sends it.
    for (door, attacks) in all_attacks(&world, &prey) {
        let order = |it: &(Attack, u16)| it.0.0 == "DELETE";
        let (last, first): (Vec<_>, Vec<_>) = attacks.into_iter().partition(order);
        for ((method, path, body), status) in first.into_iter().chain(last) {
            if method == "GET" {
                continue;
            }
            let before = all_there_is(&world);
            let json = [("Content-Type", "application/json")];
            let answer = door.send(&format!("{method} {path}"), &json, body.as_bytes());
            assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
            let repeated = ["/unlock", "/reject", "/watch", "/lead"].iter().any(|it| path.ends_with(it));
            assert!(repeated || all_there_is(&world) != before, "{method} {path} changes nothing");
        }
    }
}

#[test]
fn a_page_of_another_server_of_this_machine_is_as_foreign_as_any() {
    // Where browsers trust a page enough for service workers, and say `same-site` of what it sends.
    let (world, _daemon, _prey, through) = foreign_page("127.0.0.1", &["127.0.0.1"]);
    assert!(through.iter().any(|it| it.head.contains("Sec-Fetch-Site: same-site")));
    assert!(through.iter().any(|it| it.path().ends_with("?service")), "a service worker sent some");
    assert!(world.log().contains("a page of another site asks"), "{}", world.log());
}

#[test]
fn a_page_whose_own_name_leads_to_a_door_is_told_nothing_but_no() {
    let (world, _daemon, prey) = prey();
    let before = all_there_is(&world);
    for (door, attacks) in all_attacks(&world, &prey) {
        let aims = targets(&[REBOUND], door.port, &without_answers(&attacks));
        let (port, heard) = serve(|_| String::new());
        rebind(door, page(&format!("http://{EVIL}:{port}"), &aims, &world));
        let _browser = Browser::at(&format!("http://{REBOUND}:{}/page", door.port));
        let read = until_done(&heard);
        // It may read what it is answered, as far as its browser can tell: the refusal.
        let texts: Vec<&str> =
            read.split("\n\n").filter_map(|it| it.split_once('\n')).map(|it| it.1).collect();
        assert_eq!(texts, [REFUSED], "{read}");
    }
    assert_eq!(all_there_is(&world), before);
    assert!(world.log().contains("the Host is not this door"));
}
