//! Tokens are counted where a worker has no say: in the answers of models' services, on the way out of the jail. Budgets stop between two
//! calls, ask a person before, and cannot be gone around.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::collector::{configured, metrics as sent_metrics, sample};
use crate::support::model_stub::ModelStub;
use crate::support::receiver::Receiver;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{Client, Daemon, World, eventually};

/// The jailed program's way to ask.
const ASK: &str = r#"
import os, sys, json, hashlib, urllib.request, urllib.error
def ask(path, body, more={}):
    head = {'x-api-key': os.environ['API_KEY'], 'content-type': 'application/json', **more}
    request = urllib.request.Request(os.environ['API_URL'] + path, json.dumps(body).encode(), head)
    try: return 200, urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as e: return e.code, e.read()
    except Exception as e: return type(e).__name__, b''
def call(model='m', path='/v1/messages', **more): return ask(path, {'model': model, **more})
"#;

fn worker(name: &str, port: u16) -> String {
    format!(
        "[workers.{name}]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\n\
         network = \"hosts\"\nhosts = [\"127.0.0.1:{port}\"]\nsecrets = [\"api\"]\n"
    )
}

/// A world with the stub, two workers that have its key by the proxy, and more settings.
fn world(stub: &ModelStub, settings: &str) -> (World, Daemon) {
    let world = World::new();
    let upstream = format!("http://127.0.0.1:{}", stub.port);
    let add = ["secret", "add", "api", "--upstream", &upstream, "--header", "x-api-key"];
    let add = [&add[..], &["--base-url-in", "API_URL", "--token-in", "API_KEY"]].concat();
    let mut child = world
        .command(&add)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"sk-test\n").unwrap();
    let added = child.wait_with_output().unwrap();
    assert!(added.status.success(), "{added:?}");
    world.configure(&format!("{}{}{settings}", worker("py", stub.port), worker("other", stub.port)));
    world.rule("version = 1\n[[rule]]\nid = \"all\"\ndecision = \"allow\"\nreason = \"a test\"\nwhen.action = [\"delegate\"]\n");
    let daemon = world.start();
    (world, daemon)
}

/// Runs a program in the jail; the task, and what it printed.
fn run(client: &Client, worker: &str, program: &str) -> (String, String) {
    let (task, reply) = client.delegate(worker, &format!("{ASK}\n{program}"), json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    let said = result["artifacts"]["details"]["stdout"].as_str().unwrap_or_default().trim().to_owned();
    (task, said)
}

fn told(world: &World, args: &[&str]) -> Value {
    let output = world.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn costs(world: &World, by: &str) -> Value {
    told(world, &["cost", "show", "--by", by, "--json"])
}

fn row<'a>(costs: &'a Value, key: &str) -> &'a Value {
    let rows = costs["rows"].as_array().unwrap();
    rows.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("no row {key}: {costs:#}"))
}

/// The forms of the four APIs: name, path, whether it streams, and the tokens that the stub tells.
const FORMS: [(&str, &str, bool, [u64; 5]); 9] = [
    ("anthropic", "/v1/messages", false, [100, 25, 0, 7, 3]),
    ("anthropic-sse", "/v1/messages", true, [100, 25, 0, 7, 3]),
    ("responses", "/v1/responses", false, [93, 25, 5, 7, 0]),
    ("responses-sse", "/v1/responses", true, [93, 25, 5, 7, 0]),
    ("chat", "/v1/chat/completions", false, [93, 25, 0, 7, 0]),
    ("chat-sse", "/v1/chat/completions", true, [93, 25, 0, 7, 0]),
    ("gemini", "/v1beta/models/x:generateContent", false, [93, 25, 5, 7, 0]),
    ("gemini-array", "/v1beta/models/x:streamGenerateContent", true, [93, 25, 5, 7, 0]),
    ("gemini-sse", "/v1beta/models/x:streamGenerateContent?alt=sse", true, [93, 25, 5, 7, 0]),
];

