//! `provost agent add`, `remove` and `try`, and `provost cost`, with stand-ins for the vendors' programs.
//! They write what the real ones wrote; `fixtures/agents/recorded` has that.

mod cost;
mod hostile;
mod spoken;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::support::World;
use crate::support::rules::ALLOW;
use crate::support::webserver::Server;

/// The key, which no test may find anywhere.
const KEY: &str = "sk-test-0123456789abcdef-NEVER-SEEN";

const STAND_IN: &str = include_str!("../fixtures/agents/vendor.py");

/// Each recording, by its name.
const RECORDED: [(&str, &str); 19] = [
    ("claude-401", include_str!("../fixtures/agents/recorded/claude-401.jsonl")),
    ("claude-429", include_str!("../fixtures/agents/recorded/claude-429.jsonl")),
    ("claude-max-turns", include_str!("../fixtures/agents/recorded/claude-max-turns.jsonl")),
    ("claude-no-key", include_str!("../fixtures/agents/recorded/claude-no-key.jsonl")),
    ("claude-ok", include_str!("../fixtures/agents/recorded/claude-ok.jsonl")),
    ("claude-quota", include_str!("../fixtures/agents/recorded/claude-quota.jsonl")),
    ("codex-401", include_str!("../fixtures/agents/recorded/codex-401.jsonl")),
    ("codex-429", include_str!("../fixtures/agents/recorded/codex-429.jsonl")),
    ("codex-ok", include_str!("../fixtures/agents/recorded/codex-ok.jsonl")),
    ("codex-quota", include_str!("../fixtures/agents/recorded/codex-quota.jsonl")),
    ("copilot-401", include_str!("../fixtures/agents/recorded/copilot-401.jsonl")),
    ("copilot-ok", include_str!("../fixtures/agents/recorded/copilot-ok.jsonl")),
    ("copilot-quota", include_str!("../fixtures/agents/recorded/copilot-quota.jsonl")),
    ("gemini-401", include_str!("../fixtures/agents/recorded/gemini-401.jsonl")),
    ("gemini-ok", include_str!("../fixtures/agents/recorded/gemini-ok.jsonl")),
    ("opencode-401", include_str!("../fixtures/agents/recorded/opencode-401.jsonl")),
    ("opencode-ok", include_str!("../fixtures/agents/recorded/opencode-ok.jsonl")),
    ("qwen-401", include_str!("../fixtures/agents/recorded/qwen-401.jsonl")),
    ("qwen-ok", include_str!("../fixtures/agents/recorded/qwen-ok.jsonl")),
];

/// The folder with the stand-ins, outside of the repository.
fn vendors(world: &World) -> PathBuf {
    let folder = world.path("vendors");
    for (name, text) in RECORDED {
        world.put(&folder.join("recorded").join(format!("{name}.jsonl")), text);
    }
    for name in ["claude", "codex", "copilot", "gemini", "opencode", "qwen"] {
        plant(world, &folder.join(name));
    }
    // Their folder is recognised as their installation by this alone.
    let bin = json!({ "claude": "", "codex": "", "copilot": "", "gemini": "", "opencode": "", "qwen": "" });
    world.put(&folder.join("package.json"), &json!({ "bin": bin }).to_string());
    folder
}

fn plant(world: &World, path: &std::path::Path) {
    world.put(path, STAND_IN);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A command with the stand-ins on its `PATH`.
fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    command.env("PATH", format!("{}:/usr/bin:/bin", world.path("vendors").display()));
    command
}

fn at(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

/// Adds a program whose model's service is this one.
fn add(world: &World, server: &Server, program: &str, more: &[&str]) -> Output {
    let upstream = at(server);
    let args =
        [&["agent", "add", program, "--one-shot", "--upstream", &upstream, "--key-from", "MY_KEY"], more]
            .concat();
    command(world, &args).env("MY_KEY", KEY).output().unwrap()
}

#[track_caller]
fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    said(output)
}

fn said(output: &Output) -> String {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(KEY) && !text.contains("NEVER-SEEN"), "the key was printed: {text}");
    text
}

