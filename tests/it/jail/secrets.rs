//! Secrets of workers: how they are kept, how far they go, and that nobody sees one who should not.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::support::webserver::Server;
use crate::support::{Client, Daemon, World};

/// The secret, which no test may find anywhere.
const VALUE: &str = "sk-test-0123456789abcdef-NEVER-SEEN";

fn provost(world: &World, args: &[&str], input: &str) -> Output {
    let mut child = world
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses what it was asked does not read.
    let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
fn add(world: &World, name: &str, how: &[&str]) {
    let output = provost(world, &[&["secret", "add", name], how].concat(), &format!("{VALUE}\n"));
    assert!(output.status.success(), "{output:?}");
    let said = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&said).contains(VALUE), "the value was printed");
}

/// How the API's key reaches it.
fn by_proxy(upstream: &str) -> Vec<String> {
    let words = [
        "--upstream",
        upstream,
        "--header",
        "x-api-key",
        "--base-url-in",
        "API_URL",
        "--token-in",
        "API_KEY",
    ];
    words.map(String::from).to_vec()
}

fn worker(name: &str, more: &str) -> String {
    format!(
        "[workers.{name}]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\nargs = [\"-c\", \"{{goal}}\"]\n\
         parse_mode = \"text\"\n{more}\n"
    )
}

/// A policy that lets every worker run, with secrets up to a point.
fn policy(credentials: &str) -> String {
    format!(
        "version = 1\n[[rule]]\nid = \"all\"\ndecision = \"allow\"\nreason = \"a test\"\nwhen.action = [\"delegate\"]\n{credentials}\n"
    )
}

fn run(client: &Client, worker: &str, program: &str) -> String {
    let (task, reply) = client.delegate(worker, program, json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    result["artifacts"]["details"]["stdout"].as_str().unwrap().trim().to_owned()
}

fn log(world: &World) -> String {
    String::from_utf8(world.command(&["log", "--json"]).output().unwrap().stdout).unwrap()
}

/// A world with an API on the loopback and a worker that has its key by the proxy.
fn keyed_world(server: &Server) -> (World, Daemon) {
    let world = World::new();
    let upstream = format!("http://127.0.0.1:{}/v9", server.port);
    let how = by_proxy(&upstream);
    add(&world, "api", &how.iter().map(String::as_str).collect::<Vec<_>>());
    let network =
        format!("network = \"hosts\"\nhosts = [\"127.0.0.1:{}\"]\nsecrets = [\"api\"]", server.port);
    world.configure(&worker("py", &network));
    world.rule(&policy(""));
    let daemon = world.start();
    (world, daemon)
}

const ASK: &str = r#"
import os, urllib.request, urllib.error
def ask(path, key=None, method='GET', url=None, more={}):
    key = os.environ['API_KEY'] if key is None else key
    request = urllib.request.Request((url or os.environ['API_URL']) + path, method=method, headers={'x-api-key': key, **more})
    try: return urllib.request.urlopen(request, timeout=10).read().decode()
    except urllib.error.HTTPError as e: return str(e.code)
    except OSError as e: return type(e).__name__
"#;

/// Reads everything that a worker can read of itself and its world.
const LOOK_EVERYWHERE: &str = r#"
import os
found = [repr(dict(os.environ))]
for top in ['/proc', os.environ['HOME'], '/tmp', '/dev/shm', os.getcwd(), '/run', '/etc']:
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if path.startswith('/proc') and name not in ('environ', 'cmdline', 'status', 'maps', 'mountinfo'): continue
            try:
                with open(path, 'rb') as f: found.append(f.read(1 << 20).decode('latin-1'))
            except OSError: pass
# Written apart, since this program is in its own command line.
print('seen' if any('sk-test-' + '0123456789' in text for text in found) else 'not seen', len(found) > 3)
"#;

#[test]
fn the_key_is_added_on_the_way_and_the_worker_never_has_it() {
    let server = Server::saying("answer");
    let (world, daemon) = keyed_world(&server);
    let client = world.client(&daemon, "orch:a");
    assert_eq!(
        run(&client, "py", &format!("{ASK}print(ask('/messages?x=1', more={{'X-Own': 'kept'}}))")),
        "answer"
    );
    let heard = server.heard().remove(0);
    let lower = heard.to_lowercase();
    assert!(heard.starts_with("GET /v9/messages?x=1 HTTP/1.1\r\n"), "{heard}");
    assert!(lower.contains(&format!("x-api-key: {}\r\n", VALUE.to_lowercase())), "{heard}");
    assert_eq!(lower.matches("x-api-key").count(), 1, "{heard}");
    assert!(
        lower.contains("x-own: kept") && lower.contains(&format!("host: 127.0.0.1:{}\r\n", server.port)),
        "{heard}"
    );
    assert_eq!(run(&client, "py", LOOK_EVERYWHERE), "not seen True");

    let told = log(&world);
    assert!(
        told.contains("secrets.given") && told.contains("\"by\":\"proxy\"") && told.contains("network.used"),
        "{told}"
    );
    for args in [
        &["secret", "list"][..],
        &["secret", "list", "--json"],
        &["status"],
        &["status", "--json"],
        &["doctor"],
    ] {
        let output = world.command(args).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!said.contains(VALUE), "{args:?}");
    }
    assert!(!told.contains(VALUE) && !world.log().contains(VALUE));
    daemon.stop();
    let state = world.home().join(".local/state");
    let grep = std::process::Command::new("grep").args(["-r", "-l", VALUE]).arg(&state).output().unwrap();
    assert!(grep.stdout.is_empty(), "{}", String::from_utf8_lossy(&grep.stdout));
}

