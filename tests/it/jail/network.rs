//! The network of a jailed worker: it reaches what was granted, and nothing beside it.

use std::io::Write as _;
use std::net::{Ipv6Addr, TcpListener};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::webserver::Server;
use crate::support::{Client, Daemon, World, eventually};

/// Tells what came of connecting to each address, and of asking the proxy for each URL.
const ASK: &str = r#"
import os, socket, sys, base64
def direct(host, port):
    try:
        s = socket.create_connection((host, port), 5)
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return s.makefile("rb").read().split(b"\r\n\r\n")[-1].decode() or "nothing"
    except OSError as e:
        return type(e).__name__
def proxy(head, login=None, end=b"\r\n\r\n"):
    login, at = os.environ["http_proxy"][7:].rsplit("@", 1) if login is None else (login, "127.0.0.1:3128")
    s = socket.create_connection(tuple(at.rsplit(":", 1)), 5)
    auth = b"\r\nProxy-Authorization: Basic " + base64.b64encode(login.encode()) if login else b""
    s.sendall(head.encode("latin-1") + auth + end)
    return s
def status(s):
    line = s.makefile("rb").readline().decode("latin-1").split()
    return line[1] if len(line) > 1 else "closed"
def get(url):
    import urllib.request, urllib.error
    try:
        return urllib.request.urlopen(url, timeout=10).read().decode()
    except urllib.error.HTTPError as e:
        return str(e.code)
    except OSError as e:
        return type(e).__name__
"#;

/// A world with one Python worker that has this network.
fn world(network: &str) -> (World, Daemon) {
    let world = World::new();
    world.configure(&format!("[policy]\nfile = \"builtin:open\"\n{}", worker("py", network)));
    let daemon = world.start();
    (world, daemon)
}

fn worker(name: &str, network: &str) -> String {
    format!(
        "[workers.{name}]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\nargs = [\"-c\", \"{{goal}}\"]\n\
         parse_mode = \"text\"\n{network}\n"
    )
}

/// Runs a program of a worker to its end and answers what it printed.
fn run(client: &Client, worker: &str, program: &str) -> String {
    let (task, reply) = client.delegate(worker, &format!("{ASK}\n{program}"), json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    result["artifacts"]["details"]["stdout"].as_str().unwrap().trim().to_owned()
}

/// The entries of a kind in the log.
fn recorded(world: &World, what: &str) -> Vec<Value> {
    let output = world.command(&["log", "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let matches = |entry: &Value| entry.to_string().contains(&format!("\"{what}\""));
    entries.filter(matches).collect()
}

#[test]
fn a_granted_port_is_reached_and_its_neighbours_are_not() {
    let (four, six) = (Server::saying("four"), Server::at(Ipv6Addr::LOCALHOST.into(), "six"));
    let neighbour = Server::saying("neighbour");
    let silent = crate::support::hub::free_port();
    let network = format!("network = \"ports\"\nports = [{}, {}, {silent}]", four.port, six.port);
    let (world, daemon) = world(&network);
    let client = world.client(&daemon, "orch:a");
    let said = run(
        &client,
        "py",
        &format!(
            "for host, port in [('127.0.0.1', {0}), ('::1', {0}), ('localhost', {1}), ('127.0.0.1', {2}), \
             ('::1', {2}), ('127.0.0.1', {3}), ('127.0.0.2', {0}), ('192.0.1.1', {0})]:\n    print(direct(host, port))",
            four.port, six.port, neighbour.port, silent
        ),
    );
    let refused = "ConnectionRefusedError";
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..5], ["four", "four", "six", refused, refused]);
    assert_eq!(lines[5], "ConnectionResetError", "nobody listens on the host");
    assert_eq!(lines[6], refused, "another address of the jail's loopback");
    assert_eq!(lines[7], "OSError", "there is no way to other machines");
    assert!(neighbour.heard().is_empty());
    let entries = recorded(&world, "network.used");
    assert_eq!(entries.len(), 1, "one entry for a run: {entries:?}");
    let text = entries[0].to_string();
    assert!(
        text.contains(&format!("loopback:{}", four.port)) && text.contains("\"connections\":2"),
        "{text}"
    );
}