#[test]
fn tokens_of_four_apis_are_counted_whole_in_pieces_and_packed() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, "");
    let client = world.client(&daemon, "orch:a");
    let forms: Vec<_> = FORMS.iter().map(|(name, path, streams, _)| json!([name, path, streams])).collect();
    let program = format!(
        "
for name, path, streams in json.loads('''{}'''):
    for how in ('whole', 'split=1', 'zip=1'):
        more = {{'stream': True, 'stream_options': {{'include_usage': True}}}} if streams else {{}}
        status, said = call(name + '/' + how[:5], path + ('&' if '?' in path else '?') + how, **more)
        print(status, hashlib.sha256(said).hexdigest())
",
        Value::from(forms)
    );
    let (task, said) = run(&client, "py", &program);
    let calls = stub.calls();
    assert_eq!(calls.len(), 27);
    for (line, call) in said.lines().zip(&calls) {
        let sent: String = Sha256::digest(&call.said).iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(line, format!("200 {sent}"), "the answer comes as it was sent: {}", call.head);
        assert!(call.head.to_lowercase().contains("accept-encoding: identity"), "{}", call.head);
    }
    let by_model = costs(&world, "model");
    for (name, _, _, tokens) in FORMS {
        for how in ["whole", "split", "zip=1"] {
            let counted = &row(&by_model, &format!("{name}/{how}"))["counted"];
            let names = [
                "tokens_input",
                "tokens_output",
                "tokens_reasoning",
                "tokens_cache_read",
                "tokens_cache_write",
            ];
            let found = names.map(|it| counted[it].as_u64().unwrap());
            assert_eq!((found, counted["calls"].as_u64()), (tokens, Some(1)), "{name}/{how}");
            assert!(counted["tokens_guessed"].is_null(), "{name}/{how}: {counted}");
        }
    }
    let shown = told(&world, &["task", "show", &task, "--json"]);
    let sum: u64 = FORMS.iter().map(|(.., tokens)| tokens[0] * 3).sum();
    assert_eq!(
        (shown["counted"]["calls"].as_u64(), shown["counted"]["tokens_input"].as_u64()),
        (Some(27), Some(sum))
    );
    for by in ["agent", "day", "task"] {
        let all = costs(&world, by);
        let only = &all["rows"][0];
        assert_eq!(
            (only["counted"]["calls"].as_u64(), only["runs"].as_u64()),
            (Some(27), Some(0)),
            "{all:#}"
        );
        assert_eq!(all["total"]["counted"]["tokens_input"].as_u64(), Some(sum), "{all:#}");
    }
}

#[test]
fn a_stream_passes_on_before_it_ends_and_errors_as_they_are() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, "");
    let client = world.client(&daemon, "orch:a");
    // The second half is sent after the first one has arrived, and is not waited for in vain.
    let program = "
head = {'x-api-key': os.environ['API_KEY']}
body = json.dumps({'model': 'm', 'stream': True}).encode()
stream = urllib.request.urlopen(urllib.request.Request(os.environ['API_URL'] + '/v1/messages?split=1&wait=1', body, head), timeout=30)
print(stream.readline().decode().strip())
urllib.request.urlopen(urllib.request.Request(os.environ['API_URL'] + '/release', headers=head), timeout=30).read()
print(len(stream.read()) > 300)
print(ask('/v1/messages?fail=1', {'odd': '{\"error\": \"overloaded\"}'}))
";
    let (task, said) = run(&client, "py", program);
    assert_eq!(said, "event: message_start\nTrue\n(529, b'{\"error\": \"overloaded\"}')");
    let shown = told(&world, &["task", "show", &task, "--json"]);
    assert_eq!(shown["counted"]["tokens_output"], 25, "{shown:#}");
    assert!(
        shown["counted"]["tokens_guessed"].is_null(),
        "a service that refuses has used nothing: {shown:#}"
    );
}