fn settings(world: &World) -> PathBuf {
    world.config_dir().join("provost.toml")
}

fn text_of(world: &World) -> String {
    std::fs::read_to_string(settings(world)).unwrap_or_default()
}

fn secrets(world: &World) -> Vec<String> {
    let list = command(world, &["secret", "list", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn tried(world: &World, name: &str) -> (i32, Value) {
    let output = command(world, &["agent", "try", name, "--json", "--no-start"]).output().unwrap();
    said(&output);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().unwrap(), value)
}

#[test]
fn one_line_adds_a_program_that_answers_and_the_key_stays_outside() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    let before = "# mine\n[log]\nlevel = \"info\" # stays\n";
    world.configure(before);
    world.rule(ALLOW);
    let text = ok(&add(&world, &server, "claude", &[]));
    assert!(text.contains("next: provost agent try claude"), "{text}");
    let file = text_of(&world);
    assert!(file.starts_with(before) && file.contains("id = \"claude\""), "{file}");
    assert!(!file.contains("NEVER-SEEN"), "{file}");
    assert_eq!(secrets(&world), ["anthropic"]);

    let _daemon = world.start();
    let (code, answer) = tried(&world, "claude");
    assert_eq!(
        (code, &answer["ok"], &answer["answer"]),
        (0, &json!(true), &json!("PROVOST-READY")),
        "{answer}"
    );
    assert_eq!(answer["usage"]["tokens_cache_read"], 14, "{answer}");
    let heard = server.heard().join("\n");
    assert!(heard.contains(&format!("x-api-key: {KEY}")), "{heard}");

    let look = command(&world, &["delegate", "--worker", "claude", "--wait", "--json", "LOOK around"])
        .output()
        .unwrap();
    assert!(ok(&look).contains("NOT SEEN"), "{look:?}");
    let log = command(&world, &["log", "--json", "--limit", "1000"]).output().unwrap();
    assert!(said(&log).contains("secrets.given"), "{log:?}");
    assert!(!world.log().contains("NEVER-SEEN"));
}

#[test]
fn each_program_is_started_as_it_expects_and_its_stream_is_read() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    let model = ["--model", "a-model"];
    // The answer, and the tokens that were read, of the cache, and written.
    let programs: [(&str, &[&str], Value); 5] = [
        ("codex", &[], json!([93, 7, 25])),
        ("gemini", &[], json!([186, 14, 50])),
        ("opencode", &model, json!([186, 14, 50])),
        ("copilot", &model, json!([null, null, null])),
        ("qwen", &model, json!([186, 14, 50])),
    ];
    for (program, more, _) in &programs {
        let secret = format!("key-of-{program}");
        ok(&add(&world, &server, program, &[*more, &["--secret", &secret]].concat()));
    }
    let _daemon = world.start();
    for (program, _, tokens) in &programs {
        let (code, answer) = tried(&world, program);
        assert_eq!((code, &answer["answer"]), (0, &json!("PROVOST-READY")), "{program}: {answer}");
        let used = &answer["usage"];
        let found = json!([used["tokens_input"], used["tokens_cache_read"], used["tokens_output"]]);
        assert_eq!(found, *tokens, "{program}: {answer}");
        // A person who waits reads words, and the messages themselves only with --raw.
        let watched = ["delegate", "--worker", program, "--wait", "Do it."];
        let shown = ok(&command(&world, &watched).output().unwrap());
        assert!(shown.lines().any(|it| it == "Done.") && !shown.contains("{\""), "{program}: {shown}");
        let raw = ok(&command(&world, &[&watched[..], &["--raw"]].concat()).output().unwrap());
        assert!(raw.contains("{\""), "{program}: {raw}");
    }
    assert!(server.heard().iter().all(|head| head.contains(KEY)), "{:?}", server.heard());
}