/// A request to the granted host, and to its neighbours.
const NEIGHBOURS: &str = r#"
print(get(f'http://api.example:{port}/a?b=c'))
f = proxy(f'CONNECT API.example:{port} HTTP/1.1\r\nHost: x')
lines = f.makefile('rb')
while lines.readline().strip(): pass
f.sendall(b'GET /tunnel HTTP/1.1\r\n\r\n')
print(lines.read().split(b'\r\n\r\n')[-1].decode())
for url in [f'http://api.example:{other}', f'http://other.example:{port}', f'http://127.0.0.1:{port}',
            f'http://sub.api.example:{port}', f'http://xapi.example:{port}', 'http://api.example']:
    print(status(proxy(f'GET {url}/ HTTP/1.1\r\nHost: api.example:{port}')))
for to in [f'api.example:{other}', 'api.example:22', f'localhost:{port}', f'127.0.0.1:{port}', f'[::1]:{port}']:
    print(status(proxy(f'CONNECT {to} HTTP/1.1\r\nHost: api.example:{port}')))
print(direct('127.0.0.1', port))
"#;

#[test]
fn hosts_are_reached_by_exact_match_and_through_the_proxy_alone() {
    let (granted, other) = (Server::saying("granted"), Server::saying("other"));
    let name = format!("api.example:{}", granted.port);
    let network = format!("network = \"hosts\"\nhosts = [\"{name}=127.0.0.1\"]");
    let (world, daemon) = world(&network);
    let client = world.client(&daemon, "orch:a");
    let said = run(&client, "py", &format!("port, other = {}, {}{NEIGHBOURS}", granted.port, other.port));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["granted", "granted"], "{said}");
    assert_eq!(lines[2..13], ["403"; 11], "{said}");
    assert_eq!(lines[13], "ConnectionRefusedError");
    let heard = granted.heard();
    assert!(heard[0].starts_with("GET /a?b=c HTTP/1.1\r\n"), "{heard:?}");
    assert!(
        heard[0].contains(&format!("ost: {name}\r\n")) && !heard[0].to_lowercase().contains("proxy"),
        "{heard:?}"
    );
    assert_eq!((heard.len(), other.heard().len()), (2, 0));
    let text = recorded(&world, "network.used")[0].to_string();
    assert!(
        text.contains(&name) && text.contains("\"refused\":11") && text.contains("sub.api.example"),
        "{text}"
    );
}

#[test]
fn a_request_names_the_host_that_was_checked_whatever_the_worker_has_written() {
    let granted = Server::saying("granted");
    let name = format!("api.example:{}", granted.port);
    let (world, daemon) = world(&format!("network = \"hosts\"\nhosts = [\"{name}=127.0.0.1\"]"));
    let client = world.client(&daemon, "orch:a");
    let asks = format!("print(status(proxy('GET http://{name}/ HTTP/1.1\\r\\nHost: admin.example')))");
    assert_eq!(run(&client, "py", &asks), "200");
    let heard = granted.heard().concat().to_lowercase();
    assert!(heard.contains(&format!("host: {name}\r\n")) && !heard.contains("admin.example"), "{heard}");
}

/// A request for each spelling, as a tunnel and as a plain request; then for the right one.
const SPELLINGS: &str = r#"
for host in ['evil.example\0.api.example', 'api.example\0', 'evil.example%00api.example', 'api.example.', '.api.example',
             'user@api.example', 'api.example@evil.example', 'api.example:1@evil.example', 'api.example#@evil.example',
             'api\u3002example', 'api.ex\u00e4mple', 'xn--api.example', '2130706433', '0x7f000001', '0177.0.0.1', '127.1',
             '127.0.0.1', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::1]', 'localhost', 'api.example api.example',
             'api.example\t', '']:
    for head in [f'CONNECT {host}:{port} HTTP/1.1\r\nHost: api.example',
                 f'GET http://{host}:{port}/ HTTP/1.1\r\nHost: api.example:{port}']:
        try:
            print(status(proxy(head.encode().decode('latin-1'))))
        except OSError:
            print('closed')
print(get(f'http://api.example:{port}/'))
"#;

#[test]
fn no_hostile_spelling_of_a_host_gets_through() {
    let server = Server::saying("reached");
    let network = format!("network = \"hosts\"\nhosts = [\"api.example:{0}=127.0.0.1\"]", server.port);
    let (world, daemon) = world(&network);
    let client = world.client(&daemon, "orch:a");
    let said = run(&client, "py", &format!("port = {}{SPELLINGS}", server.port));
    let mut lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.pop(), Some("reached"), "{said}");
    assert_eq!(lines.len(), 48);
    assert!(lines.iter().all(|line| ["400", "403", "closed"].contains(line)), "{said}");
    assert_eq!(server.heard().len(), 1, "{:?}", server.heard());
}