#[test]
fn what_is_fetched_later_and_what_stands_behind_much_nesting_counts_too() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, "");
    let client = world.client(&daemon, "orch:a");
    let (open, close) = ("[".repeat(300), "]".repeat(300));
    let usage = r#""usage":{"input_tokens":100,"output_tokens":25}"#;
    let deep = format!(r#"{{"model":"deep","content":{open}"]}}[\"",{{"a":1}}{close},{usage}}}"#);
    let program = format!(
        "
print(ask('/v1/messages', {{'odd': json.loads(r'''{}''')}})[0])
fetched = urllib.request.Request(os.environ['API_URL'] + '/v1/responses', headers={{'x-api-key': os.environ['API_KEY']}})
print(len(urllib.request.urlopen(fetched, timeout=30).read()) > 50)
",
        json!(deep)
    );
    let (task, said) = run(&client, "py", &program);
    assert_eq!(said, "200\nTrue");
    let counted = told(&world, &["task", "show", &task, "--json"])["counted"].clone();
    assert_eq!((&counted["calls"], &counted["tokens_input"]), (&json!(2), &json!(193)), "{counted:#}");
}

#[test]
fn what_is_no_count_counts_as_nothing_and_breaks_nothing() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, "");
    let client = world.client(&daemon, "orch:a");
    let deep = "[".repeat(5_000);
    let odd = [
        r#"{"model":"odd","usage":{"input_tokens":-5,"output_tokens":"7000"}}"#,
        r#"{"model":"odd","usage":{"input_tokens":99999999999999999999999999,"output_tokens":1e9}}"#,
        r#"{"model":"odd","usage":{"input_tokens":{"usage":{"input_tokens":4}},"output_tokens":[5]}}"#,
        r#"{"model":"odd","content":[{"usage":{"input_tokens":6}}],"x":{"usage":{"input_tokens":6}}}"#,
        r#"{"model":"odd","usage":{"input_tokens":12.5,"output_tokens":1234567890123}"#,
        "not json at all {\"usage\":{\"input_tokens\":8}}",
        "\u{0}\u{1}\"usage\":{\"input_tokens\":8}",
        r#"}}}]]]{"usage":{"input_tokens":8}}"#,
        &deep,
    ];
    let program = format!(
        "
for odd in json.loads(r'''{}'''):
    status, said = ask('/v1/messages?split=1' if len(odd) < 1000 else '/v1/messages', {{'odd': odd}})
    print(status, said.decode() == odd)
print(call('fine')[0])
",
        json!(odd)
    );
    let (task, said) = run(&client, "py", &program);
    assert_eq!(said, format!("{}200", "200 True\n".repeat(odd.len())));
    let counted = &told(&world, &["task", "show", &task, "--json"])["counted"];
    assert_eq!(
        (&counted["tokens_input"], &counted["tokens_output"]),
        (&json!(100), &json!(25)),
        "{counted:#}"
    );
    assert_eq!(counted["calls"], odd.len() + 1, "the calls themselves are known: {counted:#}");
    assert!(counted["tokens_guessed"].as_u64() > Some(0), "and how large they were: {counted:#}");
}

#[test]
fn a_stream_without_its_numbers_or_its_end_is_guessed_and_called_so() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, "");
    let client = world.client(&daemon, "orch:a");
    let program = "
print(call('silent', '/v1/chat/completions', stream=True)[0])
print(call('cut', '/v1/messages?split=1&cut=1', stream=True)[0])
";
    let (_, said) = run(&client, "py", program);
    assert_eq!(said, "200\nIncompleteRead");
    let by_model = costs(&world, "model");
    let silent = &row(&by_model, "silent")["counted"];
    assert_eq!((&silent["calls"], &silent["tokens_output"]), (&json!(1), &json!(0)));
    assert!(silent["tokens_guessed"].as_u64() > Some(0), "{silent:#}");
    let cut = &row(&by_model, "cut")["counted"];
    assert_eq!(
        (&cut["tokens_input"], &cut["calls"]),
        (&json!(100), &json!(1)),
        "what was told counts: {cut:#}"
    );
    let output = world.command(&["cost", "show", "--by", "model"]).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(said.contains("are guessed, since their service did not tell them"), "{said}");
}

