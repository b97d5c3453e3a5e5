//! The wit door as a client finds it: where its socket is, whose it is, and what is said there.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

use serde_json::{Value, json};

use crate::support::wit_client::{Wit, git, world};
use crate::support::{World, eventually};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn status(world: &World) -> Value {
    let output = world.command(&["status", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {output:?}"))
}

fn addresses(world: &World) -> Vec<String> {
    let status = status(world);
    let doors = status["doors"].as_array().unwrap().iter().filter(|it| it["door"] == "wit");
    doors.map(|it| it["address"].as_str().unwrap().to_owned()).collect()
}

fn notes(world: &World) -> String {
    status(world)["notes"].to_string()
}

#[test]
fn a_client_finds_the_socket_with_the_number_of_a_live_process_and_leaves_no_trace_in_git() {
    let world = world();
    let daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    let folder = world.repo().join(".wit");
    assert_eq!(fs::read_to_string(folder.join("daemon.pid")).unwrap(), daemon.pid().to_string());
    assert_eq!(mode(&wit.socket), 0o600);
    assert_eq!(git(&world.repo(), &["status", "--porcelain", "--untracked-files=all"]), "");
    assert_eq!(addresses(&world), [wit.socket.display().to_string()]);
    let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".gitignore", "daemon.pid", "daemon.sock"], "nothing else, least of all a state.db");
    daemon.stop();
    assert!(!wit.socket.exists() && !folder.join("daemon.pid").exists());
}

#[test]
fn the_socket_is_in_place_when_the_daemon_says_that_it_is_ready() {
    let world = world();
    let up = world.command(&["up"]).output().unwrap();
    assert!(up.status.success(), "{up:?}");
    assert!(Wit::of(&world).answers());
    assert!(world.command(&["down"]).output().unwrap().status.success());
    assert!(!Wit::of(&world).socket.exists());
}

#[test]
fn a_repository_of_people_without_wit_stays_clean_unless_the_configuration_says_otherwise() {
    let world = World::new();
    let daemon = world.start();
    assert_eq!(addresses(&world), [""; 0]);
    assert!(!world.repo().join(".wit").exists());
    daemon.stop();

    world.configure("[wit]\nopen = \"always\"\n");
    let daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    assert_eq!(mode(wit.socket.parent().unwrap()), 0o700);
    daemon.stop();

    world.configure("[wit]\nopen = \"never\"\n");
    let _daemon = world.start();
    assert_eq!(addresses(&world), [""; 0]);
    assert!(!wit.socket.exists());
}

#[test]
fn a_folder_that_appears_while_the_daemon_runs_opens_the_door() {
    let world = World::new();
    let _daemon = world.start();
    fs::create_dir(world.repo().join(".wit")).unwrap();
    let wit = Wit::of(&world);
    eventually("the socket", || wit.socket.exists());
    assert!(wit.answers());
}

#[test]
fn a_registration_counts_once_and_says_so() {
    let world = world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    assert_eq!(wit.ask("register", json!({ "name": "one", "sessionId": "A" })), json!({ "agentId": 1 }));
    let again = wit.refused("register", json!({ "name": "two", "sessionId": "A" }));
    assert_eq!(again["message"], "SESSION_ALREADY_REGISTERED");
    assert_eq!(again["data"], json!({ "agentId": 1, "name": "one" }));
    assert_eq!(wit.ask("register", json!({ "name": "one", "sessionId": "B" })), json!({ "agentId": 2 }));
}

#[test]
fn nobody_speaks_for_a_reserved_name() {
    let world = world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    for name in ["provost", "orchestrator", "human", "user:tester", "client:approver"] {
        let refused = wit.refused("register", json!({ "name": "x", "sessionId": name }));
        assert_eq!(refused["message"], "SESSION_RESERVED", "{name}");
        assert!(refused["data"]["message"].as_str().unwrap().contains("choose another"));
    }
}

#[test]
fn a_socket_that_was_left_behind_is_taken_over() {
    let world = world();
    let mut daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    daemon.kill();
    assert!(wit.socket.exists() && std::os::unix::net::UnixStream::connect(&wit.socket).is_err());
    let daemon = world.start();
    eventually("an answer", || wit.answers());
    assert_eq!(fs::read_to_string(world.repo().join(".wit/daemon.pid")).unwrap(), daemon.pid().to_string());
}

#[test]
fn a_number_that_another_process_has_by_now_is_no_daemon() {
    let world = world();
    // Alive, and nobody's daemon: this test itself.
    fs::write(world.repo().join(".wit/daemon.pid"), std::process::id().to_string()).unwrap();
    let daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    assert_eq!(fs::read_to_string(world.repo().join(".wit/daemon.pid")).unwrap(), daemon.pid().to_string());
}