/// How runs end that the model's service does not serve: the program, the recording, and the words that reach
/// the asker.
const ENDINGS: [(&str, &str, &str, &str); 12] = [
    ("claude", "401", "Invalid API key · Fix external API key", "another key"),
    ("claude", "429", "This request would exceed your account rate limit", "wait a while"),
    ("claude", "quota", "Credit balance is too low", "the account"),
    ("claude", "no-key", "Not logged in · Please run /login", "another key"),
    ("claude", "max-turns", "Reached maximum number of turns (1)", "provost task show"),
    ("codex", "401", "401 Unauthorized: Incorrect API key provided", "another key"),
    ("codex", "429", "last status: 429 Too Many Requests", "wait a while"),
    ("codex", "quota", "Quota exceeded. Check your plan and billing details.", "the account"),
    ("gemini", "401", "API key not valid. Please pass a valid API key.", "another key"),
    ("opencode", "401", "Incorrect API key provided.", "another key"),
    ("copilot", "quota", "429 You exceeded your current quota", "the account"),
    ("qwen", "401", "401 Incorrect API key provided.", "another key"),
];

#[test]
fn errors_of_the_models_service_reach_the_asker_in_its_own_words() {
    let world = World::new();
    vendors(&world);
    world.rule(ALLOW);
    let servers: Vec<Server> = ENDINGS.iter().map(|(_, ending, ..)| Server::saying(ending)).collect();
    for ((program, ending, ..), server) in ENDINGS.iter().zip(&servers) {
        let name = format!("{program}-{ending}");
        ok(&add(&world, server, program, &["--name", &name, "--secret", &name, "--model", "a-model"]));
    }
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    for (program, ending, words, next) in ENDINGS {
        let name = format!("{program}-{ending}");
        let (code, answer) = tried(&world, &name);
        let first = &answer["missing"][0];
        assert_eq!((code, &answer["ok"]), (1, &json!(false)), "{name}: {answer}");
        assert!(first["what"].as_str().unwrap().contains(words), "{name}: {answer}");
        assert!(first["next"].as_str().unwrap().contains(next), "{name}: {answer}");
        // For a person, and at DevIt's door, it is the same words.
        let task = answer["task"].as_str().unwrap();
        let shown = command(&world, &["task", "show", task]).output().unwrap();
        assert!(ok(&shown).contains(words), "{name}: {shown:?}");
        let (task, reply) = client.delegate(&name, "Do it.", json!({}));
        reply.ack();
        let result = client.result_of(&task);
        assert_eq!(result["status"], "failed", "{name}: {result}");
        assert!(result.to_string().contains(words), "{name}: {result}");
    }
}

#[test]
fn an_entry_is_refused_with_the_next_step_and_nothing_is_left() {
    let world = World::new();
    let folder = vendors(&world);
    let server = Server::saying("ok");
    world.configure("[[agent]]\nid = \"claude\"\ncommand = [\"/bin/true\"]\n");
    let before = text_of(&world);
    let refused = |args: &[&str], words: &[&str]| {
        let output = command(&world, args).env("MY_KEY", KEY).output().unwrap();
        let text = said(&output);
        assert!(!output.status.success(), "{args:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{args:?}: {word} is not in {text}");
        }
        assert_eq!((text_of(&world), secrets(&world).len()), (before.clone(), 0), "{args:?}");
    };
    let key = ["--key-from", "MY_KEY"];
    refused(
        &["agent", "add", "claude"],
        &["is the name of an agent already", "provost agent remove claude", "--name"],
    );
    refused(&["agent", "add", "claude", "--name", "shell"], &["the built-in worker"]);
    refused(&["agent", "add", "cluade"], &["did you mean claude?"]);
    refused(&["agent", "add", "../claude"], &["is no program that is known here"]);
    refused(&["agent", "add", "claude", "--name", "../x"], &["--name ../x is no name for an agent"]);
    refused(&["agent", "add", "opencode"], &["needs the name of a model", "--model NAME"]);
    refused(
        &["agent", "add", "codex"],
        &["no credential for Codex was found", "OPENAI_API_KEY", "codex login"],
    );
    refused(&["agent", "add", "codex", "--key-from", "OPENAI_API_KYE"], &["did you mean OPENAI_API_KEY"]);
    refused(&["agent", "add", "codex", "--key-from", "-"], &["the value is empty"]);
    refused(
        &["agent", "add", "codex", "--secret", "mine"],
        &["the vault has no secret `mine`", "--key-from"],
    );
    refused(
        &[&["agent", "add", "codex", "--upstream", "http://example.org"][..], &key].concat(),
        &["loopback"],
    );

    // A program that another user could replace, and one that a worker may have made.
    let shared = world.path("shared");
    plant(&world, &shared.join("codex"));
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o777)).unwrap();
    let named = shared.join("codex");
    let at = ["agent", "add", "codex", "--program", named.to_str().unwrap()];
    refused(&[&at[..], &key].concat(), &["is not started", "can be written by others"]);
    plant(&world, &world.repo().join("bin/codex"));
    let planted = world.repo().join("bin/codex");
    let at = ["agent", "add", "codex", "--program", planted.to_str().unwrap()];
    refused(&[&at[..], &key].concat(), &["lies in the repository"]);
    let link = world.path("link");
    symlink(&planted, &link).unwrap();
    let at = ["agent", "add", "codex", "--program", link.to_str().unwrap()];
    refused(&[&at[..], &key].concat(), &["lies in the repository"]);
    let mut only = command(&world, &["agent", "add", "codex"]);
    only.env("PATH", format!("{}:bin", world.repo().join("bin").display())).env("OPENAI_API_KEY", KEY);
    let text = said(&only.output().unwrap());
    assert!(text.contains("is never started") && text.contains("npm install -g @openai/codex"), "{text}");
    std::fs::remove_file(folder.join("codex")).unwrap();
    refused(
        &[&["agent", "add", "codex"][..], &key].concat(),
        &["Codex is not on this machine", "npm install"],
    );
    assert_eq!(server.heard().len(), 0);
}