/// As Codex calls a service that does not say which model has answered.
#[test]
fn a_model_that_is_named_in_the_request_alone_has_its_tokens_its_price_and_its_budget() {
    let stub = ModelStub::start();
    let settings = "\n[[price]]\nmodel = \"m*\"\ninput = 3.0\noutput = 15\n[[budget]]\nper = \"day\"\nusd = 100\nask_at = 100\n";
    let (world, daemon) = world(&stub, settings);
    let client = world.client(&daemon, "orch:a");
    let program = "
for path in ('/v1/responses', '/v1/messages', '/v1/chat/completions'):
    for streams in (False, True):
        print(call('m-1', path + '?nameless=1', stream=streams, stream_options={'include_usage': True})[0])
";
    let (task, said) = run(&client, "py", program);
    assert_eq!(said, "200\n".repeat(6).trim());
    let by_model = costs(&world, "model");
    let counted = &row(&by_model, "m-1")["counted"];
    let read = 2 * (93 + 100 + 93);
    assert_eq!((&counted["calls"], &counted["tokens_input"]), (&json!(6), &json!(read)), "{by_model:#}");
    let shown = told(&world, &["task", "show", &task, "--json"])["counted"].clone();
    assert!(shown["cost_usd"].as_f64() > Some(0.0) && shown["unpriced"].is_null(), "{shown:#}");
}

#[test]
fn a_call_counts_whose_worker_goes_before_the_answer_begins() {
    let stub = ModelStub::start();
    let prices = "\n[[price]]\nmodel = \"m*\"\ninput = 3.0\noutput = 15\n[[budget]]\nper = \"repository\"\nusd = 100\nask_at = 100\n";
    let (world, daemon) = world(&stub, &format!("{}{prices}", STOP.replace("PER", "day")));
    let client = world.client(&daemon, "orch:a");
    let program = "
import socket, urllib.parse
at = urllib.parse.urlsplit(os.environ['API_URL'])
def begun(path, body, length=None):
    said = json.dumps(body).encode()
    head = f'POST {path}?late=1 HTTP/1.1\\r\\nHost: x\\r\\nx-api-key: {os.environ[\"API_KEY\"]}\\r\\ncontent-length: {length or len(said)}\\r\\n\\r\\n'
    it = socket.create_connection((at.hostname, at.port))
    it.sendall(head.encode() + said)
    return it
for n, (path, body) in enumerate((('/v1/messages', {'model': 'm-1', 'pad': 'x' * 400}), ('/v1/messages', {'pad': 'x' * 400, 'model': 'm-1'}),
                   ('/v1beta/models/m-2:generateContent', {'pad': 'x' * 400})), 1):
    it = begun(path, body)
    while ask('/how-many', {})[1] != str(n).encode(): pass
    if n < 3: it.close()
print('gone')
";
    // The last call is open when the run ends.
    let (_, said) = run(&client, "py", program);
    assert_eq!(said, "gone");
    let by_model = costs(&world, "model");
    for (model, calls) in [("m-1", 2), ("m-2", 1)] {
        let counted = &row(&by_model, model)["counted"];
        assert_eq!(counted["calls"], calls, "{by_model:#}");
        assert!(counted["tokens_guessed"].as_u64() >= Some(100 * calls), "{by_model:#}");
        assert_eq!(counted["tokens_output"], 0, "{by_model:#}");
    }
    // Its price is known, so that the budget in money goes on; that in tokens is used up.
    let (_, said) = run(&client, "other", &calls(1));
    assert!(said.starts_with("403") && said.contains("tokens of the 300 tokens"), "{said}");
    assert_eq!(stub.calls().len(), 3);
}

const STOP: &str = "\n[[budget]]\nper = \"PER\"\ntokens = 300\nask_at = 100\n";

/// Tries so many calls; prints the status of each, and why the last one was not made.
fn calls(count: u32) -> String {
    format!(
        "for n in range({count}):\n    status, said = call()\n    print(status)\nprint(said.decode() if status != 200 else '')"
    )
}

#[test]
fn a_budget_stops_between_two_calls_in_the_words_of_each_service() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, &STOP.replace("PER", "task"));
    let client = world.client(&daemon, "orch:a");
    let forms = "