#[test]
fn another_live_daemon_keeps_its_socket_until_it_ends() {
    let world = world();
    let wit = Wit::of(&world);
    let other = UnixListener::bind(&wit.socket).unwrap();
    let inode = fs::metadata(&wit.socket).unwrap().ino();
    fs::write(world.repo().join(".wit/daemon.pid"), "4194000").unwrap();
    let daemon = world.start();
    eventually("the note", || {
        notes(&world).contains("another daemon (process 4194000) listens here; stop it (kill 4194000)")
    });
    assert_eq!(fs::metadata(&wit.socket).unwrap().ino(), inode);
    assert_eq!(fs::read_to_string(world.repo().join(".wit/daemon.pid")).unwrap(), "4194000");
    assert_eq!(addresses(&world), [""; 0]);
    drop(other);
    eventually("the address", || !addresses(&world).is_empty());
    assert!(wit.answers());
    assert!(!notes(&world).contains("another daemon"));
    daemon.stop();
}

#[test]
fn a_daemon_that_took_the_name_is_told_of_and_not_fought_and_its_files_stay() {
    let world = world();
    let daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    // As wit's own daemon does it.
    fs::remove_file(&wit.socket).unwrap();
    let pid_file = world.repo().join(".wit/daemon.pid");
    fs::remove_file(&pid_file).unwrap();
    fs::write(&pid_file, "4194000").unwrap();
    let _other = UnixListener::bind(&wit.socket).unwrap();
    eventually("the note", || notes(&world).contains("another daemon (process 4194000)"));
    daemon.stop();
    assert!(wit.socket.exists());
    assert_eq!(fs::read_to_string(pid_file).unwrap(), "4194000");
}

#[test]
fn what_was_deleted_is_placed_again() {
    let world = world();
    let daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    let pid_file = world.repo().join(".wit/daemon.pid");
    let number = || fs::read_to_string(&pid_file).unwrap_or_default() == daemon.pid().to_string();

    // A client that has found the number of a dead process deletes the file.
    fs::remove_file(&pid_file).unwrap();
    eventually("the number", number);
    fs::remove_file(&wit.socket).unwrap();
    eventually("the socket", || wit.socket.exists());
    assert!(wit.answers() && number());
    fs::remove_dir_all(world.repo().join(".wit")).unwrap();
    fs::create_dir(world.repo().join(".wit")).unwrap();
    eventually("both", || wit.socket.exists() && number());
    assert!(wit.answers());
}

#[test]
fn a_folder_that_is_a_link_or_open_to_others_is_not_used() {
    let world = World::new();
    let elsewhere = world.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, world.repo().join(".wit")).unwrap();
    let daemon = world.start();
    eventually("the note", || notes(&world).contains("is a link or a file, and must be a folder; remove it"));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    daemon.stop();

    fs::remove_file(world.repo().join(".wit")).unwrap();
    fs::create_dir(world.repo().join(".wit")).unwrap();
    fs::set_permissions(world.repo().join(".wit"), fs::Permissions::from_mode(0o777)).unwrap();
    let _daemon = world.start();
    eventually("the note", || notes(&world).contains("can be written by others"));
    assert_eq!(fs::read_dir(world.repo().join(".wit")).unwrap().count(), 0);
}