#[test]
fn a_file_of_settings_that_cannot_be_written_leaves_no_secret_behind() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    let elsewhere = world.path("elsewhere.toml");
    world.put(&elsewhere, "# somebody's\n");
    std::fs::create_dir_all(world.config_dir()).unwrap();
    symlink(&elsewhere, settings(&world)).unwrap();
    let output = add(&world, &server, "claude", &[]);
    assert!(said(&output).contains("is a symbolic link") && !output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "# somebody's\n");
    std::fs::remove_file(settings(&world)).unwrap();

    world.configure("agent = 3\n");
    let output = add(&world, &server, "claude", &[]);
    assert!(!output.status.success(), "{output:?}");
    said(&output);
    assert_eq!(text_of(&world), "agent = 3\n");

    world.configure("[log\n");
    assert!(!add(&world, &server, "claude", &[]).status.success());
    assert_eq!(text_of(&world), "[log\n");
    world.configure("");
    assert_eq!(secrets(&world), Vec::<String>::new());
    // An entry that the settings do not take is taken back, with its secret.
    let many: String =
        (0..64).map(|n| format!("[[agent]]\nid = \"a{n}\"\ncommand = [\"/bin/true\"]\n")).collect();
    world.configure(&many);
    let output = add(&world, &server, "claude", &[]);
    assert!(said(&output).contains("would not count") && !output.status.success(), "{output:?}");
    assert_eq!((text_of(&world), secrets(&world).len()), (many, 0));
    world.configure("");
    // Nothing at all is written by a dry run.
    let text = ok(&add(&world, &server, "claude", &["--dry-run"]));
    assert!(text.contains("[[agent]]") && text.contains("would be added"), "{text}");
    assert_eq!((text_of(&world), secrets(&world).len()), (String::new(), 0));
}

