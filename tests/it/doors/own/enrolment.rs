//! How a passkey comes into the list, and out of it.

use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind, b64, unb64};
use crate::support::passkeys::{
    answer, asks, assertion, challenge, code, enrol, enrolled, finish, get, json_at_the_terminal, page, say,
    waits, world_by,
};
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually};

const IF_ENROLLED: &str = "\"passkey-if-enrolled\"";

fn names(world: &World) -> Vec<String> {
    let all = get(world, "/passkeys");
    let good = all["passkeys"].as_array().unwrap().iter().filter(|it| it["revoked_at"].is_null());
    good.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_code_is_had_at_a_terminal_counts_once_and_bears_five_tries() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let (status, refused) = page(&world, "/passkey-code", &json!({ "even_so": true }));
    assert_eq!((status, &refused["error"]), (403, &json!("out_of_scope")), "{refused}");
    let key = Authenticator::new(Kind::Es256);
    let begin = |code: &str| {
        page(&world, "/begin-passkey", &json!({ "code": code, "name": "x", "origin": key.origin }))
    };
    assert_eq!(begin("ABCDEFGHJKMN").1["error"], "code_gone", "none was made");
    let first = code(&world);
    assert!(
        first.len() == 12 && first.chars().all(|it| it.is_ascii_alphanumeric() && !"01ILO".contains(it)),
        "{first}"
    );
    let second = code(&world);
    assert_eq!(begin(&first).1["error"], "code_wrong", "one at a time");
    let typed = format!("{}-{} {}", &second[..4].to_lowercase(), &second[4..8], &second[8..]);
    assert_eq!(begin(&typed).0, 200);
    assert_eq!(begin(&second).1["error"], "code_gone", "it counts once");
    let third = code(&world);
    for _ in 0..5 {
        assert_eq!(begin("AAAAAAAAAAAA").1["error"], "code_wrong");
    }
    assert_eq!(begin(&third).1["error"], "code_gone", "five tries");
    assert_eq!(names(&world), Vec::<String>::new());
    daemon.stop();
}

#[test]
fn beside_agents_the_first_passkey_is_added_only_even_so() {
    let (world, daemon) = world_by(IF_ENROLLED);
    asks(&world, "true");
    let refused = at_the_terminal(&world, "passkey add");
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(text.contains("is at work") && text.contains("--even-so"), "{text}");
    assert!(json_at_the_terminal(&world, "passkey add --even-so --json")["code"].is_string());
    daemon.stop();
}

#[test]
fn a_key_that_has_not_signed_does_not_count() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let key = Authenticator::new(Kind::Es256);
    let (status, asked) = finish(&world, &key, "phone");
    assert_eq!(status, 200, "{asked}");
    assert_eq!(names(&world), Vec::<String>::new());
    let mut other = Authenticator::new(Kind::Es256);
    other.id = key.id.clone();
    let body = json!({ "nonce": asked["nonce"], "own": assertion(&mut other, &asked) });
    let (status, refused) = page(&world, "/confirm-passkey", &body);
    assert_eq!((status, &refused["error"]), (403, &json!("passkey_refused")), "{refused}");
    assert_eq!(names(&world), Vec::<String>::new());
    daemon.stop();
}

