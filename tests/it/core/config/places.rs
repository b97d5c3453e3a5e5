//! Where a repository's daemon keeps its things, and whose folders these must be.

use super::*;

fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
    let done = std::process::Command::new("git")
        .args(identity)
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_folder_and_worktree_of_a_repository_finds_the_same_daemon() {
    let machine = Machine::new();
    let (main, below) = (machine.folder("main"), machine.folder("main/src/deep"));
    git(&main, &["init", "--quiet"]);
    git(&main, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    git(&main, &["worktree", "add", "--quiet", "../linked"]);
    let (at_main, at_below, at_linked) =
        (machine.places(&main), machine.places(&below), machine.places(&machine.folder("linked/x")));
    assert_eq!(at_main, at_below);
    assert_eq!((&at_linked.hash, &at_linked.root), (&at_main.hash, &main));
    assert_eq!(at_linked.worktree, machine.path("linked"));
    assert_eq!(at_main.state, machine.path(".local/state/provost").join(&at_main.hash));
    assert_eq!(at_main.config, machine.path(".config/provost"));
    assert_eq!(at_main.own_socket(), at_main.state.join("run/own.sock"));
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let machine = Machine::new();
    let (outer, inner) = (machine.folder("outer"), machine.folder("inner"));
    for folder in [&outer, &inner] {
        git(folder, &["init", "--quiet"]);
        git(folder, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    }
    git(
        &outer,
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.to_str().unwrap(), "sub"],
    );
    let (at_outer, at_sub) = (machine.places(&outer), machine.places(&outer.join("sub")));
    assert_ne!(at_outer.hash, at_sub.hash);
    assert_eq!((at_sub.root, at_sub.identity), (outer.join("sub"), outer.join(".git/modules/sub")));
}

#[test]
fn a_worktree_pointer_that_is_not_answered_is_refused() {
    let machine = Machine::new();
    let (main, forged) = (machine.folder("main"), machine.folder("forged"));
    git(&main, &["init", "--quiet"]);
    git(&main, &["commit", "--quiet", "--allow-empty", "--message", "first"]);
    git(&main, &["worktree", "add", "--quiet", "../linked"]);
    fs::copy(machine.path("linked/.git"), forged.join(".git")).unwrap();
    let refused = Places::find(&forged, &machine.environment()).unwrap_err();
    assert!(refused.to_string().contains("git worktree repair"), "{refused}");
    fs::write(forged.join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
    assert!(Places::find(&forged, &machine.environment()).is_err());
}

#[test]
fn without_git_the_folder_that_has_a_daemon_is_found_from_below() {
    let machine = Machine::new();
    let (folder, below) = (machine.folder("plain"), machine.folder("plain/a/b"));
    assert_eq!(machine.places(&below).root, below);
    machine.places(&folder).create().unwrap();
    assert_eq!(machine.places(&below).root, folder);
    let elsewhere = Machine { variables: machine.variables.clone(), ..machine }.with("PROVOST_ROOT", &folder);
    assert_eq!(elsewhere.places(Path::new("/")).root, folder);
}

#[test]
fn folders_are_made_private_and_checked_when_they_are_there() {
    let machine = Machine::new().with("XDG_STATE_HOME", "relative/is/ignored");
    let places = machine.places(&machine.folder("plain"));
    places.create().unwrap();
    places.create().unwrap();
    places.create_config().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for path in [&places.state, &places.runtime, &places.config, &machine.path(".local/state/provost")] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    fs::set_permissions(&places.state, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(places.create().unwrap_err().to_string().contains("chmod 700"));
    fs::remove_dir_all(&places.state).unwrap();
    symlink(machine.folder("elsewhere"), &places.state).unwrap();
    assert!(places.create().unwrap_err().to_string().contains("is a link"));
}

#[test]
fn a_runtime_folder_that_is_not_ours_alone_is_not_used() {
    let machine = Machine::new();
    let run = machine.folder("run");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    let machine = machine.with("XDG_RUNTIME_DIR", &run);
    let folder = machine.folder("plain");
    let places = machine.places(&folder);
    assert_eq!(places.devit_socket(), run.join("provost").join(&places.hash).join("devit.sock"));
    places.create().unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    let places = machine.places(&folder);
    assert_eq!(places.runtime, places.state.join("run"));
    assert!(places.notes[0].contains("XDG_RUNTIME_DIR"));
}

#[test]
fn a_socket_path_that_is_too_long_is_said_before_binding() {
    let machine = Machine::new();
    let deep = machine.folder(&"d".repeat(100));
    let machine = machine.with("XDG_STATE_HOME", &deep);
    let places = machine.places(&machine.folder("plain"));
    assert!(places.create().unwrap_err().to_string().contains("XDG_RUNTIME_DIR"));
}