#[test]
fn what_is_removed_is_the_entry_and_all_else_stays_to_the_letter() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    let (head, tail) = (
        "# the first\n[log]\nlevel = \"info\"\n",
        "\n# about the other one\n[[agent]]\nid = \"other\" # mine\ncommand = [\"/bin/true\", '''\n[[agent]]\n''']\n[agent.env]\nA = \"1\"\n\n# the last\n",
    );
    world.configure(head);
    ok(&add(&world, &server, "claude", &[]));
    world.configure(&format!("{}{tail}", text_of(&world)));
    ok(&add(&world, &server, "gemini", &[]));
    let gone = ok(&command(&world, &["agent", "remove", "gemini"]).output().unwrap());
    assert!(gone.contains("is removed") && gone.contains("its secret `gemini` stays"), "{gone}");
    ok(&command(&world, &["agent", "remove", "claude"]).output().unwrap());
    assert_eq!(text_of(&world), format!("{head}{tail}"));
    let gone = command(&world, &["agent", "remove", "othr"]).output().unwrap();
    assert!(said(&gone).contains("did you mean other?") && gone.status.code() == Some(4), "{gone:?}");
    // The secret is the person's, and is used again.
    assert_eq!(secrets(&world), ["anthropic", "gemini"]);
    let again = command(&world, &["agent", "add", "claude", "--json"]).output().unwrap();
    let again: Value = serde_json::from_str(&ok(&again)).unwrap();
    assert_eq!((&again["secret"]["new"], &again["secret"]["name"]), (&json!(false), &json!("anthropic")));
}

#[test]
fn an_entry_in_the_repository_counts_when_it_was_allowed() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    let text = ok(&add(&world, &server, "claude", &["--in", "repo"]));
    assert!(text.contains("next: provost config allow .provost/provost.toml"), "{text}");
    let list = |world: &World| command(world, &["agent", "try", "claude", "--no-start"]).output().unwrap();
    let text = said(&list(&world));
    assert!(
        text.contains("no agent claude is configured") && text.contains("provost config allow"),
        "{text}"
    );
    ok(&command(&world, &["config", "allow", ".provost/provost.toml", "--yes"]).output().unwrap());
    assert!(said(&list(&world)).contains("no daemon runs"));
}

/// A token of this time to live, as a service makes it.
fn jwt(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let coded = |value: Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.NEVER-SEEN", coded(json!({ "alg": "none" })), coded(json!({ "exp": now + seconds })))
}

#[test]
fn a_log_in_stays_in_its_programs_file_and_is_read_for_each_run() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    let add = |world: &World| {
        command(world, &["agent", "add", "codex", "--upstream", &at(&server)]).output().unwrap()
    };
    log_in(&world, &jwt(3_600), "acct-1");
    std::fs::set_permissions(auth_json(&world), std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = add(&world);
    assert!(
        said(&output).contains("chmod 600")
            && !said(&output).contains("provost secret list")
            && !output.status.success(),
        "{output:?}"
    );
    assert_eq!((text_of(&world), secrets(&world).len()), (String::new(), 0));
    log_in(&world, &jwt(3_600), "acct-1");
    ok(&add(&world));
    let _daemon = world.start();
    assert_eq!(tried(&world, "codex").0, 0);
    // Another token, as the program renews it: the next run has it, without a reload.
    let renewed = jwt(7_200);
    log_in(&world, &renewed, "acct-2");
    assert_eq!(tried(&world, "codex").0, 0);
    let heard = server.heard();
    assert!(heard[0].contains("chatgpt-account-id: acct-1"), "{heard:?}");
    let last = heard.last().unwrap();
    assert!(
        last.contains("chatgpt-account-id: acct-2") && last.contains(&format!("Bearer {renewed}")),
        "{last}"
    );
}

fn auth_json(world: &World) -> PathBuf {
    world.home().join(".codex/auth.json")
}