for path, name in (('/v1/messages', 'a'), ('/v1/responses', 'b'), ('/v1/chat/completions', 'c'), ('/v1beta/models/x:generateContent', 'd'),
                   ('/v1//%6Dessages/', 'e'), ('/v1/messages/batches', 'f')):
    status, said = call(path=path)
    print(name, status, said.decode())
print(ask('/v1/messages/count_tokens', {'model': 'm'})[0])
";
    let (_, said) = run(&client, "py", &format!("{}{forms}", calls(3)));
    assert!(said.starts_with("200\n200\n200\n"), "135 tokens each: {said}");
    let why = |name: &str| {
        let line = said
            .lines()
            .find_map(|it| it.strip_prefix(&format!("{name} 403 ")))
            .unwrap_or_else(|| panic!("{name}: {said}"));
        serde_json::from_str::<Value>(line).unwrap()
    };
    assert_eq!(why("a")["type"], "error");
    let text = why("a")["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("405 tokens of the 300 tokens") && text.contains("[[budget]]"), "{text}");
    assert_eq!(
        (&why("b")["error"]["code"], &why("c")["error"]["code"]),
        (&json!("insufficient_quota"), &json!("insufficient_quota"))
    );
    assert_eq!(why("d")["error"]["status"], "PERMISSION_DENIED");
    assert_eq!(why("e")["error"]["type"], "permission_error", "another spelling is the same call");
    assert!(why("f").to_string().contains("cannot be counted"), "{said}");
    assert!(said.ends_with("\n200"), "to count costs nothing: {said}");
    assert_eq!(stub.calls().len(), 4);
    let journal = String::from_utf8(world.command(&["log", "--json"]).output().unwrap().stdout).unwrap();
    assert!(journal.contains("budget.warned") && journal.contains("budget.stopped"), "{journal}");
    let (_, next) = run(&client, "py", &calls(1));
    assert_eq!(next, "200", "another task has a budget of its own");
}

#[test]
fn what_workers_say_of_themselves_counts_neither_for_nor_against() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, &STOP.replace("PER", "day"));
    let client = world.client(&daemon, "orch:a");
    let lie =
        r#"print(json.dumps({'usage': {'input_tokens': 10**9, 'output_tokens': 10**9}, 'cost_usd': 1000}))"#;
    for _ in 0..2 {
        run(&client, "py", &format!("{lie}\ncall()"));
    }
    let (_, said) = run(&client, "other", &format!("{}\nprint(call()[0])", calls(1)));
    assert_eq!(said, "200\n\n403", "270 tokens were used before");
    let shown = costs(&world, "agent");
    assert_eq!(row(&shown, "py")["counted"]["tokens_input"], 200, "{shown:#}");
    assert_eq!(shown["budgets"][0]["state"], "stopped", "{shown:#}");
}

#[test]
fn a_budget_survives_the_daemons_death() {
    let stub = ModelStub::start();
    let (world, mut daemon) = world(&stub, &STOP.replace("PER", "repository"));
    let client = world.client(&daemon, "orch:a");
    run(&client, "py", &calls(2));
    // In the middle of a third call.
    let (_, reply) = client.delegate(
        "py",
        &format!("{ASK}\ncall(path='/v1/messages?split=1&wait=1', stream=True)"),
        json!({}),
    );
    reply.ack();
    eventually("the call is on its way", || stub.calls().len() == 3);
    eventually("what it has told is on record", || {
        costs(&world, "agent")["total"]["counted"]["tokens_input"].as_u64() >= Some(300)
    });
    daemon.kill();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (_, said) = run(&client, "other", &calls(1));
    assert!(said.starts_with("403"), "{said}");
    assert_eq!(stub.calls().len(), 3, "no call more");
}

