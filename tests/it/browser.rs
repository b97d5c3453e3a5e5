//! A page in a real browser that does its worst against the doors over loopback HTTP: nothing of it reaches the core.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::loopback_client::Http;
use crate::support::World;

const PAGE: &str = include_str!("fixtures/browser/hostile.html");

/// A name that the page's owner controls, and that leads to this machine.
const EVIL: &str = "evil.example";

/// What a request was: its head, and its body as far as it was announced.
struct Heard {
    head: String,
    body: String,
}

/// A server that answers with a page, and tells what it was asked.
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
    let said = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    sender.send(Heard { head, body: String::from_utf8_lossy(&body).into_owned() }).ok()?;
    stream.write_all(said.as_bytes()).ok()
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
        let child = Command::new("chromium")
            // Nothing but this machine is there, and the page's name is this machine.
            .arg(format!("--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP *.invalid ~NOTFOUND"))
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

/// What the page could read, line by line, once it has tried everything.
fn until_done(heard: &Receiver<Heard>) -> String {
    loop {
        let request =
            heard.recv_timeout(Duration::from_secs(150)).expect("the page does not come to its end");
        if request.head.starts_with("POST /done ") {
            return request.body;
        }
    }
}

/// All that a door can change: the log, and what the doors show.
fn all_there_is(world: &World) -> (String, Value, Value) {
    let log = world.command(&["log", "--json"]).output().unwrap();
    let state = Http::agent_protocol(world).get("/state").json();
    let agents = Http::broker(world).get("/status").json()["agents"].clone();
    (String::from_utf8(log.stdout).unwrap(), state, agents)
}

#[test]
fn a_hostile_page_reads_nothing_and_changes_nothing() {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let _daemon = world.start();
    // A server that lets anybody in, to see that the attacks are real.
    let (victim, reached) = serve(|_| "{}".into());
    let ports = [Http::agent_protocol(&world).port, Http::broker(&world).port];
    let names = ["127.0.0.1", EVIL];
    let mut targets = vec![format!("http://127.0.0.1:{victim}")];
    targets.extend(ports.iter().flat_map(|port| names.map(|name| format!("http://{name}:{port}"))));
    let page = PAGE.replace("@TARGETS@", &serde_json::to_string(&targets).unwrap());
    let before = all_there_is(&world);
    let (port, heard) = serve(|_| page.clone());
    let _browser = Browser::at(&format!("http://{EVIL}:{port}/"));
    let read = until_done(&heard);
    assert_eq!(read, "", "what the page could read");
    assert_eq!(all_there_is(&world), before);
    // The attacks came through to where nobody keeps them out, and were refused here for each of the reasons.
    let through: Vec<Heard> = reached.try_iter().collect();
    let came = |wanted: &dyn Fn(&Heard) -> bool| through.iter().any(wanted);
    assert!(came(&|it| it.head.starts_with("POST /agents/announce ") && it.body.contains("intruder")));
    assert!(came(&|it| it.head.starts_with("POST /publish ") && it.head.contains("text/plain")));
    assert!(came(&|it| it.head.contains("multipart/form-data")));
    assert!(came(&|it| it.head.contains("Upgrade: websocket")));
    assert!(came(&|it| it.head.contains("text/event-stream")));
    let log = world.log();
    for cause in ["the Host is not this door", "the Origin is not this door", "a page of another site asks"] {
        assert!(log.contains(cause), "{cause} is in no line of the log");
    }
}
