//! The key ring on disk, and session tokens.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use provost::auth::Rejected;
use provost::auth::keys::{KeyError, KeyRing, Keys, Role};
use provost::auth::token::Tokens;
use provost::base::{AgentId, Digest, Secret, Timestamp, Ttl};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn ident(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

fn later(ms: i64) -> Timestamp {
    Timestamp(NOW.0 + ms)
}

/// A ring in a folder that does not exist yet.
fn ring() -> (tempfile::TempDir, PathBuf, KeyRing) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config/keys");
    let ring = KeyRing::open(&path).unwrap();
    (dir, path, ring)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn own_file(path: &Path) -> PathBuf {
    let mut files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.find(|file| file.extension().is_some_and(|ext| ext == "toml")).unwrap()
}

fn secrets(keys: Keys) -> Vec<Vec<u8>> {
    match keys {
        Keys::Own { secrets, .. } => secrets.iter().map(|secret| secret.expose().to_vec()).collect(),
        Keys::Shared(secret) => vec![secret.expose().to_vec()],
        Keys::None => vec![],
    }
}

#[test]
fn a_missing_secret_is_made_at_random_and_kept() {
    let (_dir, path, ring) = ring();
    let shared = ring.shared().expose().to_vec();
    assert_eq!(shared.len(), 64);
    assert!(shared.iter().all(u8::is_ascii_hexdigit));
    assert_eq!((mode(&path), mode(&path.join("shared.secret"))), (0o700, 0o600));
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(KeyRing::open(&path).unwrap().shared().expose(), shared);
    let (_other_dir, _, other) = self::ring();
    assert_ne!(other.shared().expose(), shared);
}

#[test]
fn the_shared_secret_never_speaks_for_a_reserved_ident() {
    let (_dir, path, ring) = ring();
    let approver = ident("client:approver");
    assert!(matches!(ring.lookup(&approver, NOW), Keys::Shared(_)));
    let secret = ring.add(&approver, Role::Approver, NOW).unwrap();
    assert!(matches!(ring.lookup(&approver, NOW), Keys::Own { role: Role::Approver, .. }));
    assert_eq!(secrets(ring.lookup(&approver, NOW)), [secret.expose()]);
    assert!(ring.is_reserved(&approver));
    assert_eq!(mode(&own_file(&path)), 0o600);

    ring.revoke(&approver, NOW).unwrap();
    assert!(matches!(ring.lookup(&approver, NOW), Keys::None));
    assert!(ring.is_reserved(&approver));
    assert!(!fs::read_to_string(own_file(&path)).unwrap().contains("secret"));
    let again = KeyRing::open(&path).unwrap();
    assert!(matches!(again.lookup(&approver, NOW), Keys::None));
    assert_eq!(again.list()[0].revoked, Some(NOW));
    assert!(matches!(again.lookup(&ident("client:other"), NOW), Keys::Shared(_)));
}

#[test]
fn a_revoked_ident_may_be_given_a_new_key_and_no_other_way_back() {
    let (_dir, _path, ring) = ring();
    let a = ident("a");
    let old = ring.add(&a, Role::Agent, NOW).unwrap();
    assert!(matches!(ring.add(&a, Role::Approver, NOW), Err(KeyError::Exists(_))));
    ring.revoke(&a, NOW).unwrap();
    assert!(matches!(ring.rotate(&a, Ttl::minutes(1), NOW), Err(KeyError::Unknown(_))));
    let new = ring.add(&a, Role::Agent, NOW).unwrap();
    assert_ne!(old.expose(), new.expose());
    assert_eq!(secrets(ring.lookup(&a, NOW)), [new.expose()]);
    assert!(matches!(ring.rotate(&ident("b"), Ttl::minutes(1), NOW), Err(KeyError::Unknown(_))));
    assert!(matches!(ring.revoke(&ident("b"), NOW), Err(KeyError::Unknown(_))));
}

#[test]
fn during_a_rotation_both_keys_are_good_until_the_overlap_ends() {
    let (_dir, path, ring) = ring();
    let a = ident("a");
    let old = ring.add(&a, Role::Worker, NOW).unwrap();
    let new = ring.rotate(&a, Ttl::minutes(1), NOW).unwrap();
    let both = [new.expose(), old.expose()];
    assert_eq!(secrets(ring.lookup(&a, later(59_999))), both);
    assert_eq!(secrets(ring.lookup(&a, later(60_000))), [new.expose()]);
    assert_eq!(secrets(KeyRing::open(&path).unwrap().lookup(&a, NOW)), both);
    let info = &ring.list()[0];
    assert_eq!(info.keys.len(), 2);
    assert_ne!(info.keys[0].id, info.keys[1].id);
    assert_eq!(info.keys[1].expires, Some(later(60_000)));
    // A second rotation does not give the oldest a longer life, and clears away what has expired.
    ring.rotate(&a, Ttl::minutes(10), later(1000)).unwrap();
    assert_eq!(secrets(ring.lookup(&a, later(60_000))).len(), 2);
    ring.rotate(&a, Ttl::minutes(1), later(3_600_000)).unwrap();
    assert_eq!(ring.list()[0].keys.len(), 2);
}

#[test]
fn rotation_cannot_pile_up_keys() {
    let (_dir, _path, ring) = ring();
    let a = ident("a");
    ring.add(&a, Role::Agent, NOW).unwrap();
    let tries: Vec<bool> = (0..20).map(|_| ring.rotate(&a, Ttl::minutes(9), NOW).is_ok()).collect();
    assert!(tries[0] && !tries[19]);
}

#[test]
fn lists_and_errors_hold_no_secret() {
    let (_dir, path, ring) = ring();
    let secret = ring.add(&ident("a"), Role::Agent, NOW).unwrap();
    let secret = std::str::from_utf8(secret.expose()).unwrap();
    assert!(!format!("{:?}", ring.list()).contains(&secret[..12]));
    let file = own_file(&path);
    let text = fs::read_to_string(&file).unwrap();
    for broken in [
        text.replace(&format!("\"{secret}\""), secret),
        format!("{text}\n[[key]]\nsecret = 5"),
        text.replace("role", "rule"),
    ] {
        assert_ne!(broken, text);
        fs::write(&file, broken).unwrap();
        let error = ring.reload().unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()) && !error.contains(&secret[..12]), "{error}");
    }
}