/// Writes the file that Codex keeps after a log-in.
fn log_in(world: &World, token: &str, account: &str) {
    let tokens =
        json!({ "access_token": token, "account_id": account, "refresh_token": KEY, "id_token": "i" });
    let file = json!({ "tokens": tokens, "last_refresh": "2026-01-01T00:00:00Z", "mine": 1 });
    world.put(&auth_json(world), &file.to_string());
    std::fs::set_permissions(auth_json(world), std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Has the vault's log-in be renewed here instead of at its service.
fn renewed_at(world: &World, server: &Server) {
    let file = world.config_dir().join("secrets/codex-login.toml");
    let kept = std::fs::read_to_string(&file).unwrap();
    let endpoint = format!("endpoint = \"{}/oauth/token\"", at(server));
    let line = |line: &str| if line.starts_with("endpoint = ") { endpoint.clone() } else { line.to_owned() };
    let text: Vec<String> = kept.lines().map(line).collect();
    std::fs::write(&file, text.join("\n")).unwrap();
}

#[test]
fn an_expired_log_in_is_renewed_outside_of_the_jail_or_said_to_be_over() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    log_in(&world, &jwt(-5), "acct-1");
    ok(&command(&world, &["agent", "add", "codex", "--upstream", &at(&server)]).output().unwrap());
    let _daemon = world.start();
    let fresh = jwt(3_600);
    let service = Server::saying(&json!({ "access_token": fresh, "refresh_token": "rt-2" }).to_string());
    renewed_at(&world, &service);
    let (code, answer) = tried(&world, "codex");
    assert_eq!(code, 0, "{answer}");
    let heard = server.heard();
    assert!(heard[0].contains(&format!("Bearer {fresh}")) && !heard[0].contains(KEY), "{heard:?}");
    assert!(service.heard()[0].starts_with("POST /oauth/token HTTP/1.1"), "{:?}", service.heard());
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(auth_json(&world)).unwrap()).unwrap();
    assert_eq!(
        (&kept["tokens"]["access_token"], &kept["tokens"]["refresh_token"]),
        (&json!(fresh), &json!("rt-2"))
    );
    assert_eq!(
        (&kept["tokens"]["account_id"], &kept["mine"]),
        (&json!("acct-1"), &json!(1)),
        "all else stays"
    );
    assert_ne!(kept["last_refresh"], "2026-01-01T00:00:00Z");
    assert_eq!(std::fs::metadata(auth_json(&world)).unwrap().permissions().mode() & 0o777, 0o600);
    // One that is good is not renewed.
    assert_eq!((tried(&world, "codex").0, service.heard().len()), (0, 1));

    let refusing = "HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnever";
    let service = Server::answering(std::net::Ipv4Addr::LOCALHOST.into(), refusing.into());
    renewed_at(&world, &service);
    log_in(&world, &jwt(-5), "acct-1");
    let before = std::fs::read(auth_json(&world)).unwrap();
    let (code, answer) = tried(&world, "codex");
    let what = answer["missing"][0]["what"].as_str().unwrap();
    assert!(
        code == 1 && what.contains("has not renewed it (status 400)") && what.contains("codex login"),
        "{answer}"
    );
    assert_eq!(std::fs::read(auth_json(&world)).unwrap(), before);
    assert_eq!(server.heard().len(), 2, "no run went on without it");
    assert!(!world.log().contains("NEVER-SEEN"));
}

#[test]
fn a_subscriptions_token_is_added_to_requests_that_the_program_marks_by_itself() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    let mut add = command(&world, &["agent", "add", "claude", "--upstream", &at(&server)]);
    ok(&add.env("CLAUDE_CODE_OAUTH_TOKEN", KEY).output().unwrap());
    assert_eq!(secrets(&world), ["claude-subscription"]);
    let _daemon = world.start();
    assert_eq!(tried(&world, "claude").0, 0);
    let heard = server.heard().join("\n").to_lowercase();
    assert!(heard.contains(&format!("authorization: bearer {}", KEY.to_lowercase())), "{heard}");
    assert!(heard.contains("anthropic-beta: oauth-2025-04-20"), "{heard}");
}

#[test]
fn what_is_missing_is_said_before_a_run_and_after_it() {
    let world = World::new();
    let folder = vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    ok(&add(&world, &server, "claude", &[]));
    ok(&add(&world, &server, "gemini", &[]));
    ok(&command(&world, &["secret", "remove", "gemini"]).output().unwrap());
    std::fs::remove_file(folder.join("claude")).unwrap();
    let (code, answer) = tried(&world, "claude");
    assert!(
        code == 1 && answer["missing"][0]["what"].as_str().unwrap().contains("is not there any more"),
        "{answer}"
    );
    let (code, answer) = tried(&world, "gemini");
    assert!(
        code == 1 && answer["missing"][0]["what"].as_str().unwrap().contains("no secret `gemini`"),
        "{answer}"
    );
    let unknown = command(&world, &["agent", "try", "gemni"]).output().unwrap();
    assert!(said(&unknown).contains("did you mean gemini?"));
}
