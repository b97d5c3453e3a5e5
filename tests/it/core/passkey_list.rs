//! The list of passkeys as files: the user's under its MAC, and root's before it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use provost::auth::keys::KeyRing;
use provost::auth::passkeys::{ListError, ListedPasskey, PasskeyFiles};
use provost::base::Timestamp;
use provost::passkey::PublicKey;
use tempfile::TempDir;

fn listed(name: &str) -> ListedPasskey {
    ListedPasskey {
        id: name.into(),
        name: name.into(),
        rp_id: "provost.localhost".into(),
        backup_eligible: false,
        aaguid: "00".repeat(16),
        counter: 1,
        transports: vec!["usb".into()],
        added_at: Timestamp(1_000),
        source: "code".into(),
        number: 0,
        vouch: None,
        key: PublicKey::Ed25519([7; 32]),
    }
}

/// Files in a folder, as if this user were root for the second of them.
fn files() -> (TempDir, PasskeyFiles, KeyRing) {
    let dir = tempfile::tempdir().unwrap();
    let (user, etc) = (dir.path().join("config"), dir.path().join("etc"));
    fs::create_dir(&etc).unwrap();
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o755)).unwrap();
    let owner = fs::metadata(&etc).unwrap().uid();
    let keys = KeyRing::open(&user.join("keys")).unwrap();
    let marks = vec![user.join("keys"), dir.path().join("state")];
    provost::auth::keys::folder::Folder::open(&marks[1]).unwrap();
    (dir, PasskeyFiles { user, system: etc.join("passkeys.toml"), owner, marks }, keys)
}

fn names(files: &PasskeyFiles, keys: &KeyRing) -> Vec<String> {
    files.read(keys).unwrap().unwrap_or_default().passkeys.into_iter().map(|it| it.name).collect()
}

/// The text of a list of root's: the same without a MAC.
fn roots(files: &PasskeyFiles) -> String {
    let text = fs::read_to_string(files.user.join("passkeys.toml")).unwrap();
    text.lines().filter(|line| !line.starts_with("mac")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_list_is_private_and_under_a_mac() {
    let (_dir, files, keys) = files();
    assert_eq!(names(&files, &keys), Vec::<String>::new());
    files.change(&keys, 0, |list| list.add(listed("phone"))).unwrap();
    assert_eq!(names(&files, &keys), ["phone"]);
    let at: PathBuf = files.user.join("passkeys.toml");
    assert_eq!(fs::metadata(&at).unwrap().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&at).unwrap();
    for (from, to) in [
        ("phone", "phony"),
        ("usb", "nfc"),
        ("counter = 1", "counter = 0"),
        ("resets = 0", "resets = 1"),
        ("number = 1", "number = 2"),
    ] {
        let edited = text.replace(from, to);
        assert_ne!(edited, text, "{from}");
        fs::write(&at, edited).unwrap();
        assert!(matches!(files.read(&keys), Err(ListError::Edited(_))), "{from}");
        assert!(files.change(&keys, 0, |_| Ok(())).is_err(), "{from}");
    }
    fs::write(&at, text.replace("version = 1", "version = 1\nmore = 1")).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::Malformed { .. })));
    fs::write(&at, &text).unwrap();
    // Another ring of keys makes another MAC.
    let other = KeyRing::open(&files.user.join("other")).unwrap();
    assert!(matches!(files.read(&other), Err(ListError::Edited(_))));
    fs::set_permissions(&at, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::Files(_))));
    files.reset(&keys, 0, 3, Timestamp(9)).unwrap();
    let list = files.read(&keys).unwrap().unwrap();
    assert_eq!((list.resets, list.waits_until, list.passkeys.len()), (3, Some(Timestamp(9)), 0));
}

