//! Attacks of a process of the user against passkeys: it has a shell, terminals that it makes itself, the files of the user, and as many
//! repositories as it likes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind, b64};
use crate::support::passkeys::{
    answer, asks, assertion, challenge, enrol, enrolled, finish, get, page, say, waits, world_by,
};
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually};

const ONLY: &str = "\"passkey\"";
const IF_ENROLLED: &str = "\"passkey-if-enrolled\"";

fn list(world: &World) -> PathBuf {
    world.config_dir().join("passkeys.toml")
}

/// Removes every trace of the list that lies in files of its own.
fn take_away(world: &World) {
    for file in ["config/passkeys.toml", "config/keys/passkeys.mark", "state/passkeys.mark"] {
        let (place, name) = file.split_once('/').unwrap();
        let folder = match place {
            "config" => world.config_dir(),
            _ => world.state_dir().parent().unwrap().to_owned(),
        };
        fs::remove_file(folder.join(name)).unwrap();
    }
}

fn problem(world: &World) -> String {
    get(world, "/passkeys")["problem"].as_str().unwrap_or_default().to_owned()
}

fn approved_at_a_terminal(world: &World, approval: u64) -> bool {
    let _said = at_the_terminal(world, &format!("approve {approval}"));
    !waits(world, approval)
}

#[test]
fn a_key_in_the_place_of_another_answers_nothing() {
    let (world, daemon) = world_by(ONLY);
    let mut phone = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    let good = fs::read(list(&world)).unwrap();
    // While the marks are there, nothing is enrolled in a fresh repository either.
    fs::remove_file(list(&world)).unwrap();
    let fresh = world.beside();
    let beside = fresh.start();
    let mut key = Authenticator::new(Kind::Es256);
    (key.id, key.counter) = (phone.id.clone(), 1_000);
    assert!(problem(&fresh).contains("is gone"), "{}", problem(&fresh));
    beside.stop();
    world.put(&list(&world), std::str::from_utf8(&good).unwrap());
    take_away(&world);
    let beside = fresh.start();
    let (status, added) = enrol(&fresh, &mut key, "phone", None);
    assert_eq!(status, 200, "a repository that knows of none: {added}");
    beside.stop();
    let (status, refused) = page(&world, "/word-challenge", &json!({ "approval": approval, "grant": true }));
    assert_eq!((status, &refused["error"]), (409, &json!("passkeys_unusable")), "{refused}");
    assert!(problem(&world).contains("the key of `phone` is not the one on record"), "{}", problem(&world));
    assert!(waits(&world, approval));
    // Another key of the same name beside it, and the passkey left out.
    take_away(&world);
    let other = world.beside();
    let beside = other.start();
    assert_eq!(enrol(&other, &mut Authenticator::new(Kind::Es256), "phone", None).0, 200);
    beside.stop();
    assert!(problem(&world).contains("has signed for it"), "{}", problem(&world));
    let listed = get(&world, "/passkeys");
    assert!(listed["passkeys"].as_array().unwrap().iter().all(|it| it["revoked_at"].is_null()), "{listed}");
    // As it was, it counts as before.
    world.put(&list(&world), std::str::from_utf8(&good).unwrap());
    let (status, done) = answer(&world, &mut phone, approval, true);
    assert_eq!(status, 200, "{done}");
    daemon.stop();
}

#[test]
fn what_a_known_passkey_has_signed_elsewhere_is_believed() {
    let (world, daemon) = world_by(ONLY);
    let mut phone = enrolled(&world, Kind::Es256);
    let fresh = world.beside();
    let beside = fresh.start();
    let (mut tablet, mut key) = (Authenticator::new(Kind::Ed25519), Authenticator::new(Kind::Es256));
    assert_eq!(enrol(&fresh, &mut tablet, "tablet", Some(&mut phone)).0, 200);
    assert_eq!(enrol(&fresh, &mut key, "key", Some(&mut tablet)).0, 200);
    // The counter has gone on elsewhere, and that is no copy of the key.
    let asked = challenge(&fresh, &json!({ "revoke": b64(&tablet.id) }));
    assert_eq!(say(&fresh, &mut phone, &asked).0, 200);
    let approval = asks(&world, "true");
    assert_eq!(answer(&world, &mut tablet, approval, true).0, 403);
    let (status, done) = answer(&world, &mut key, approval, true);
    assert_eq!(status, 200, "vouched for by one that was vouched for: {done}");
    beside.stop();
    daemon.stop();
    for it in [&world, &fresh] {
        let verified = it.command(&["journal", "verify"]).output().unwrap();
        assert!(verified.status.success(), "{verified:?}");
    }
    // A daemon that has heard of none of it catches up from the list.
    let late = world.beside();
    let daemon = late.start();
    let approval = asks(&late, "true");
    assert_eq!(answer(&late, &mut tablet, approval, true).0, 403);
    assert_eq!(answer(&late, &mut key, approval, true).0, 200);
    daemon.stop();
}