#[test]
fn children_count_for_the_task_above_and_its_agent_under_any_name() {
    let stub = ModelStub::start();
    let settings = "\n[[budget]]\nper = \"task\"\ntokens = 300\nask_at = 100\n[[budget]]\nper = \"agent\"\nagent = \"client:lead\"\ntokens = 600\nask_at = 100\n";
    let (world, daemon) = world(&stub, settings);
    let (client, lead) = (world.client(&daemon, "orch:a"), world.client(&daemon, "client:lead"));
    let takes_on = || {
        let (task, reply) = client.delegate("client:lead", "lead it", json!({}));
        reply.ack();
        lead.poll_until(|it| it.to_string().contains(&task));
    };
    takes_on();
    assert_eq!(run(&lead, "py", &calls(2)).1, "200\n200");
    let (_, said) = run(&lead, "other", &calls(2));
    assert!(said.starts_with("200\n403") && said.contains("with all that it delegates"), "{said}");
    let (_, said) = run(&lead, "py", &calls(1));
    assert!(said.starts_with("403"), "a further child changes nothing: {said}");
    assert_eq!(run(&client, "py", &calls(1)).1, "200", "a task of another one has its own");
    // A second task of the same agent: the tasks' budgets are both its children's, and so is the agent's.
    let (_, said) = run(&lead, "py", &calls(1));
    assert!(said.starts_with("403"), "{said}");
}

/// The approvals that wait.
fn waiting(world: &World) -> Vec<Value> {
    let listed = told(world, &["approval", "list", "--json"]);
    listed.as_array().cloned().or_else(|| listed["approvals"].as_array().cloned()).unwrap()
}

#[test]
fn a_person_is_asked_before_a_budget_is_used_up_and_the_call_waits() {
    for (verdict, then) in [("approve", "200\n200\n200\n403"), ("deny", "200\n200\n403\n403")] {
        let stub = ModelStub::start();
        let (world, daemon) = world(&stub, "\n[[budget]]\nper = \"task\"\ntokens = 300\n");
        let client = world.client(&daemon, "orch:a");
        let (task, reply) = client.delegate("py", &format!("{ASK}\n{}", calls(4)), json!({}));
        reply.ack();
        eventually("a person is asked", || !waiting(&world).is_empty());
        assert_eq!(stub.calls().len(), 2, "the third call waits");
        let asked = waiting(&world);
        let text = asked[0].to_string();
        assert!(
            asked.len() == 1 && text.contains("270 tokens of the 300 tokens") && text.contains(&task),
            "{text}"
        );
        let number = asked[0]["id"].to_string().trim_matches('"').to_owned();
        let note = if verdict == "deny" { "--reason" } else { "--note" };
        let answered = at_the_terminal(&world, &format!("{verdict} {number} {note} because"));
        assert!(answered.status.success(), "{answered:?}");
        let result = client.result_of(&task);
        let said = result["artifacts"]["details"]["stdout"].as_str().unwrap_or_default();
        assert!(said.starts_with(then), "{verdict}: {said}");
        assert!(waiting(&world).is_empty());
    }
}

#[test]
fn money_is_counted_by_prices_and_held_back_without_one() {
    let stub = ModelStub::start();
    let settings = "\n[[price]]\nmodel = \"m*\"\ninput = 3.0\noutput = 15\ncache_read = 0.3\n[[budget]]\nper = \"day\"\nusd = 1\nask_at = 100\n";
    let (world, daemon) = world(&stub, settings);
    let client = world.client(&daemon, "orch:a");
    let (task, said) = run(
        &client,
        "py",
        "print(call('m-1')[0], call('m-1')[0])\nprint(call('dear')[0])\nprint(call('m-1')[1].decode())",
    );
    assert!(said.starts_with("200 200\n200\n") && said.contains("dear has no price"), "{said}");
    let counted = &told(&world, &["task", "show", &task, "--json"])["counted"];
    // 100 × 3 + 25 × 15 + 7 × 0.3 + 3 × 3 millionths, twice.
    let expected = 2.0 * (100.0 * 3.0 + 25.0 * 15.0 + 7.0 * 0.3 + 3.0 * 3.0) / 1e6;
    assert!((counted["cost_usd"].as_f64().unwrap() - expected).abs() < 2e-6, "{counted:#}");
    assert_eq!(counted["unpriced"], json!(["dear"]), "tokens alone, and said so: {counted:#}");
    let output = world.command(&["cost", "show"]).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(said.contains("no price for dear"), "{said}");
}