#[test]
fn where_root_has_a_list_only_its_passkeys_count() {
    let (_dir, files, keys) = files();
    files.change(&keys, 0, |list| list.add(listed("phone"))).unwrap();
    fs::write(&files.system, roots(&files).replace("phone", "key")).unwrap();
    fs::set_permissions(&files.system, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(names(&files, &keys), ["key"]);
    assert!(files.read(&keys).unwrap().unwrap().of_root);
    assert!(matches!(files.change(&keys, 0, |_| Ok(())), Err(ListError::OfRoot(_))));
    assert!(matches!(files.reset(&keys, 0, 1, Timestamp(1)), Err(ListError::OfRoot(_))));
    // A list that others may write, or that is not root's, is none, and the user's does not take its place.
    for mode in [0o666, 0o664] {
        fs::set_permissions(&files.system, fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(files.read(&keys), Err(ListError::NotRoots { .. })), "{mode:o}");
    }
    fs::set_permissions(&files.system, fs::Permissions::from_mode(0o644)).unwrap();
    let etc = files.system.parent().unwrap();
    fs::set_permissions(etc, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::NotRoots { .. })), "its folder");
    fs::set_permissions(etc, fs::Permissions::from_mode(0o755)).unwrap();
    let others = PasskeyFiles { owner: files.owner + 1, ..files.clone() };
    assert!(matches!(others.read(&keys), Err(ListError::NotRoots { .. })), "another owner");
    let real = etc.join("real.toml");
    fs::rename(&files.system, &real).unwrap();
    std::os::unix::fs::symlink(&real, &files.system).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::NotRoots { .. })), "a link");
}

#[test]
fn an_old_copy_and_a_list_that_is_gone_are_noticed_by_the_marks() {
    let (_dir, files, keys) = files();
    let at = files.user.join("passkeys.toml");
    files.change(&keys, 0, |list| list.add(listed("phone"))).unwrap();
    let old = fs::read(&at).unwrap();
    files
        .change(&keys, 0, |list| {
            list.revoke("phone", None);
            Ok(())
        })
        .unwrap();
    let new = fs::read(&at).unwrap();
    let mark = |at: usize| files.marks[at].join("passkeys.mark");
    assert_eq!(fs::read_to_string(mark(0)).unwrap(), "2\n");
    fs::write(&at, &old).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::Disagrees(_))));
    assert!(files.change(&keys, 0, |_| Ok(())).is_err());
    // One mark is enough, and it brings the other one back.
    fs::remove_file(mark(1)).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::Disagrees(_))));
    fs::remove_file(&at).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::Gone(_))));
    fs::write(&at, &new).unwrap();
    fs::set_permissions(&at, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(names(&files, &keys), Vec::<String>::new());
    assert_eq!(fs::read_to_string(mark(1)).unwrap(), "2\n");
    // What is no mark says that there was a list, and no more than that.
    fs::write(mark(0), "nonsense").unwrap();
    fs::remove_file(mark(1)).unwrap();
    fs::remove_file(&at).unwrap();
    assert!(matches!(files.read(&keys), Err(ListError::Gone(_))));
    files.reset(&keys, 7, 1, Timestamp(9)).unwrap();
    assert_eq!(files.read(&keys).unwrap().unwrap().number, 8);
}

#[test]
fn of_two_first_passkeys_one_is_added() {
    let (_dir, files, keys) = files();
    files.change(&keys, 0, |list| list.add(listed("phone"))).unwrap();
    for name in ["phone", "tablet"] {
        assert!(
            matches!(files.change(&keys, 0, |list| list.add(listed(name))), Err(ListError::Overtaken)),
            "{name}"
        );
    }
    assert_eq!(names(&files, &keys), ["phone"]);
}

#[test]
fn a_lock_that_another_process_holds_is_waited_for_and_not_for_ever() {
    let (_dir, files, keys) = files();
    let held = fs::File::open(&files.user).unwrap();
    held.lock().unwrap();
    let begun = std::time::Instant::now();
    let refused = files.change(&keys, 0, |list| list.add(listed("phone"))).unwrap_err().to_string();
    assert!(refused.contains("has held the lock"), "{refused}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    assert!(files.change_if_free(&keys, 0, |_| Ok(())).is_err());
    held.unlock().unwrap();
    files.change_if_free(&keys, 0, |list| list.add(listed("phone"))).unwrap();
}