#[test]
fn to_revoke_the_last_one_at_a_terminal_gains_nothing() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let _phone = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "true");
    // Which is told before, and a terminal where no answer counts says what does.
    let asked = at_the_terminal(&world, "passkey revoke phone");
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(
        !asked.status.success() && said.contains("your last passkey") && said.contains("--yes"),
        "{said}"
    );
    let told = at_the_terminal(&world, &format!("approve {approval}"));
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("only an answer that is signed with a passkey counts"), "{told}");
    let revoked = at_the_terminal(&world, "passkey revoke phone --yes");
    assert!(revoked.status.success(), "{revoked:?}");
    assert!(!approved_at_a_terminal(&world, approval));
    let mut own = Authenticator::new(Kind::Es256);
    let (status, added) = enrol(&world, &mut own, "phone", None);
    assert_eq!(status, 200, "{added}");
    let (status, refused) = answer(&world, &mut own, approval, true);
    assert_eq!(status, 403, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("until a day has passed"), "{refused}");
    assert!(get(&world, "/passkeys")["waits_until"].is_string());
    // Nor in a repository whose daemon hears of it now.
    let fresh = world.beside();
    let beside = fresh.start();
    let there = asks(&fresh, "true");
    assert_eq!(answer(&fresh, &mut own, there, true).0, 403);
    assert!(!approved_at_a_terminal(&fresh, there));
    beside.stop();
    daemon.stop();
}

#[test]
fn to_break_the_list_before_a_daemon_hears_of_it_gains_nothing() {
    let (world, daemon) = world_by(IF_ENROLLED);
    let _phone = enrolled(&world, Kind::Es256);
    daemon.stop();
    let good = fs::read_to_string(list(&world)).unwrap();
    type Way = fn(&PathBuf, &str);
    let ways: [(&str, Way); 6] = [
        ("edited", |at, good| fs::write(at, good.replace("resets = 0", "resets = 5")).unwrap()),
        ("emptied", |at, _| fs::write(at, "").unwrap()),
        ("cut off", |at, good| fs::write(at, &good[..good.len() / 2]).unwrap()),
        ("open to others", |at, _| fs::set_permissions(at, fs::Permissions::from_mode(0o666)).unwrap()),
        ("a folder", |at, _| {
            fs::remove_file(at).unwrap();
            fs::create_dir(at).unwrap();
        }),
        ("removed", |at, _| fs::remove_dir(at).unwrap()),
    ];
    for (what, way) in ways {
        if list(&world).is_file() {
            world.put(&list(&world), &good);
        }
        way(&list(&world), &good);
        let fresh = world.beside();
        let beside = fresh.start();
        let approval = asks(&fresh, "true");
        assert!(!problem(&fresh).is_empty(), "{what}");
        assert!(!approved_at_a_terminal(&fresh, approval), "{what}");
        beside.stop();
    }
    // A daemon that runs, and is asked before it is told.
    world.put(&list(&world), &good);
    let fresh = world.beside();
    let beside = fresh.start();
    let approval = asks(&fresh, "true");
    fs::write(list(&world), "").unwrap();
    assert!(!approved_at_a_terminal(&fresh, approval));
    beside.stop();
}

#[test]
fn an_old_copy_of_the_list_revokes_nothing() {
    let (world, daemon) = world_by(ONLY);
    let mut phone = enrolled(&world, Kind::Es256);
    let old = fs::read_to_string(list(&world)).unwrap();
    let mut tablet = Authenticator::new(Kind::Es256);
    assert_eq!(enrol(&world, &mut tablet, "tablet", Some(&mut phone)).0, 200);
    let new = fs::read_to_string(list(&world)).unwrap();
    world.put(&list(&world), &old);
    assert!(problem(&world).contains("an old copy"), "{}", problem(&world));
    // Without the marks the store still knows.
    for folder in [world.config_dir().join("keys"), world.state_dir().parent().unwrap().to_owned()] {
        fs::remove_file(folder.join("passkeys.mark")).unwrap();
    }
    assert!(problem(&world).contains("an old copy"), "{}", problem(&world));
    world.put(&list(&world), &new);
    let approval = asks(&world, "true");
    let (status, done) = answer(&world, &mut tablet, approval, true);
    assert_eq!(status, 200, "{done}");
    daemon.stop();
}

