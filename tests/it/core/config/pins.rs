//! A file of the repository: it counts only while it is what its owner allowed.

use provost::base::Door;

use super::*;

/// A repository with our file in it, and a state folder.
fn repository(text: &str) -> (Machine, PathBuf, PathBuf) {
    let machine = Machine::new();
    machine.write("repo/.provost/provost.toml", text);
    let (root, state) = (machine.folder("repo"), machine.folder("state"));
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    (machine, root, state)
}

fn only(files: Vec<RepoFile>) -> RepoFile {
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().unwrap()
}

#[test]
fn a_repositorys_file_counts_only_while_it_is_what_was_allowed() {
    let (machine, root, state) = repository("[limits]\n[devit]\nlease_min = \"20m\"\n");
    let window = |machine: &Machine| {
        let repository = pending(&root, &state).unwrap();
        machine.load(&Sources { root: root.clone(), repository, ..Sources::default() }).unwrap()
    };
    let new = only(pending(&root, &state).unwrap());
    assert_eq!((&new.status, new.path.as_str()), (&Status::New, pin::PROVOST));
    let before = window(&machine);
    assert_eq!(before.config, Config::default());
    assert!(notes(&before)[0].contains("provost config allow .provost/provost.toml"));

    pin::allow(&root, &state, pin::PROVOST, new.digest).unwrap();
    assert_eq!(only(pending(&root, &state).unwrap()).status, Status::Allowed);
    assert_eq!(window(&machine).config.devit.lease_min, seconds(1200));
    let mode = fs::metadata(state.join("allowed.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    machine.write("repo/.provost/provost.toml", "[devit]\nlease_min = \"30m\"\n");
    assert_eq!(only(pending(&root, &state).unwrap()).status, Status::Changed);
    let after = window(&machine);
    assert_eq!(after.config, Config::default());
    assert!(notes(&after)[0].contains("HAS CHANGED") && after.notes[0].severity == Severity::Warning);

    fs::remove_file(root.join(pin::PROVOST)).unwrap();
    assert_eq!(only(pending(&root, &state).unwrap()).status, Status::Missing);
    assert!(pin::forget(&state, pin::PROVOST).unwrap());
    assert!(pending(&root, &state).unwrap().is_empty());
}

#[test]
fn what_is_pinned_is_what_was_shown() {
    let (machine, root, state) = repository("[limits]\n");
    let shown = only(pending(&root, &state).unwrap()).digest;
    machine.write("repo/.provost/provost.toml", "[workers.evil]\n");
    let refused = pin::allow(&root, &state, pin::PROVOST, shown);
    assert!(matches!(refused, Err(PinError::ChangedSinceShown(_))));
    assert_eq!(only(pending(&root, &state).unwrap()).status, Status::New);
    assert!(matches!(pin::allow(&root, &state, "README.md", Digest::of(b"")), Err(PinError::NotOurs(_))));
}

#[test]
fn an_allowed_file_still_may_not_set_what_is_the_owners() {
    let (machine, root, state) = repository(
        "[policy]\nfile = \"open.toml\"\n[hooks.notify]\ncommand = \"evil\"\n[log]\nlevel = \"warn\"\n",
    );
    pin::allow(&root, &state, pin::PROVOST, only(pending(&root, &state).unwrap()).digest).unwrap();
    let repository = pending(&root, &state).unwrap();
    let loaded = machine.load(&Sources { root, repository, ..Sources::default() }).unwrap();
    assert!(loaded.config.policy.file.is_none() && loaded.config.notify.command.is_none());
    assert_eq!(loaded.config.log.level.as_str(), "warn");
    assert_eq!(notes(&loaded).iter().filter(|note| note.contains("a repository may not set it")).count(), 2);
}

#[test]
fn a_repositorys_file_is_never_read_through_a_link_out_of_it_nor_waited_for() {
    let (machine, root, state) = repository("[limits]\n");
    let secret = machine.write("secret.toml", "password");
    fs::remove_file(root.join(pin::PROVOST)).unwrap();
    symlink(secret, root.join(pin::PROVOST)).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join(pin::DEVIT),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    machine.write("repo/.git-paw/config.toml", &"#".repeat((256 << 10) + 1));
    fs::create_dir_all(root.join(".agent-protocol")).unwrap();
    fs::write(root.join(".agent-protocol/config.json"), [0xff, 0xfe]).unwrap();
    let files = pending(&root, &state).unwrap();
    assert_eq!(files.len(), 4);
    for file in files {
        assert!(matches!(file.status, Status::Unreadable(_)), "{file:?}");
        assert!(file.text.is_empty());
    }
}

#[test]
fn a_list_of_pins_that_others_can_write_or_that_is_damaged_allows_nothing() {
    let (_machine, root, state) = repository("[limits]\n");
    pin::allow(&root, &state, pin::PROVOST, only(pending(&root, &state).unwrap()).digest).unwrap();
    let list = state.join("allowed.toml");
    fs::set_permissions(&list, fs::Permissions::from_mode(0o620)).unwrap();
    assert!(pending(&root, &state).unwrap_err().to_string().contains("open to others"));
    fs::set_permissions(&list, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&list, "[[file]]\npath = 1").unwrap();
    assert!(pending(&root, &state).unwrap_err().to_string().contains("damaged"));
    fs::remove_file(&list).unwrap();
    symlink(root.join(pin::PROVOST), &list).unwrap();
    assert!(pending(&root, &state).is_err());
}

#[test]
fn a_port_in_another_programs_file_is_for_whoever_has_named_none() {
    let files = [
        (pin::GIT_PAW, "[broker]\nport = 9201\n"),
        (".agent-protocol/config.json", r#"{ "version": "0.1", "port": 4801, "lead_agent": null }"#),
    ];
    let (machine, root, state) = repository("[limits]\n");
    for (path, text) in files {
        machine.write(&format!("repo/{path}"), text);
    }
    let ports = |machine: &Machine, more: &dyn Fn(Sources) -> Sources| {
        let repository = pending(&root, &state).unwrap();
        let sources = more(Sources { root: root.clone(), repository, ..Sources::default() });
        let loaded = machine.load(&sources).unwrap();
        let written = |key: &str| loaded.origins.get(key).cloned().unwrap_or_default();
        let config = &loaded.config;
        (
            [Door::AgentProtocol, Door::Broker].map(|door| config.doors.of(door).unwrap().port),
            [written("agent_protocol.port"), written("broker.port")],
            notes(&loaded).join("\n"),
        )
    };
    let plain = |sources: Sources| sources;
    assert_eq!(ports(&machine, &plain).0, [4700, 9119], "nobody has allowed them");
    for file in pending(&root, &state).unwrap() {
        pin::allow(&root, &state, &file.path, file.digest).unwrap();
    }
    let (found, origins, _) = ports(&machine, &plain);
    assert_eq!((found, origins), ([4801, 9201], [files[1].0, files[0].0].map(String::from)));

    // One's own words, wherever they are.
    let own = "[agent_protocol]\nport = 4901\n[broker]\nport = 9301\n";
    let user = Some(machine.write("u.toml", own));
    let (found, _, said) = ports(&machine, &|sources| Sources { user: user.clone(), ..sources });
    assert_eq!(found, [4901, 9301]);
    assert!(said.contains("is not used") && said.contains("u.toml"), "{said}");
    let explicit = Some((machine.write("e.toml", own), Dialect::Provost));
    assert_eq!(ports(&machine, &|sources| Sources { explicit: explicit.clone(), ..sources }).0, [4901, 9301]);
    let machine = machine.with("PROVOST_AGENT_PROTOCOL_PORT", "0").with("PROVOST_BROKER_PORT", "9401");
    assert_eq!(ports(&machine, &plain).0, [0, 9401]);
    machine.write("repo/.provost/provost.toml", own);
    for file in pending(&root, &state).unwrap() {
        pin::allow(&root, &state, &file.path, file.digest).unwrap();
    }
    let (found, origins, _) = ports(&machine, &plain);
    assert_eq!((found, origins), ([4901, 9301], [pin::PROVOST, pin::PROVOST].map(String::from)));
}
