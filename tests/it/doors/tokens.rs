//! Tokens: who gets one, what it is good for, and what its name is worth to those who have none.

use serde_json::json;

use crate::support::loopback_client::{Answer, Http};
use crate::support::tokens::{mint, run, run_json};
use crate::support::wit_client::Wit;
use crate::support::{Daemon, World, eventually};

/// A path that nothing is at, with a token.
fn with(door: Http, token: &str) -> Answer {
    door.send("GET /nowhere", &[("Authorization", &format!("Bearer {token}"))], b"")
}

/// Whether a name can be used at the own API, as a process of this user that shows nothing.
fn is_free(world: &World, agent: &str) -> bool {
    let (code, _, err) = run(world, &["intent", "declare", "--as", agent, "--file", "README.md", "x"]);
    assert!(code == 0 || err.contains("token"), "{code} {err}");
    code == 0
}

fn started() -> (World, Daemon) {
    let world = World::new();
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    let daemon = world.start();
    (world, daemon)
}

#[test]
fn a_token_is_good_until_it_is_revoked_and_over_restarts() {
    let (world, daemon) = started();
    let token = mint(&world, "feat-auth");
    for door in [Http::agent_protocol(&world), Http::broker(&world)] {
        assert_eq!(with(door, &token).status, 404, "good");
    }
    let listed = run_json(&world, &["token", "list", "--json"]);
    assert_eq!(listed[0]["agent"], "feat-auth");
    assert_eq!(listed[0]["scopes"], json!(["read", "join", "coordinate"]));
    assert!(!listed.to_string().contains(&token), "what is kept is a digest");
    drop(daemon); // As a power cut would.
    let _daemon = world.start();
    let doors = [Http::agent_protocol(&world), Http::broker(&world)];
    assert!(doors.iter().all(|door| with(*door, &token).status == 404));
    let other = mint(&world, "feat-auth");
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(run(&world, &["token", "revoke", id]).0, 0);
    for door in doors {
        assert_eq!(with(door, &token).status, 401);
        assert_eq!(with(door, &other).status, 404, "another one is untouched");
    }
    assert_eq!(run(&world, &["token", "revoke", "--of", "feat-auth"]).0, 0);
    assert!(doors.iter().all(|door| with(*door, &other).status == 401));
    assert_eq!(run(&world, &["token", "revoke", id]).0, 1, "there is none any more");
    // Neither the token nor anything that it could be got from is anywhere in the store.
    let bytes = std::fs::read(world.state_dir().join("provost.db")).unwrap();
    assert!(!bytes.windows(token.len()).any(|it| it == token.as_bytes()));
}