#[test]
fn a_further_passkey_needs_the_signature_of_a_known_one() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let mut known = enrolled(&world, Kind::Es256);
    let mut second = Authenticator::new(Kind::Ed25519);
    let (status, refused) = enrol(&world, &mut second, "key", None);
    assert_eq!((status, &refused["error"]), (403, &json!("vouch_missing")), "{refused}");
    let mut made = Authenticator::new(Kind::Ed25519);
    let (status, refused) = enrol(&world, &mut second, "key", Some(&mut made));
    assert_eq!((status, &refused["error"]), (403, &json!("passkey_refused")), "{refused}");
    assert_eq!(names(&world), ["phone"]);
    let (status, added) = enrol(&world, &mut second, "key", Some(&mut known));
    assert_eq!((status, &added["source"]), (200, &json!("vouched")), "{added}");
    assert_eq!(names(&world), ["phone", "key"]);
    // The same key once more, and the same name.
    let (status, refused) = enrol(&world, &mut second, "again", Some(&mut known));
    assert_eq!((status, &refused["error"]), (409, &json!("exists")), "{refused}");
    assert_eq!(finish(&world, &Authenticator::new(Kind::Es256), "key").0, 400);
    // Either may revoke the other one.
    let asked = challenge(&world, &json!({ "revoke": b64(&known.id) }));
    let (status, done) = say(&world, &mut second, &asked);
    assert_eq!((status, &done["revoked"]), (200, &json!(b64(&known.id))), "{done}");
    assert_eq!(names(&world), ["key"]);
    daemon.stop();
    let verified = world.command(&["journal", "verify", "--json"]).output().unwrap();
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(verified["signed"]["checked"], 2, "the vouching and the revocation: {verified}");
}

#[test]
fn pages_names_and_registrations_that_are_not_ours_are_refused() {
    let (world, daemon) = world_by(IF_ENROLLED);
    for (name, origin) in [
        ("phone", "http://provost.localhost:8080"),
        ("phone", "http://127.0.0.1:4720"),
        ("", "http://provost.localhost:4720"),
        ("a\u{202e}b", "http://provost.localhost:4720"),
        (&*"x".repeat(65), "http://provost.localhost:4720"),
    ] {
        let (status, refused) =
            page(&world, "/begin-passkey", &json!({ "code": code(&world), "name": name, "origin": origin }));
        assert!(status == 400 || status == 403, "{name:?} {origin}: {refused}");
    }
    let mut elsewhere = Authenticator::new(Kind::Es256);
    let begun = json!({ "code": code(&world), "name": "phone", "origin": elsewhere.origin });
    let (_, options) = page(&world, "/begin-passkey", &begun);
    elsewhere.origin = "http://provost.localhost:8080".into();
    let (client, object) = elsewhere.register(&unb64(options["challenge"].as_str().unwrap()));
    let body =
        json!({ "nonce": options["nonce"], "client_data": b64(&client), "attestation_object": b64(&object) });
    let (status, refused) = page(&world, "/finish-passkey", &body);
    assert_eq!((status, &refused["error"]), (403, &json!("passkey_refused")), "{refused}");
    daemon.stop();
}

#[test]
fn a_person_answers_until_a_passkey_is_enrolled() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let first = asks(&world, "true");
    let text =
        String::from_utf8_lossy(&at_the_terminal(&world, &format!("approve {first}")).stdout).into_owned();
    assert!(!waits(&world, first), "{text}");
    let mut key = enrolled(&world, Kind::Es256);
    let second = asks(&world, "true # 2");
    let text =
        String::from_utf8_lossy(&at_the_terminal(&world, &format!("approve {second}")).stdout).into_owned();
    assert!(text.contains("does not let this caller answer"), "{text}");
    assert_eq!(answer(&world, &mut key, second, true).0, 200);
    let asked = challenge(&world, &json!({ "revoke": b64(&key.id) }));
    assert_eq!(say(&world, &mut key, &asked).0, 200);
    let third = asks(&world, "true # 3");
    let _answered = at_the_terminal(&world, &format!("approve {third}"));
    assert!(!waits(&world, third));
    daemon.stop();
}

#[test]
fn an_edited_list_is_noticed_and_none_of_it_counts() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let mut key = enrolled(&world, Kind::Es256);
    let file = world.config_dir().join("passkeys.toml");
    let written = std::fs::read_to_string(&file).unwrap();
    let approval = asks(&world, "true");
    world.put(&file, &written.replace("name = \"phone\"", "name = \"phony\""));
    let refused = |what: &str| {
        let (status, refused) =
            page(&world, "/word-challenge", &json!({ "approval": approval, "grant": true }));
        assert_eq!((status, &refused["error"]), (409, &json!("passkeys_unusable")), "{what}: {refused}");
        assert!(get(&world, "/passkeys")["problem"].is_string());
        // And nobody is asked for less because of it.
        let text = at_the_terminal(&world, &format!("approve {approval}")).stdout;
        assert!(String::from_utf8_lossy(&text).contains("does not let this caller answer"), "{what}");
    };
    refused("edited");
    std::fs::remove_file(&file).unwrap();
    refused("removed");
    world.put(&file, "version = 1\n");
    refused("emptied");
    world.put(&file, "nonsense");
    refused("overwritten");
    world.put(&file, &written);
    assert_eq!(answer(&world, &mut key, approval, true).0, 200);
    daemon.stop();
}