#[test]
fn a_ring_that_others_could_touch_is_refused_with_its_remedy() {
    let (_dir, path, ring) = ring();
    ring.add(&ident("a"), Role::Agent, NOW).unwrap();
    let file = own_file(&path);
    for (what, safe) in [(&path, 0o700), (&path.join("shared.secret"), 0o600), (&file, 0o600)] {
        for exposed in [0o040, 0o004, 0o020, 0o002, 0o010] {
            chmod(what, safe | exposed);
            let error = KeyRing::open(&path).err().unwrap();
            assert!(matches!(&error, KeyError::Unsafe { path, .. } if path == what), "{error}");
            assert!(error.to_string().contains("chmod"), "{error}");
        }
        chmod(what, safe);
        KeyRing::open(&path).unwrap();
    }
}

#[test]
fn links_pipes_and_second_names_are_refused() {
    let (dir, path, ring) = ring();
    let shared = path.join("shared.secret");
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&shared, &elsewhere).unwrap();
    symlink(&elsewhere, &shared).unwrap();
    assert!(matches!(KeyRing::open(&path), Err(KeyError::Unsafe { .. })));
    assert!(ring.reload().is_err());
    fs::remove_file(&shared).unwrap();
    fs::hard_link(&elsewhere, &shared).unwrap();
    assert!(matches!(KeyRing::open(&path), Err(KeyError::Unsafe { .. })));
    fs::remove_file(&shared).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &shared,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(matches!(KeyRing::open(&path), Err(KeyError::Unsafe { .. })));
    fs::remove_file(&shared).unwrap();

    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(matches!(KeyRing::open(&link), Err(KeyError::Unsafe { .. })));
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(KeyRing::open(&dir.path().join("file")).is_err());
}

#[test]
fn guessable_secrets_are_refused() {
    let (_dir, path, ring) = ring();
    for weak in
        ["", "\n", "change-me-in-production", "change-me", "change-me\n", "fifteen-bytes-x", "\u{feff}"]
    {
        fs::write(path.join("shared.secret"), weak).unwrap();
        let error = KeyRing::open(&path).err().unwrap().to_string();
        assert!(error.contains("shared.secret"), "{error}");
    }
    fs::write(path.join("shared.secret"), "sixteen-bytes-xy\r\n").unwrap();
    assert_eq!(KeyRing::open(&path).unwrap().shared().expose(), b"sixteen-bytes-xy");
    fs::write(path.join("shared.secret"), vec![b'x'; 1 << 20]).unwrap();
    assert!(KeyRing::open(&path).is_err());
    // What was in force stays so.
    assert!(ring.reload().is_err());
    assert_eq!(ring.shared().expose().len(), 64);
}

#[test]
fn a_secret_of_this_run_is_used_and_never_written() {
    let (_dir, path, ring) = ring();
    let on_disk = ring.shared();
    for refused in ["", "change-me", "change-me-in-production"] {
        assert!(matches!(ring.set_shared(Secret::new(refused.into())), Err(KeyError::Weak(_))));
    }
    ring.set_shared(Secret::new(b"test-secret".to_vec())).unwrap();
    ring.reload().unwrap();
    assert_eq!(secrets(ring.lookup(&ident("a"), NOW)), [b"test-secret"]);
    assert_eq!(KeyRing::open(&path).unwrap().shared().expose(), on_disk.expose());
}