#[test]
fn only_the_token_of_the_run_stands_for_the_key() {
    let server = Server::saying("answer");
    let (world, daemon) = keyed_world(&server);
    let client = world.client(&daemon, "orch:a");
    let token = run(&client, "py", "import os; print(os.environ['API_KEY'])");
    assert!(token.len() >= 32 && !token.contains("sk-test"), "{token}");
    let program = format!(
        "{ASK}
print(ask('/', key='{token}'), ask('/', key=''), ask('/', key='x' * 48))
print(ask('/', method='TRACE'), ask('/', method='CONNECT'))
direct = 'http://127.0.0.1:{}'
print(ask('/', url=direct))
import base64, socket
login, at = os.environ['http_proxy'][7:].rsplit('@', 1)
for head in [f'CONNECT 127.0.0.1:{0} HTTP/1.1', f'GET {{direct}}/ HTTP/1.1']:
    s = socket.create_connection(tuple(at.rsplit(':', 1)), 5)
    auth = base64.b64encode(login.encode()).decode()
    s.sendall(f'{{head}}\\r\\nHost: x\\r\\nProxy-Authorization: Basic {{auth}}\\r\\n\\r\\n'.encode())
    print(s.makefile('rb').readline().decode().split()[1])
print(ask('/ok'))
",
        server.port
    );
    let said = run(&client, "py", &program);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "401 401 401", "another run's token, none, and a guess");
    assert_eq!(lines[1], "405 405", "{said}");
    assert_eq!(lines[2], "URLError", "the host is not reached past the one who adds the key");
    assert_eq!(lines[3..], ["403", "403", "answer"], "{said}");
    assert_eq!(server.heard().len(), 1);
}

/// A server with a certificate of its own for `api.example`; answers with the headers that it was sent.
struct Tls {
    port: u16,
    authority: String,
    heard: Arc<std::sync::Mutex<Vec<String>>>,
}

fn tls_server() -> Tls {
    let made = rcgen::generate_simple_self_signed(["api.example".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let keep = heard.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // A client that does not believe the certificate ends here.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap_or(0) > 0 {}
                keep.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret";
                let _gone = stream.write_all(answer).await;
                let _gone = stream.shutdown().await;
            }
        });
    });
    Tls { port, authority: made.cert.pem(), heard }
}