#[test]
fn a_granted_address_is_also_reached_without_the_proxy() {
    let server = Server::saying("model");
    let (world, daemon) = world(&format!("network = \"hosts\"\nhosts = [\"127.0.0.1:{}\"]", server.port));
    let client = world.client(&daemon, "orch:a");
    let said = run(
        &client,
        "py",
        &format!(
            "print(direct('127.0.0.1', {0}))\nprint(get('http://127.0.0.1:{0}/'))\n\
             print(status(proxy('GET http://127.0.0.1:{0}/ HTTP/1.1\\r\\nHost: x')))",
            server.port
        ),
    );
    assert_eq!(said, "model\nmodel\n200");
}

#[test]
fn a_redirect_is_passed_on_and_not_followed() {
    let inner = Server::saying("inner");
    let answer = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        inner.port
    );
    let outer = Server::answering([127, 0, 0, 1].into(), answer);
    let (world, daemon) =
        world(&format!("network = \"hosts\"\nhosts = [\"api.example:{}=127.0.0.1\"]", outer.port));
    let client = world.client(&daemon, "orch:a");
    let said = run(
        &client,
        "py",
        &format!("print(status(proxy('GET http://api.example:{}/ HTTP/1.1')))", outer.port),
    );
    assert_eq!(said, "302");
    assert!(inner.heard().is_empty());
}

#[test]
fn the_proxy_of_a_run_takes_no_other_runs_token_and_none_at_all() {
    let server = Server::saying("reached");
    let (world, daemon) =
        world(&format!("network = \"hosts\"\nhosts = [\"api.example:{}=127.0.0.1\"]", server.port));
    let client = world.client(&daemon, "orch:a");
    let first = run(&client, "py", "print(os.environ['https_proxy'])");
    let login = first.strip_prefix("http://").unwrap().split('@').next().unwrap();
    let ask = |login: &str| {
        format!("print(status(proxy('GET http://api.example:{}/ HTTP/1.1', login='{login}')))", server.port)
    };
    for login in [login, "", "run:", "run", "x:y"] {
        assert_eq!(run(&client, "py", &ask(login)), "407", "{login}");
    }
    assert!(server.heard().is_empty());
    let own = format!("print(get('http://api.example:{}/'))", server.port);
    assert_eq!(run(&client, "py", &own), "reached");
}

const SLOW_AND_ENDLESS: &str = r#"
slow = [proxy(f'GET http://api.example:{port}/ HTTP/1.1', end=b'\r\nX-Slow: ') for _ in range(60)]
print(get(f'http://api.example:{port}/'))
s = proxy(f'GET http://api.example:{port}/ HTTP/1.1', end=b'\r\n')
try:
    for _ in range(10000): s.sendall(b'X-Long: ' + b'x' * 1000 + b'\r\n')
    print('endless')
except OSError:
    print('cut off')
print(get(f'http://api.example:{port}/'))
"#;

#[test]
fn slow_and_endless_heads_hold_up_nobody() {
    let server = Server::saying("reached");
    let (world, daemon) =
        world(&format!("network = \"hosts\"\nhosts = [\"api.example:{}=127.0.0.1\"]", server.port));
    let client = world.client(&daemon, "orch:a");
    let said = run(&client, "py", &format!("port = {}{SLOW_AND_ENDLESS}", server.port));
    assert_eq!(said, "reached\ncut off\nreached");
}

#[test]
fn a_daemon_that_is_killed_leaves_no_connection_and_no_worker() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let (world, mut daemon) = world(&format!("network = \"ports\"\nports = [{port}]"));
    let client = world.client(&daemon, "orch:a");
    let mark = format!("mark-{}-{port}", std::process::id());
    let program = format!("{ASK}\nprint(direct('127.0.0.1', {port}), '{mark}')");
    client.delegate("py", &program, json!({})).1.ack();
    let (stream, _) = silent.accept().unwrap();
    let alive = || {
        !Command::new("pgrep").args(["-f", &mark]).stdin(Stdio::null()).output().unwrap().stdout.is_empty()
    };
    assert!(alive(), "the worker waits for an answer");
    daemon.kill();
    eventually("the end of the worker", || !alive());
    // The request is in the buffer; after it comes the end, and nobody is there to write to.
    eventually("the end of the connection", || (&stream).write_all(b"x").is_err());
}