#[test]
fn any_ident_gets_a_file_of_its_own_inside_the_folder() {
    let (_dir, path, ring) = ring();
    let long = "x".repeat(200);
    let idents =
        ["../../etc/x", ".", "..", "a/b", "a_b", "c.d", "E.F", "é", "è", &long, "shared.secret", "-rf *"];
    for name in idents {
        ring.add(&ident(name), Role::Agent, NOW).unwrap();
    }
    assert_eq!(fs::read_dir(&path).unwrap().count(), idents.len() + 1);
    let again = KeyRing::open(&path).unwrap();
    assert_eq!(again.list().len(), idents.len());
    assert!(idents.iter().all(|name| again.is_reserved(&ident(name))));
    // Two spellings of one name would be two owners of one inbox.
    for (name, other) in [("A.b", "a/b"), ("C/D", "c.d"), ("SHARED-secret", "shared.secret")] {
        let refused = ring.add(&ident(name), Role::Agent, NOW);
        assert!(matches!(&refused, Err(KeyError::Alike(_, it)) if it.as_str() == other), "{name}");
        assert!(again.is_reserved(&ident(name)) && matches!(again.lookup(&ident(name), NOW), Keys::None));
    }
}

#[test]
fn a_revocation_written_by_hand_holds_although_the_keys_are_still_there() {
    let (_dir, path, ring) = ring();
    ring.add(&ident("a"), Role::Agent, NOW).unwrap();
    let text = fs::read_to_string(own_file(&path)).unwrap();
    fs::write(own_file(&path), format!("revoked_ms = 1\n{text}")).unwrap();
    ring.reload().unwrap();
    assert!(matches!(ring.lookup(&ident("a"), NOW), Keys::None));
}

#[test]
fn files_of_another_user_are_refused() {
    // Only root can give a file away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for give_away_folder in [true, false] {
        let (_dir, path, ring) = ring();
        ring.add(&ident("a"), Role::Agent, NOW).unwrap();
        let given = if give_away_folder { path.clone() } else { own_file(&path) };
        std::os::unix::fs::chown(&given, Some(4242), None).unwrap();
        let error = KeyRing::open(&path).err().unwrap().to_string();
        assert!(error.contains("another user"), "{error}");
    }
}

#[test]
fn a_key_file_under_another_name_is_refused() {
    let (_dir, path, ring) = ring();
    ring.add(&ident("a"), Role::Agent, NOW).unwrap();
    fs::copy(own_file(&path), path.join("copy.toml")).unwrap();
    let error = KeyRing::open(&path).err().unwrap();
    assert!(matches!(error, KeyError::Malformed { .. }), "{error}");
}

#[test]
fn another_process_change_is_seen_after_a_reload_and_never_lost() {
    let (_dir, path, daemon) = ring();
    let command = KeyRing::open(&path).unwrap();
    let a = ident("a");
    command.add(&a, Role::Agent, NOW).unwrap();
    assert!(matches!(daemon.lookup(&a, NOW), Keys::Shared(_)));
    // Changes start from what lies on disk, not from what is in force here.
    assert!(matches!(daemon.add(&a, Role::Agent, NOW), Err(KeyError::Exists(_))));
    daemon.reload().unwrap();
    assert!(matches!(daemon.lookup(&a, NOW), Keys::Own { .. }));
    std::thread::scope(|scope| {
        for (n, ring) in [&daemon, &command, &daemon, &command].into_iter().enumerate() {
            scope.spawn(move || {
                for i in 0..5 {
                    ring.add(&ident(&format!("{n}-{i}")), Role::Agent, NOW).unwrap();
                }
            });
        }
    });
    assert_eq!(KeyRing::open(&path).unwrap().list().len(), 21);
}

#[test]
fn what_a_killed_process_left_unfinished_is_swept() {
    let (_dir, path, ring) = ring();
    let left = path.join(".new-shared.secret");
    fs::write(&left, "half a sec").unwrap();
    ring.add(&ident("a"), Role::Agent, NOW).unwrap();
    KeyRing::open(&path).unwrap();
    assert!(!left.exists());
}

#[test]
fn tokens_are_bound_to_ident_user_and_key_and_end() {
    let tokens = Tokens::new(10);
    let key = Digest::of(b"key");
    let token = tokens.issue(ident("a"), 1000, key, NOW, Ttl::minutes(1)).unwrap();
    let token = std::str::from_utf8(token.expose()).unwrap();
    assert_eq!(token.len(), 64);
    assert_eq!(tokens.check(token, 1000, NOW), Ok((ident("a"), key)));
    assert_eq!(tokens.check(token, 1001, NOW), Err(Rejected::BadToken));
    assert_eq!(tokens.check(token, 1000, later(59_999)), Ok((ident("a"), key)));
    assert_eq!(tokens.check(token, 1000, later(60_000)), Err(Rejected::BadToken));
    assert_eq!(tokens.check(&token[1..], 1000, NOW), Err(Rejected::BadToken));
    assert_eq!(tokens.check("", 1000, NOW), Err(Rejected::BadToken));
}

#[test]
fn of_too_many_tokens_the_one_nearest_its_end_goes() {
    let tokens = Tokens::new(3);
    let issue =
        |minutes| tokens.issue(ident("a"), 0, Digest::of(b"key"), NOW, Ttl::minutes(minutes)).unwrap();
    let issued = [issue(3), issue(1), issue(2), issue(4)];
    let valid =
        issued.map(|token| tokens.check(std::str::from_utf8(token.expose()).unwrap(), 0, NOW).is_ok());
    assert_eq!(valid, [true, false, true, true]);
}