#[test]
fn a_key_goes_over_tls_to_a_host_that_has_proved_itself_and_to_no_other() {
    let server = tls_server();
    let world = World::new();
    let authority = world.path("authority.pem");
    std::fs::write(&authority, &server.authority).unwrap();
    let upstream = format!("https://api.example:{}", server.port);
    let mut how = by_proxy(&upstream);
    add(&world, "unproven", &how.iter().map(String::as_str).collect::<Vec<_>>());
    how.extend(["--authority".into(), authority.display().to_string()]);
    add(&world, "proven", &how.iter().map(String::as_str).collect::<Vec<_>>());
    let other = by_proxy(&format!("https://other.example:{}", server.port));
    let other = [other, vec!["--authority".into(), authority.display().to_string()]].concat();
    add(&world, "misnamed", &other.iter().map(String::as_str).collect::<Vec<_>>());
    let network = |secret: &str| {
        format!(
            "network = \"hosts\"\nhosts = [\"api.example:{0}=127.0.0.1\", \"other.example:{0}=127.0.0.1\"]\nsecrets = [\"{secret}\"]",
            server.port
        )
    };
    world.configure(&["proven", "unproven", "misnamed"].map(|name| worker(name, &network(name))).concat());
    world.rule(&policy(""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let program = format!("{ASK}print(ask('/a'))");
    assert_eq!(run(&client, "unproven", &program), "502", "its certificate is from nobody that is known");
    assert_eq!(run(&client, "misnamed", &program), "502", "its certificate is for another name");
    assert!(server.heard.lock().unwrap().is_empty(), "nothing was said to it");
    assert_eq!(run(&client, "proven", &program), "secret");
    let heard = server.heard.lock().unwrap().remove(0);
    assert!(
        heard.contains(VALUE) && heard.contains(&format!("ost: api.example:{}\r\n", server.port)),
        "{heard}"
    );
}

#[test]
fn a_file_or_a_variable_is_given_only_where_a_rule_says_so() {
    let world = World::new();
    add(&world, "file", &["--file", ".config/tool/token"]);
    add(&world, "variable", &["--env", "TOOL_TOKEN"]);
    let ll = "\ntier = \"ll\"";
    let workers = [
        worker("file", "secrets = [\"file\"]\ncopy = false"),
        worker("variable", "secrets = [\"variable\"]\ncopy = false"),
        worker("thin", &format!("secrets = [\"file\", \"variable\"]\ncopy = false{ll}")),
    ];
    world.configure(&workers.concat());
    world.rule(&policy(""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let refused = |worker: &str, by: &str| {
        let err = client.delegate(worker, "print(1)", json!({})).1.message();
        assert_eq!(err["payload"]["code"], "E_POLICY_DENIED", "{err}");
        assert!(err.to_string().contains(&format!("given as {by}")), "{err}");
    };
    refused("file", "file");
    refused("variable", "env");
    world.rule(&policy("limit.credentials = \"file\""));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    refused("variable", "env");
    refused("thin", "env");
    let look = "import os; p = os.path.expanduser('~/.config/tool/token'); print(open(p).read().strip(), oct(os.stat(p).st_mode & 0o777), os.environ.get('TOOL_TOKEN')); print(os.listdir(os.path.expanduser('~')))";
    assert_eq!(run(&client, "file", look), format!("{VALUE} 0o400 None\n['.config']"));
    world.rule(&policy("limit.credentials = \"env\""));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    assert_eq!(run(&client, "variable", "import os; print(os.environ['TOOL_TOKEN'])"), VALUE);
    assert_eq!(run(&client, "thin", look), format!("{VALUE} 0o400 {VALUE}\n['.config']"));
    let told = log(&world);
    assert!(told.contains("\"by\":\"file\"") && told.contains("\"by\":\"env\""), "{told}");
    assert!(!told.contains(VALUE), "the log has names, not values");
}

#[test]
fn secrets_are_asked_about_shown_and_bound_to_the_answer() {
    let world = World::new();
    add(&world, "token", &["--env", "TOOL_TOKEN"]);
    world.configure(&worker("py", "secrets = [\"token\"]"));
    world.rule(
        "version = 1\n[[rule]]\nid = \"ask\"\ndecision = \"approve\"\nreason = \"secrets\"\nwhen.action = [\"delegate\"]\n\
         approve.by = [\"client:approver\"]\nlimit.credentials = \"env\"\n\
         [[rule]]\nid = \"answers\"\ndecision = \"allow\"\nreason = \"by key\"\nwhen.action = [\"approve\"]\nwhen.proof = [\"own_key\"]\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("py", "print(1)", json!({}));
    assert_eq!(reply.ack()["approval"], "required");
    let waiting = world.command(&["approval", "list", "--json"]).output().unwrap();
    let waiting: Value = serde_json::from_slice(&waiting.stdout).unwrap();
    assert!(waiting.to_string().contains("token by env"), "{waiting}");
    // Given otherwise by now than when it was asked about.
    assert!(world.command(&["secret", "remove", "token"]).status().unwrap().success());
    add(&world, "token", &["--env", "OTHER_TOKEN"]);
    let approver = world.approver(&daemon);
    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    let id = question["msg_id"].as_str().unwrap();
    approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": "granted" })).message();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed", "{result}");
}

#[test]
fn a_secret_that_became_another_one_behind_the_daemons_back_is_not_given() {
    let world = World::new();
    add(&world, "token", &["--env", "TOOL_TOKEN"]);
    world.configure(&worker("py", "secrets = [\"token\"]"));
    world.rule(&policy("limit.credentials = \"env\""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    assert_eq!(run(&client, "py", "import os; print(os.environ['TOOL_TOKEN'])"), VALUE);
    let file = world.config_dir().join("secrets/token.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("TOOL_TOKEN", "LD_PRELOAD")).unwrap();
    let (task, _) = client.delegate("py", "print(1)", json!({}));
    let result = client.result_of(&task);
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result.to_string().contains("given otherwise by now"), "{result}");
}

#[test]
fn a_secret_that_is_not_there_or_not_private_refuses_its_worker() {
    let world = World::new();
    add(&world, "open", &["--env", "A"]);
    add(&world, "far", &["--upstream", "https://api.example", "--base-url-in", "U", "--token-in", "K"]);
    add(&world, "same", &["--env", "A"]);
    let file = world.config_dir().join("secrets/open.toml");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let cases = [
        ("missing", "secrets = [\"nothing\"]", "provost secret add nothing"),
        ("open", "secrets = [\"open\"]", "open to other users"),
        ("far", "secrets = [\"far\"]", "add \\\"api.example:443\\\" to its `hosts`"),
        ("twice", "secrets = [\"same\", \"same\"]", "which another one has"),
        ("odd", "secrets = [\"../keys/shared\"]", "cannot be the name of a secret"),
    ];
    world.configure(&cases.map(|(name, more, _)| worker(name, more)).concat());
    world.rule(&policy("limit.credentials = \"env\""));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (name, _, why) in cases {
        let refused = client.delegate(name, "print(1)", json!({})).1.message();
        assert_eq!(refused["payload"]["code"], "E_INVALID", "{name}: {refused}");
        assert!(refused.to_string().contains(why), "{name}: {refused}");
    }
}

#[test]
fn secrets_are_added_listed_and_removed_and_nonsense_changes_nothing() {
    let world = World::new();
    add(&world, "ci", &["--env", "CI_TOKEN"]);
    for (args, why) in [
        (&["secret", "add", "ci", "--env", "X"][..], "already"),
        (&["secret", "add", "a/b", "--env", "X"], "cannot be the name"),
        (&["secret", "add", ".a", "--env", "X"], "cannot be the name"),
        (&["secret", "add", "b"], "required"),
        (&["secret", "add", "b", "--env", "X", "--file", "y"], "cannot be used with"),
        (&["secret", "add", "b", "--env", "1X"], "name of a variable"),
        (&["secret", "add", "b", "--file", "../x"], "leaves"),
        (&["secret", "add", "b", "--file", "."], "below the worker's home"),
        (&["secret", "add", "b", "--upstream", "ftp://a.example"], "the upstream must be like"),
        (&["secret", "add", "b", "--upstream", "https://a.example"], "--base-url-in"),
        (&["secret", "add", "b", "--upstream", "https://a.example", "--base-url-in", "U"], "--token-in"),
        (
            &[
                "secret",
                "add",
                "b",
                "--upstream",
                "http://a.example",
                "--base-url-in",
                "U",
                "--token-in",
                "T",
            ],
            "without TLS",
        ),
        (
            &[
                "secret",
                "add",
                "b",
                "--upstream",
                "https://u@a.example",
                "--base-url-in",
                "U",
                "--token-in",
                "T",
            ],
            "user or a password",
        ),
        (
            &[
                "secret",
                "add",
                "b",
                "--upstream",
                "https://a.example/../x",
                "--base-url-in",
                "U",
                "--token-in",
                "T",
            ],
            "the upstream must be like",
        ),
        (
            &[
                "secret",
                "add",
                "b",
                "--upstream",
                "https://a.example",
                "--header",
                "host",
                "--base-url-in",
                "U",
                "--token-in",
                "T",
            ],
            "not a header",
        ),
        (&["secret", "remove", "b"], "no secret `b`"),
    ] {
        let output = provost(&world, args, VALUE);
        assert!(!output.status.success(), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why) && !said.contains(VALUE), "{args:?}: {said}");
    }
    for value in ["", "\n", "two\nlines", "bell\u{7}"] {
        let output = provost(&world, &["secret", "add", "b", "--env", "X"], value);
        assert!(!output.status.success(), "{value:?}");
    }
    assert!(!provost(&world, &["secret", "add", "b", "--env", "X"], &"x".repeat(40_000)).status.success());
    let listed: Value =
        serde_json::from_slice(&world.command(&["secret", "list", "--json"]).output().unwrap().stdout)
            .unwrap();
    assert_eq!(listed, json!([{ "name": "ci", "delivery": { "mode": "env", "variable": "CI_TOKEN" } }]));
    assert!(world.command(&["secret", "remove", "ci"]).status().unwrap().success());
    let listed = world.command(&["secret", "list", "--json"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&listed).trim(), "[]");
}

#[test]
fn the_kernels_lists_of_the_users_keys_are_empty_in_a_jail() {
    let lists = ["/proc/keys", "/proc/key-users"];
    assert!(
        lists.iter().any(|it| std::fs::read(it).is_ok_and(|it| !it.is_empty())),
        "there is nothing to hide"
    );
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) =
        client.delegate("shell", "cat /proc/keys /proc/key-users && echo read", json!({ "timeout": 60 }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["artifacts"]["details"]["stdout"], "read\n", "{result}");
}