#[test]
fn a_process_that_holds_the_folder_stops_no_reader_and_undoes_no_revocation() {
    let (world, daemon) = world_by(ONLY);
    let mut phone = enrolled(&world, Kind::Es256);
    let mut stolen = Authenticator::new(Kind::Es256);
    assert_eq!(enrol(&world, &mut stolen, "stolen", Some(&mut phone)).0, 200);
    let held = fs::File::open(world.config_dir()).unwrap();
    held.lock().unwrap();
    let begun = Instant::now();
    let third = Authenticator::new(Kind::Es256);
    let (_, asked) = finish(&world, &third, "third");
    let mut third = third;
    let (own, vouch) = (assertion(&mut third, &asked), assertion(&mut phone, &asked));
    let (status, refused) =
        page(&world, "/confirm-passkey", &json!({ "nonce": asked["nonce"], "own": own, "vouch": vouch }));
    assert_eq!((status, &refused["error"]), (409, &json!("passkeys_unusable")), "{refused}");
    let revoked = at_the_terminal(&world, "passkey revoke stolen");
    let said = String::from_utf8_lossy(&revoked.stdout).into_owned();
    assert!(said.contains("is revoked in this repository") && said.contains("has held the lock"), "{said}");
    for _ in 0..3 {
        let listed = get(&world, "/passkeys");
        assert!(listed["problem"].is_null(), "{listed}");
    }
    let approval = asks(&world, "true");
    assert_eq!(answer(&world, &mut stolen, approval, true).0, 403);
    assert_eq!(answer(&world, &mut phone, approval, true).0, 200);
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    held.unlock().unwrap();
    // The next look takes it out of the file, so that it counts in no other repository.
    assert!(get(&world, "/passkeys")["problem"].is_null());
    eventually("it is taken out", || {
        let text = fs::read_to_string(list(&world)).unwrap();
        text.split("[[revoked]]").next().is_some_and(|good| !good.contains("name = \"stolen\""))
    });
    let fresh = world.beside();
    let beside = fresh.start();
    let approval = asks(&fresh, "true");
    assert_eq!(answer(&fresh, &mut stolen, approval, true).0, 403);
    beside.stop();
    daemon.stop();
}

#[test]
fn of_two_first_passkeys_at_once_one_counts() {
    let (world, daemon) = world_by(ONLY);
    let mut keys: Vec<_> = (0..3).map(|_| Authenticator::new(Kind::Es256)).collect();
    let asked: Vec<Value> = keys.iter().map(|it| finish(&world, it, "same").1).collect();
    let bodies: Vec<Value> = keys
        .iter_mut()
        .zip(&asked)
        .map(|(key, asked)| json!({ "nonce": asked["nonce"], "own": assertion(key, asked) }))
        .collect();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            bodies.iter().map(|body| scope.spawn(|| page(&world, "/confirm-passkey", body).0)).collect();
        runs.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|it| **it == 200).count(), 1, "{statuses:?}");
    let listed = get(&world, "/passkeys");
    assert_eq!(
        (listed["passkeys"].as_array().unwrap().len(), &listed["problem"]),
        (1, &Value::Null),
        "{listed}"
    );
    daemon.stop();
}

#[test]
fn a_reset_waits_in_a_fresh_repository_too() {
    let (world, daemon) = world_by(ONLY);
    let _phone = enrolled(&world, Kind::Es256);
    let reset = at_the_terminal(&world, "passkey reset --yes");
    assert!(reset.status.success(), "{reset:?}");
    let mut own = Authenticator::new(Kind::Es256);
    let fresh = world.beside();
    let beside = fresh.start();
    assert_eq!(enrol(&fresh, &mut own, "own", None).0, 200);
    let approval = asks(&fresh, "true");
    assert_eq!(answer(&fresh, &mut own, approval, true).0, 403);
    beside.stop();
    // Without the list.
    fs::remove_file(list(&world)).unwrap();
    let beside = fresh.start();
    assert_eq!(page(&fresh, "/word-challenge", &json!({ "approval": approval, "grant": true })).0, 409);
    beside.stop();
    let other = world.beside();
    let beside = other.start();
    assert!(problem(&other).contains("is gone"), "{}", problem(&other));
    beside.stop();
    daemon.stop();
}

#[test]
fn what_is_signed_and_shown_hides_nothing() {
    let (world, daemon) = world_by(ONLY);
    let mut phone = enrolled(&world, Kind::Es256);
    let approval = asks(&world, "ab\u{202e}cd\u{200b}ef\u{2066}g\u{7}");
    let view = get(&world, &format!("/approval?id={approval}"));
    let text = view["view"].as_str().unwrap();
    assert!(text.contains("ab\\\\u{202e}cd\\\\u{200b}ef\\\\u{2066}g\\\\u{7}"), "{text}");
    assert!(!text.chars().any(|it| "\u{202e}\u{200b}\u{2066}\u{7}".contains(it)), "{text}");
    assert_eq!(answer(&world, &mut phone, approval, true).0, 200);
    daemon.stop();
}