#[test]
fn a_folder_that_everybody_may_read_is_used_as_it_is() {
    let world = world();
    fs::set_permissions(world.repo().join(".wit"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(world.repo().join(".wit/.gitignore"), "state.db\n").unwrap();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    assert_eq!((mode(&world.repo().join(".wit")), mode(&wit.socket)), (0o755, 0o600));
    assert_eq!(fs::read_to_string(world.repo().join(".wit/.gitignore")).unwrap(), "state.db\n");
}

#[test]
fn every_work_tree_has_a_socket_those_that_come_later_too() {
    let world = world();
    let repo = world.repo();
    git(&repo, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let (first, second) = (world.path("first"), world.path("second"));
    git(&repo, &["worktree", "add", "--quiet", first.to_str().unwrap()]);
    let daemon = world.start();
    let wits = [&repo, &first].map(|top| Wit::in_tree(top));
    wits.iter().for_each(|wit| eventually("an answer", || wit.answers()));
    git(&repo, &["worktree", "add", "--quiet", second.to_str().unwrap()]);
    let late = Wit::in_tree(&second);
    eventually("the late one", || late.socket.exists());
    assert!(late.answers());
    assert_eq!(git(&second, &["status", "--porcelain", "--untracked-files=all"]), "");
    assert_eq!(addresses(&world).len(), 3);
    // Sessions are the same wherever they come in.
    wits[1].ask("register", json!({ "name": "x", "sessionId": "A" }));
    assert_eq!(
        late.token("register", json!({ "name": "x", "sessionId": "A" })),
        "SESSION_ALREADY_REGISTERED"
    );
    git(&repo, &["worktree", "remove", second.to_str().unwrap()]);
    assert!(!second.exists());
    eventually("two", || addresses(&world).len() == 2);
    assert!(!second.exists(), "what was removed is not made again");
    daemon.stop();
    assert!(wits.iter().all(|wit| !wit.socket.exists()));
}

#[test]
fn a_repository_cannot_name_a_folder_elsewhere_as_its_work_tree() {
    let world = world();
    // A folder, and the work tree of another repository.
    let (folder, other, linked) = (world.path("folder"), world.path("other"), world.path("linked"));
    [&folder, &other].iter().for_each(|it| fs::create_dir(it).unwrap());
    git(&other, &["init", "--quiet"]);
    git(&other, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    git(&other, &["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    for (name, victim) in [("a", &folder), ("b", &other), ("c", &linked)] {
        let entry = world.repo().join(".git/worktrees").join(name);
        fs::create_dir_all(&entry).unwrap();
        fs::write(entry.join("gitdir"), format!("{}\n", victim.join(".git").display())).unwrap();
        fs::write(entry.join("commondir"), "../..\n").unwrap();
    }
    let _daemon = world.start();
    eventually("an answer", || Wit::of(&world).answers());
    assert_eq!(addresses(&world).len(), 1);
    assert!([&folder, &other, &linked].iter().all(|it| !it.join(".wit").exists()));
}

#[test]
fn a_path_longer_than_an_address_is_no_obstacle() {
    let world = World::new();
    let deep = world.repo().join("a".repeat(70)).join("b".repeat(70));
    fs::create_dir_all(deep.join(".wit")).unwrap();
    git(&deep, &["init", "--quiet"]);
    let mut command = world.command(crate::support::UP);
    command.current_dir(&deep);
    let _daemon = world.start_as(command);
    let wit = Wit::in_tree(&deep);
    eventually("the socket", || wit.socket.exists());
    assert!(wit.socket.as_os_str().len() > 107);
    // The test's own way to a long path: from inside of the folder.
    let ping = json!({ "jsonrpc": "2.0", "witVersion": "1", "id": "long", "method": "ping" }).to_string();
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect('.wit/daemon.sock')\n\
        b=sys.argv[1].encode()\ns.sendall(b'POST /rpc HTTP/1.1\\r\\nHost: l\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n'%len(b)+b)\n\
        print(s.makefile().read())";
    let output = Command::new("python3").args(["-c", script, &ping]).current_dir(&deep).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"pong\""), "{output:?}");
}

#[test]
fn a_jailed_process_does_not_get_in() -> io::Result<()> {
    let world = world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("an answer", || wit.answers());
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
        s.sendall(b'POST /rpc HTTP/1.1\\r\\nHost: l\\r\\nContent-Length: 0\\r\\n\\r\\n')\nprint(s.recv(99))";
    let output = Command::new("unshare")
        .args(["--user", "--map-current-user", "--pid", "--fork", "python3", "-c", script])
        .arg(&wit.socket)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!said.contains("HTTP/1.1"), "{output:?}");
    assert!(world.log().contains("the peer is in another pid namespace"), "{output:?}: {}", world.log());
    Ok(())
}

#[test]
fn another_user_does_not_get_in_even_where_the_socket_is_open_to_all() {
    let program = std::env::var("PROVOST_TEST_OTHER")
        .expect("a program that connects as another user: run scripts/test as root, which makes one");
    let world = world();
    git(&world.repo(), &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    // A work tree where another user can go to: the rest of this world is ours alone.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let tree = place.path().join("tree");
    git(&world.repo(), &["worktree", "add", "--quiet", tree.to_str().unwrap()]);
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let _daemon = world.start();
    let wit = Wit::in_tree(&tree);
    eventually("an answer", || wit.socket.exists() && wit.answers());
    [place.path(), &tree, &tree.join(".wit")].into_iter().for_each(|it| open(it, 0o755));
    let asked_by = |program: &str| {
        let mut child = Command::new(program)
            .args(["-U", wit.socket.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let request = b"GET /nowhere HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n";
        // Who could not connect has ended already.
        let _ = child.stdin.as_mut().unwrap().write_all(request);
        let output = child.wait_with_output().unwrap();
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned())
    };
    assert!(asked_by("nc")[0].starts_with("HTTP/1.1 404"));
    let [said, why] = asked_by(&program);
    assert!(said.is_empty() && why.contains("Permission denied"), "{said} {why}");
    open(&wit.socket, 0o666);
    let [said, why] = asked_by(&program);
    assert!(said.is_empty() && !why.contains("Permission denied"), "{said} {why}");
    assert!(world.log().contains("the peer is another user"), "{}", world.log());
    assert!(asked_by("nc")[0].starts_with("HTTP/1.1 404"));
}

#[test]
fn clients_in_a_subdirectory_are_pointed_to_the_top_of_their_work_tree() {
    let world = World::new();
    let below = world.repo().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    let env = || {
        let output = world.command(&["env", "--json"]).current_dir(&below).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(env().get("WIT_REPO_ROOT"), None, "nobody uses wit here");
    fs::create_dir(world.repo().join(".wit")).unwrap();
    assert_eq!(env()["WIT_REPO_ROOT"], world.repo().to_str().unwrap());
}