#[test]
fn whatever_is_no_good_token_is_answered_alike() {
    let (world, _daemon) = started();
    let token = mint(&world, "ada");
    let revoked = mint(&world, "bob");
    assert_eq!(run(&world, &["token", "revoke", "--of", "bob"]).0, 0);
    let short = &token[..token.len() - 1];
    let long = "x".repeat(10_000);
    let shown = [
        format!("Bearer {revoked}"),
        format!("Bearer {short}"),
        format!("Bearer {}", token.to_uppercase()),
        format!("Bearer {token}x"),
        format!("Bearer {token} {token}"),
        format!("Bearer {long}"),
        format!("Bearer {}", &token[5..]),
        "Bearer ".into(),
        "Bearer".into(),
        String::new(),
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer {token}\r\nAuthorization: Bearer {token}"),
    ];
    for door in [Http::agent_protocol(&world), Http::broker(&world)] {
        let mut answers = Vec::new();
        for header in &shown {
            let answer = door.send("GET /nowhere", &[("Authorization", header)], b"");
            assert_eq!(answer.status, 401, "{header}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            answers.push(answer.body);
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "the same words for every cause");
        assert_eq!(
            door.send("GET /nowhere", &[("Authorization", &format!("bEARER  {token}"))], b"").status,
            404
        );
    }
}

#[test]
fn a_door_may_demand_a_token_of_everybody() {
    let world = World::new();
    world.configure("[agent_protocol]\nauth = \"token\"\n");
    let _daemon = world.start();
    let (demands, trusts) = (Http::agent_protocol(&world), Http::broker(&world));
    assert_eq!(demands.get("/nowhere").status, 401);
    assert_eq!(demands.get("/nowhere").header("www-authenticate"), Some("Bearer"));
    let says = demands.get("/nowhere").json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(says.starts_with("Unauthorized: ") && says.contains("provost token mint"), "{says}");
    assert_eq!(trusts.get("/nowhere").status, 404);
    let token = mint(&world, "ada");
    assert_eq!(with(demands, &token).status, 404);
    // The other checks come first, and hold for those with a token too.
    let header = format!("Bearer {token}");
    let foreign = [("Host", "evil.example"), ("Authorization", header.as_str())];
    assert_eq!(demands.bare("GET /nowhere", &foreign, b"").status, 403);
}

#[test]
fn a_name_with_a_token_is_nobody_elses_and_free_again_without() {
    let (world, _daemon) = started();
    std::fs::create_dir(world.repo().join(".wit")).unwrap();
    let wit = Wit::of(&world);
    eventually("the wit door", || wit.socket.exists() && wit.answers());
    let register = || wit.call("register", Some(&json!({ "sessionId": "ada", "name": "Ada" })));
    assert!(is_free(&world, "ada"));
    let token = mint(&world, "ada");
    assert!(!is_free(&world, "ada"));
    assert_eq!(register()["error"]["message"], "SESSION_RESERVED");
    // With the token, our own commands speak as that agent, and as no other.
    let with_token = |agent: &str| {
        let mut command =
            world.command(&["intent", "declare", "--as", agent, "--file", "README.md", "with proof"]);
        command.env("PROVOST_TOKEN", &token).status().unwrap().success()
    };
    assert!(with_token("ada"));
    assert!(!with_token("bob"));
    assert_eq!(run(&world, &["token", "revoke", "--of", "ada"]).0, 0);
    assert!(is_free(&world, "ada"));
    assert!(register()["error"].is_null());
    assert!(!with_token("ada"), "a token that was shown must be good");
}

#[test]
fn the_secret_that_all_share_does_not_speak_for_an_agent_whose_token_was_not_got_with_it() {
    let (world, daemon) = started();
    let (ada, bob) = (world.client(&daemon, "ada"), world.client(&daemon, "bob"));
    let ack = ada.say("REGISTER", json!({ "caps": [], "pid": 1, "token": true })).ack();
    let token = ack["token"].as_str().unwrap().to_owned();
    assert!(ack["token_expires_at"].as_str().unwrap().contains('T'));
    assert!(bob.say("REGISTER", json!({ "caps": [], "pid": 1 })).ack().get("token").is_none());
    let door = Http::broker(&world);
    assert_eq!(with(door, &token).status, 404);
    assert!(!is_free(&world, "ada"), "a token got by REGISTER keeps the name too");
    ada.say("REGISTER", json!({ "caps": [] })).ack();
    mint(&world, "bob");
    assert_eq!(bob.say("HEARTBEAT", json!({})).code(), "E_FORBIDDEN");
    assert_eq!(bob.say("REGISTER", json!({ "caps": [], "token": true })).code(), "E_FORBIDDEN");
    assert!(run(&world, &["token", "revoke", "--of", "bob"]).0 == 0);
    bob.say("REGISTER", json!({ "caps": [] })).ack();
}

#[test]
fn who_may_have_a_token_made_and_for_what() {
    let (world, _daemon) = started();
    for name in ["provost", "user:ada", "human"] {
        let (code, _, err) = run(&world, &["token", "mint", name]);
        assert!(code == 4 && err.contains("never has a token"), "{name}: {code} {err}");
    }
    for scopes in ["approve", "operate", "host", "read,approve", "everything", ""] {
        let (code, _, err) = run(&world, &["token", "mint", "ada", "--scopes", scopes]);
        assert!(code != 0 && !err.is_empty(), "{scopes}: {code} {err}");
    }
    let reader = run(&world, &["token", "mint", "ada", "--scopes", "read", "--ttl", "2h"]).1;
    let tokens = run_json(&world, &["token", "list", "--json"]);
    assert_eq!(tokens[0]["scopes"], json!(["read"]));
    // An agent has none made for another, ends none of another's, and gives nothing on that it does not have.
    let worker = run(&world, &["token", "mint", "bob", "--scopes", "read,join"]).1;
    let as_bob = |args: &[&str]| {
        let output = world.command(args).env("PROVOST_TOKEN", &worker).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(!as_bob(&["token", "mint", "ada"]).0);
    assert!(!as_bob(&["token", "revoke", "--of", "ada"]).0);
    assert!(
        !as_bob(&["intent", "declare", "--as", "bob", "--file", "README.md", "x"]).0,
        "it may not coordinate"
    );
    assert_eq!(with(Http::broker(&world), &reader).status, 404);
    assert!(as_bob(&["token", "revoke", "--of", "bob"]).0, "its own it may end");
    // A token is no way to another: its proof is not among those of the rule.
    let delegate = run(&world, &["token", "mint", "eve"]).1;
    let output = world.command(&["token", "mint", "eve"]).env("PROVOST_TOKEN", &delegate).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(run_json(&world, &["token", "list", "--json"]).as_array().unwrap().len(), 2);
}

#[test]
fn rules_say_who_may_have_one() {
    let world = World::new();
    world.rule(
        "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"keys alone\"\n\
         when.action = [\"token\"]\nwhen.proof = [\"own_key\"]\n",
    );
    let daemon = world.start();
    let (code, _, err) = run(&world, &["token", "mint", "ada"]);
    assert!(code != 0 && err.contains("no-rule"), "{code} {err}");
    let ada = world.client(&daemon, "ada");
    assert_eq!(ada.say("REGISTER", json!({ "token": true })).code(), "E_POLICY_DENIED");
    let approver = world.approver(&daemon);
    assert!(approver.say("REGISTER", json!({ "token": true })).ack()["token"].is_string());
}

#[test]
fn a_token_ends_with_its_time_and_an_agent_has_a_few_at_once() {
    let (world, _daemon) = started();
    let brief = run(&world, &["token", "mint", "ada", "--ttl", "1s"]).1;
    let door = Http::broker(&world);
    eventually("its end", || with(door, &brief).status == 401);
    assert!(is_free(&world, "ada"), "and the name is free");
    let first = run(&world, &["token", "mint", "bob", "--ttl", "1h"]).1;
    let others: Vec<String> = (0..8).map(|_| mint(&world, "bob")).collect();
    assert_eq!(with(door, &first).status, 401, "the one that would have expired first gave way");
    assert!(others.iter().all(|token| with(door, token).status == 404));
}