#[test]
fn a_reset_gives_all_up_and_waits_for_a_day() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let mut key = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let (status, _) = page(&world, "/reset-passkeys", &json!({}));
    assert_eq!(status, 403, "only at a terminal");
    let reset = json_at_the_terminal(&world, "passkey reset --yes --json");
    assert!(reset["waits_until"].is_string(), "{reset}");
    assert_eq!(names(&world), Vec::<String>::new());
    assert_eq!(answer(&world, &mut key, approval, true).0, 403);
    // Every list says so, and what to do about it is right in this time.
    for said in [&["doctor"][..], &["status"], &["-C", world.repo().to_str().unwrap()]] {
        let output = world.command(said).output().unwrap();
        let text = format!("{output:?}");
        assert!(text.contains("all passkeys were given up"), "{said:?}: {text}");
    }
    assert!(get(&world, "/about")["notes"].to_string().contains("all passkeys were given up"));
    let told = at_the_terminal(&world, "passkey add --even-so").stdout;
    assert!(String::from_utf8_lossy(&told).contains("no new one counts until"), "{told:?}");
    // A new one comes into the list, and does not count yet; a person is no substitute meanwhile.
    let mut second = Authenticator::new(Kind::Es256);
    let (status, added) = enrol(&world, &mut second, "new", None);
    assert_eq!(status, 200, "{added}");
    let (status, refused) = answer(&world, &mut second, approval, true);
    assert_eq!(status, 403, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("until a day has passed"), "{refused}");
    let text = at_the_terminal(&world, &format!("approve {approval}")).stdout;
    assert!(String::from_utf8_lossy(&text).contains("does not let this caller answer"));
    daemon.stop();
    let daemon = world.start();
    assert!(get(&world, "/passkeys")["waits_until"].is_string(), "over a restart");
    assert_eq!(answer(&world, &mut second, approval, true).0, 403);
    daemon.stop();
}

#[test]
fn what_another_daemon_enrols_and_revokes_counts_here() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let _key = enrolled(&world, Kind::Es256);
    let here = get(&world, "/passkeys")["daemon"].clone();
    // Another repository of the same user.
    let elsewhere = world.path("elsewhere");
    let made = std::process::Command::new("git").args(["init", "-q"]).arg(&elsewhere).status().unwrap();
    assert!(made.success());
    let listed = world.command(&["passkey", "list", "--json"]).current_dir(&elsewhere).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    assert_eq!(
        (&listed["passkeys"][0]["name"], &listed["enrolled"]),
        (&json!("phone"), &json!(true)),
        "{listed}"
    );
    assert_ne!(listed["daemon"], here, "a word for one is none for the next");
    let _revoked = {
        let line = "passkey revoke phone --yes";
        let mut person = std::process::Command::new("script");
        person.args(["-qec", &format!("{} {line}", crate::support::provost().display()), "/dev/null"]);
        person.current_dir(&elsewhere).env_clear().stdin(std::process::Stdio::null());
        for (name, value) in world.command(&[]).get_envs() {
            person.env(name, value.unwrap());
        }
        crate::support::apart(&person)
    };
    // Heard of without being asked: the journal is read from its file.
    eventually("all are given up here, since it was the last one", || {
        let exported = world.command(&["journal", "export"]).output().unwrap().stdout;
        String::from_utf8_lossy(&exported).contains("passkeys_reset")
    });
    let _stopped = world.command(&["down"]).current_dir(&elsewhere).output();
    daemon.stop();
}