#[test]
fn what_an_agent_reports_is_shown_beside_what_was_counted() {
    let stub = ModelStub::start();
    let (world, daemon) = world(&stub, "");
    let client = world.client(&daemon, "orch:a");
    let program =
        "call()\nprint(json.dumps({'result': 'done', 'usage': {'input_tokens': 1, 'output_tokens': 2}}))";
    world.configure(&worker("py", stub.port).replace("\"text\"", "\"json\""));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    let (task, reply) = client.delegate("py", &format!("{ASK}\n{program}"), json!({}));
    reply.ack();
    client.result_of(&task);
    let differs = "the agent reports 3 tokens, the proxy counted 135";
    for args in [&["task", "show", &task][..], &["cost", "show"], &["cost", "show", "--by", "task"]] {
        let output = world.command(args).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains(differs), "{args:?}: {said}");
    }
    let all = costs(&world, "agent");
    let both = row(&all, "py");
    assert_eq!((&both["used"]["tokens_output"], &both["counted"]["tokens_output"]), (&json!(2), &json!(25)));
}

#[test]
fn what_the_runs_of_a_worker_use_is_among_the_metrics() {
    let stub = ModelStub::start();
    let collector = Receiver::plain();
    let settings = "\n[[price]]\nmodel = \"m*\"\ninput = 3.0\noutput = 15\n[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n";
    let (world, daemon) = world(&stub, &format!("{settings}{}", configured(collector.port, "")));
    let client = world.client(&daemon, "orch:a");
    run(&client, "py", "print(call()[0], call('unpriced')[0])");
    let metrics = || String::from_utf8(world.command(&["metrics"]).output().unwrap().stdout).unwrap();
    let has = |line: &str| metrics().lines().any(|it| it == line);
    eventually("the calls are counted", || has("provost_model_calls_total{worker=\"py\"} 2"));
    for line in [
        "provost_model_tokens_total{kind=\"input\",worker=\"py\"} 200",
        "provost_model_tokens_total{kind=\"output\",worker=\"py\"} 50",
        "provost_model_unpriced_calls_total{worker=\"py\"} 1",
        "provost_egress_refused_total{worker=\"py\"} 0",
    ] {
        assert!(has(line), "{line}: {}", metrics());
    }
    // What went over the network is told when the run is over: headers and bodies of two calls.
    let value = |name: &str| {
        let text = metrics();
        let line = text.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |it| it.parse::<f64>().unwrap())
    };
    let received = "provost_egress_bytes_total{direction=\"received\",worker=\"py\"}";
    eventually("its bytes are counted", || value(received) > 200.0);
    assert!(value("provost_egress_bytes_total{direction=\"sent\",worker=\"py\"}") > 200.0);
    let cost = value("provost_model_cost_usd_total{worker=\"py\"}");
    assert!((0.0003..0.01).contains(&cost), "{cost}");
    assert!(!metrics().contains("worker=\"other\""));
    // A collector gets the same, under the same names.
    let py = ("worker", "py");
    let sent = until_some("the collector has what went over the network", || {
        let all = sent_metrics(&collector);
        let received = sample(&all, "provost_egress_bytes_total", &[py, ("direction", "received")]);
        let calls = sample(&all, "provost_model_calls_total", &[py]);
        (received > Some(0.0) && calls == Some(2.0)).then_some(all)
    });
    for (name, more) in [
        ("provost_egress_bytes_total", Some(("direction", "sent"))),
        ("provost_egress_bytes_total", Some(("direction", "received"))),
        ("provost_egress_refused_total", None),
        ("provost_model_calls_total", None),
        ("provost_model_cost_usd_total", None),
        ("provost_model_tokens_total", Some(("kind", "input"))),
        ("provost_model_tokens_total", Some(("kind", "output"))),
        ("provost_model_unpriced_calls_total", None),
    ] {
        let labels: Vec<_> = more.into_iter().chain([py]).collect();
        let written: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let at_metrics = value(&format!("{name}{{{}}}", written.join(",")));
        assert_eq!(sample(&sent, name, &labels), Some(at_metrics), "{name} {labels:?}");
    }
}