#[test]
fn a_network_is_asked_about_and_shown_in_full() {
    let server = Server::saying("reached");
    let world = World::new();
    let network = format!(
        "network = \"hosts\"\nhosts = [\"API.example:{}=127.0.0.1\", \"b.example:443\"]",
        server.port
    );
    world.configure(&worker("py", &network));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let program = format!("{ASK}\nprint(get('http://api.example:{}/'))", server.port);
    let (task, reply) = client.delegate("py", &program, json!({}));
    assert_eq!(reply.ack()["approval"], "required", "the default policy asks");
    let waiting = world.command(&["approval", "list", "--json"]).output().unwrap();
    let waiting = String::from_utf8(waiting.stdout).unwrap();
    let shown = format!("hosts api.example:{}=127.0.0.1 b.example:443", server.port);
    assert!(waiting.contains(&shown), "{waiting}");
    assert!(server.heard().is_empty());
    let approver = world.approver(&daemon);
    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    let id = question["msg_id"].as_str().unwrap();
    approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": "granted" })).ack();
    let result = client.result_of(&task);
    assert_eq!(result["artifacts"]["details"]["stdout"].as_str().unwrap().trim(), "reached", "{result}");
}

#[test]
fn a_rule_takes_hosts_away_and_what_is_left_is_reached() {
    let server = Server::saying("reached");
    let (one, two) =
        (format!("one.example:{}=127.0.0.1", server.port), format!("two.example:{}=127.0.0.1", server.port));
    let world = World::new();
    let network = format!("network = \"hosts\"\nhosts = [\"{one}\", \"{two}\"]");
    let other = "network = \"hosts\"\nhosts = [\"three.example:443\"]";
    world.configure(&[worker("py", &network), worker("none", other)].concat());
    world.rule(&format!(
        "version = 1\n[[rule]]\nid = \"net\"\ndecision = \"allow\"\nreason = \"one host\"\nwhen.action = [\"delegate\"]\n\
         when.network = \"hosts\"\nlimit.hosts = [\"{one}\"]\n"
    ));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let said = run(
        &client,
        "py",
        &format!("print(get('http://one.example:{0}/'))\nprint(get('http://two.example:{0}/'))", server.port),
    );
    assert_eq!(said, "reached\n403");
    let (task, _) = client.delegate("none", "print(1)", json!({}));
    let result = client.result_of(&task).to_string();
    assert!(result.contains("admits none of the hosts"), "{result}");
}

#[test]
fn a_network_that_makes_no_sense_refuses_its_worker() {
    let world = World::new();
    let cases = [
        ("weak", "tier = \"ll\"\nnetwork = \"ports\"\nports = [80]", "every machine"),
        ("weaker", "tier = \"ll\"\nnetwork = \"hosts\"\nhosts = [\"a.example:443\"]", "every machine"),
        ("nothing", "network = \"hosts\"", "needs `hosts`"),
        ("none", "network = \"ports\"", "needs `ports`"),
        ("zero", "network = \"ports\"\nports = [0]", "0 is not a port"),
        ("bare", "network = \"hosts\"\nhosts = [\"a.example\"]", "must end with a port"),
        ("any", "network = \"hosts\"\nhosts = [\"*.example:443\"]", "ASCII letters"),
        ("number", "network = \"hosts\"\nhosts = [\"2130706433:80\"]", "looks like an address"),
        ("mapped", "network = \"hosts\"\nhosts = [\"[::ffff:127.0.0.1]:80\"]", "another spelling"),
        ("twice", "network = \"hosts\"\nhosts = [\"a.example:1\", \"A.example:1=10.0.0.1\"]", "twice"),
    ];
    world.configure(&cases.map(|(name, network, _)| worker(name, network)).concat());
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (name, _, why) in cases {
        let refused = client.delegate(name, "print(1)", json!({})).1.message();
        assert_eq!(refused["payload"]["code"], "E_INVALID", "{name}: {refused}");
        assert!(refused["payload"]["message"].as_str().unwrap().contains(why), "{name}: {refused}");
    }
}

#[test]
fn what_a_worker_would_reach_can_be_seen_before() {
    let world = World::new();
    let network = "network = \"hosts\"\nhosts = [\"api.example:443\", \"git.example:443=10.1.2.3\"]";
    world
        .configure(&[worker("py", network), worker("local", "network = \"ports\"\nports = [8080]")].concat());
    for (name, shown) in [("py", "api.example:443 git.example:443=10.1.2.3"), ("local", "ports 8080")] {
        let told = world.command(&["jail", "explain", name]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.contains(shown), "{told}");
    }
}
