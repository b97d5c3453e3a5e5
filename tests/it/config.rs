//! Configuration: layers, mistakes, pins, places and the environment, through real files.

mod rates;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use provost::base::{AgentId, Digest, Secret, Ttl};
use provost::config::env::{Environment, Shell, Whereabouts, for_clients, weak_secret};
use provost::config::pin::{self, PinError, RepoFile, Status, pending};
use provost::config::{
    Broken, Config, Dialect, Loaded, Network, Places, Rate, Severity, Sources, Tier, Versions, WorkerKind,
    load, named, print_toml,
};
use tempfile::TempDir;

/// A machine with nothing on it but what a test puts there.
struct Machine {
    home: TempDir,
    variables: BTreeMap<&'static str, OsString>,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::Builder::new().prefix("m").tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let variables = BTreeMap::from([("HOME", home.path().canonicalize().unwrap().into_os_string())]);
        Self { home, variables }
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name, value.into());
        self
    }

    fn path(&self, below: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(below)
    }

    fn folder(&self, below: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn environment(&self) -> Environment {
        Environment::from_lookup(|name| self.variables.get(name).cloned())
    }

    fn load(&self, sources: &Sources) -> Result<Loaded, Broken> {
        load(sources, &self.environment())
    }

    fn places(&self, cwd: &Path) -> Places {
        Places::find(cwd, &self.environment()).unwrap()
    }
}

/// What one user's file makes of the configuration.
fn user(text: &str) -> Result<Loaded, Broken> {
    let machine = Machine::new();
    let user = Some(machine.write("provost.toml", text));
    machine.load(&Sources { user, ..Sources::default() })
}

fn devit(text: &str) -> Result<Loaded, Broken> {
    let machine = Machine::new();
    let explicit = Some((machine.write("devit.core.toml", text), Dialect::Devit));
    machine.load(&Sources { explicit, ..Sources::default() })
}

fn notes(loaded: &Loaded) -> Vec<String> {
    loaded.notes.iter().map(|note| note.to_string()).collect()
}

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn seconds(seconds: u64) -> Ttl {
    Ttl::seconds_clamped(seconds)
}

// Layers.

#[test]
fn without_any_file_the_defaults_are_in_force_and_the_shell_worker_is_there() {
    let loaded = Machine::new().load(&Sources::default()).unwrap();
    assert_eq!((loaded.config.clone(), loaded.notes.len()), (Config::default(), 0));
    let shell = &loaded.config.workers[&agent("shell")];
    assert_eq!((shell.tier, shell.network, shell.kind), (Tier::Ns, Network::None, WorkerKind::Cli));
    assert_eq!(loaded.config.devit.window, seconds(300));
    assert_eq!(loaded.config.approvals.default_target, agent("client:approver"));
}

#[test]
fn a_later_layer_wins_key_by_key() {
    let machine = Machine::new();
    let system = Some(
        machine
            .write("system.toml", "[devit]\nwindow = \"1m\"\nlease_min = \"20m\"\n[limits]\nworkers = 2\n"),
    );
    let user = Some(machine.write("user.toml", "[devit]\nwindow = \"2m\"\n[log]\nlevel = \"warn\"\n"));
    let explicit = Some((machine.write("given.toml", "[log]\nlevel = \"debug\"\n"), Dialect::Provost));
    let loaded = machine.load(&Sources { system, user, explicit, ..Sources::default() }).unwrap();
    assert_eq!(loaded.config.devit.window, seconds(120));
    assert_eq!(loaded.config.devit.lease_min, seconds(1200));
    assert_eq!(loaded.config.limits.workers, 2);
    assert_eq!(loaded.config.log.level.as_str(), "debug");
    assert!(loaded.origins["log.level"].ends_with("given.toml"));
    assert_eq!(notes(&loaded), [""; 0]);
}

#[test]
fn a_file_named_on_the_command_line_must_exist_and_the_usual_ones_need_not() {
    let machine = Machine::new();
    let missing = machine.path("nothing.toml");
    let sources = Sources { user: Some(missing.clone()), ..Sources::default() };
    assert_eq!(machine.load(&sources).unwrap().config, Config::default());
    let sources = Sources { explicit: Some((missing, Dialect::Provost)), ..Sources::default() };
    assert!(machine.load(&sources).unwrap_err().to_string().contains("nothing.toml"));
}

#[test]
fn the_printed_sample_uncommented_means_exactly_the_defaults() {
    let uncomment = |line: &str| match line.strip_prefix('#') {
        Some(setting) if setting.starts_with(char::is_lowercase) => setting.to_string(),
        _ => line.to_string(),
    };
    let printed = print_toml();
    let sample: Vec<String> = printed.lines().map(uncomment).collect();
    assert!(sample.iter().filter(|line| line.contains(" = ") && !line.starts_with('#')).count() > 20);
    let loaded = user(&sample.join("\n")).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(notes(&loaded), [""; 0]);
    let unchanged = user(&printed).unwrap();
    assert_eq!((unchanged.config, unchanged.notes.len()), (Config::default(), 0));
}

#[test]
fn paths_begin_at_their_file_or_at_home() {
    let machine = Machine::new();
    let file = machine.write(
        "conf/provost.toml",
        "[workspace]\nsandbox_root = \"../code\"\n[devit]\nsocket = \"~/d.sock\"\n",
    );
    let loaded = machine.load(&Sources { user: Some(file), ..Sources::default() }).unwrap();
    assert_eq!(loaded.config.workspace.sandbox_root, Some(machine.path("conf/../code")));
    assert_eq!(loaded.config.devit.socket, Some(machine.path("d.sock")));
}

#[test]
fn the_rules_are_a_file_or_come_with_the_program() {
    let rules = |text: &str| user(text).unwrap().config.policy.file.unwrap().0;
    assert_eq!(rules("[policy]\nfile = \"builtin:strict\""), "builtin:strict");
    assert!(rules("[policy]\nfile = \"mine.toml\"").ends_with("/mine.toml"));
    user("[policy]\nfile = [\"a.toml\", \"b.toml\"]").expect_err("one file decides");
}

#[test]
fn expected_versions_are_one_or_a_list_and_none_means_all() {
    let versions =
        |text: &str| user(&format!("[daemon]\nexpected_worker_version = {text}")).unwrap().config.daemon;
    assert!(versions("\"a/1\"").expected_worker_version.admits(Some("a/1")));
    let list = versions("[\"a/1\", \"b/2\"]").expected_worker_version;
    assert!(list.admits(Some("b/2")) && !list.admits(Some("c/3")) && !list.admits(None) && list.enforced());
    assert!(Versions::default().admits(None));
}

// Mistakes.

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
    let loaded =
        user("[log]\nlevle = \"debug\"\n[devit]\nleasemin = \"1m\"\nmax_files = 3\n[colour]\nx = 1\n")
            .unwrap();
    let said = notes(&loaded);
    let has = |parts: &[&str]| said.iter().any(|note| parts.iter().all(|part| note.contains(part)));
    assert!(has(&["provost.toml:2:", "`log.levle`", "did you mean `level`"]), "{said:?}");
    assert!(has(&["`devit.leasemin`", "`lease_min`"]), "{said:?}");
    assert!(has(&["`devit.max_files`", "`[log]`"]), "{said:?}");
    assert!(has(&["colour", "not a setting"]), "{said:?}");
    assert_eq!(loaded.config, Config::default());
}

#[test]
fn a_wrong_value_leaves_the_layer_beneath_in_force_and_the_rest_alone() {
    let machine = Machine::new();
    let system = Some(machine.write("system.toml", "[log]\nmax_files = 5\n"));
    let user = Some(machine.write(
        "user.toml",
        "[log]\nmax_files = 0\nlevel = \"loud\"\n[devit]\npoll_hold = 800\nlease_min = \"20m\"",
    ));
    let loaded = machine.load(&Sources { system, user, ..Sources::default() }).unwrap();
    assert_eq!((loaded.config.log.max_files, loaded.config.log.level.as_str()), (5, "info"));
    assert_eq!(loaded.config.devit.lease_min, seconds(1200));
    let said = notes(&loaded).join("\n");
    assert!(
        said.contains("between 1 and 1000")
            && said.contains("\"error\", \"warn\"")
            && said.contains("\"800s\""),
        "{said}"
    );
    assert!(loaded.notes.iter().all(|note| note.severity == Severity::Error));
}

#[test]
fn a_mistake_never_switches_an_enforcement_off() {
    for text in [
        "[daemon]\nexpected_worker_version = 3",
        "[daemon]\nexpected_worker_version = \"\"",
        "[daemon]\nexpected_worker_version = [\"a\", 1]",
        "[daemon]\nexpected_worker_versions = \"a/1\"",
        "[daemon]\nexpected_worker_vresion = \"a/1\"",
        "daemon = \"a/1\"",
        "expected_worker_version = \"a/1\"",
        "[devit]\nexpected_worker_version = \"a/1\"",
        "[demon]\nexpected_worker_version = \"a/1\"",
        "[daemon.aprovals]\ndefault_target = \"client:boss\"",
        "[polcy]\nfile = \"a.toml\"",
        "[daemon.approvals]\ndefault_target = \"\"",
        "[devit]\nwindow = \"2h\"",
        "[devit]\nwindwo = \"1m\"",
        "[devit]\ndialect_document = \"no\"",
        "[store]\ndurability = \"most\"",
        "[workspace]\nsandbox_root = 1",
        "[policy]\nfile = [\"a.toml\"]",
        "[policy]\nfiles = \"a.toml\"",
        "[screenshot]\nrate_limit = \"often\"",
        "[daemon\n",
    ] {
        let broken = user(text).expect_err(text);
        assert!(broken.note.line.is_some() && broken.note.file.ends_with("provost.toml"), "{text}: {broken}");
    }
}

#[test]
fn a_wrong_worker_is_refused_alone_and_keeps_its_reason() {
    let loaded = user(concat!(
        "[workers.good]\ntype = \"cli\"\nbinary = \"/bin/true\"\ntimeout_secs = 60\ntimeout = 5\n",
        "[workers.untyped]\nbinary = \"/bin/true\"\n",
        "[workers.bare]\ntype = \"cli\"\n",
        "[workers.climber]\ntype = \"mcp\"\nbinary = \"../tool\"\n",
        "[workers.endless]\ntype = \"cli\"\nbinary = \"a\"\ntimeout_secs = 0\n",
        "[workers.open]\ntype = \"cli\"\nbinary = \"a\"\nnetwork = \"all\"\n",
        "[workers.wide]\ntype = \"cli\"\nbinary = \"a\"\nports = [80]\n",
        "[workers.high]\ntype = \"cli\"\nbinary = \"a\"\nnetwork = \"ports\"\nports = [65536]\n",
        "[workers.loose]\ntype = \"cli\"\nbinary = \"a\"\nallowed_model = [\"m\"]\n",
        "[workers.leaky]\ntype = \"cli\"\nbinary = \"a\"\nenv = { DEVIT_SECRET = \"x\" }\n",
        "[workers.shell]\ntype = \"nothing\"\n",
    ))
    .unwrap();
    assert_eq!(loaded.config.workers.keys().map(AgentId::as_str).collect::<Vec<_>>(), ["good"]);
    assert_eq!(loaded.config.workers[&agent("good")].timeout_secs, 60);
    let why = |name: &str| loaded.config.refused_workers[name].reason.clone();
    assert!(why("untyped").contains("`type` is missing: write cli or mcp or polling"));
    assert!(why("bare").contains("`binary` is missing"));
    assert!(why("climber").contains(".."));
    assert!(why("endless").contains("`timeout_secs`: must lie between 1"));
    assert!(why("open").contains("`network`"));
    assert!(why("wide").contains("`network = \"ports\"`") && why("high").contains("65535"));
    assert!(why("loose").contains("did you mean `allowed_models`"));
    assert!(why("leaky").contains("DEVIT_SECRET"));
    assert!(why("shell").contains("`type`"), "a wrong entry does not fall back to the built-in worker");
    assert!(
        notes(&loaded)
            .iter()
            .any(|note| note.contains("`workers.good.timeout`") && note.contains("timeout_secs"))
    );
}

#[test]
fn a_later_entry_of_a_worker_replaces_the_earlier_one_whole() {
    let machine = Machine::new();
    let system = Some(machine.write(
        "s.toml",
        "[workers.w]\ntype = \"cli\"\nbinary = \"/bin/a\"\nargs = [\"-x\"]\n[workers.v]\ntype = \"cli\"\n",
    ));
    let user = Some(machine.write(
        "u.toml",
        "[workers.w]\ntype = \"cli\"\nbinary = \"/bin/b\"\n[workers.v]\ntype = \"polling\"\n",
    ));
    let config = machine.load(&Sources { system, user, ..Sources::default() }).unwrap().config;
    assert_eq!(config.workers[&agent("w")].binary.as_deref(), Some("/bin/b"));
    assert!(config.workers[&agent("w")].args.is_empty());
    assert_eq!(config.workers[&agent("v")].kind, WorkerKind::Polling);
    assert!(config.refused_workers.is_empty());
}

#[test]
fn every_key_of_a_worker_is_read() {
    let loaded = user(concat!(
        "[workers.w]\ntype = \"mcp\"\nbinary = \"codex\"\nargs = [\"{goal}\"]\ntimeout_secs = 5\nparse_mode = \"text\"\n",
        "working_dir = \"{workspace}/a\"\nmax_response_chars = 100\nmcp_tool = \"t\"\nmcp_arguments = { b = 1, a = [true, 1.5] }\n",
        "default_model = \"m\"\nallowed_models = [\"m\"]\ntier = \"ns\"\nnetwork = \"hosts\"\nhosts = [\"example.org:443\"]\n",
        "read_only = [\"/opt/tools\"]\nenv = { LANG = \"C\" }\nsecrets = [\"KEY\"]\nmemory = \"512MiB\"\nprocesses = 16\ncopy = true\n",
    ))
    .unwrap();
    let w = &loaded.config.workers[&agent("w")];
    assert_eq!(w.mcp_arguments.as_ref().unwrap().as_str(), "{\"a\":[true,1.5],\"b\":1}");
    assert_eq!(
        (w.memory.0, w.processes, w.copy, w.tier, w.network),
        (512 << 20, 16, true, Tier::Ns, Network::Hosts)
    );
    assert_eq!((w.max_response_chars, w.timeout_secs), (Some(100), 5));
    assert_eq!(
        (w.env["LANG"].as_str(), w.read_only[0].to_str(), w.secrets[0].as_str()),
        ("C", Some("/opt/tools"), "KEY")
    );
    assert_eq!(notes(&loaded), [""; 0]);
}

#[test]
fn a_file_that_others_can_write_is_not_read() {
    let machine = Machine::new();
    let file = machine.write("provost.toml", "[log]\nlevel = \"debug\"\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let broken = machine.load(&Sources { user: Some(file), ..Sources::default() }).unwrap_err();
    assert!(broken.to_string().contains("chmod go-w"), "{broken}");
}

// DevIt's file.

#[test]
fn an_existing_devit_file_is_read_as_it_is() {
    let machine = Machine::new();
    let text = concat!(
        "[workspace]\nsandbox_root = \"code\"\ndefault_project = \"x\"\nallowed_projects = []\n",
        "[daemon]\nexpected_worker_version = \"mcp-server/0.1.0\"\n[daemon.approvals]\ndefault_target = \"client:boss\"\n",
        "[workers.claude_code]\ntype = \"cli\"\nbinary = \"claude\"\nargs = [\"-p\", \"{goal}\"]\n",
        "[orchestration]\nmode = \"auto\"\nauto_start_daemon = true\ndaemon_socket = \"/tmp/d.sock\"\nmax_concurrent_tasks = 5\n",
        "[orchestration.capabilities.screenshot]\nenabled = true\nrate_limit = \"3/30s\"\n",
        "[tools.screenshot]\nenabled = true\nbackend = \"scrot\"\nformat = \"jpg\"\n[tools.other]\nx = 1\n",
    );
    let explicit = Some((machine.write("conf/devit.core.toml", text), Dialect::Devit));
    let loaded = machine.load(&Sources { explicit, ..Sources::default() }).unwrap();
    let config = &loaded.config;
    assert_eq!(config.workspace.sandbox_root, Some(machine.path("conf/code")));
    assert_eq!(config.daemon.expected_worker_version, Versions(vec!["mcp-server/0.1.0".into()]));
    assert_eq!(config.approvals.default_target, agent("client:boss"));
    assert_eq!(config.workers[&agent("claude_code")].args, ["-p", "{goal}"]);
    assert_eq!(config.devit.socket, Some("/tmp/d.sock".into()));
    assert!(config.screenshot.enabled);
    assert_eq!(
        (config.screenshot.rate_limit, config.screenshot.format.as_str()),
        (Rate { count: 3, per_s: 30 }, "jpg")
    );
    assert_eq!(notes(&loaded), [""; 0]);
}

#[test]
fn pictures_need_both_of_devits_switches() {
    for text in [
        "[tools.screenshot]\nenabled = true\n",
        "[orchestration.capabilities.screenshot]\nenabled = true\n",
        "[tools.screenshot]\nenabled = true\n[orchestration.capabilities.screenshot]\nenabled = false\n",
    ] {
        assert!(!devit(text).unwrap().config.screenshot.enabled, "{text}");
    }
}

#[test]
fn what_devit_documents_and_never_read_is_named_with_what_to_write() {
    let loaded = devit(concat!(
        "[orchestration]\nexpected_worker_version = \"a/1\"\n[orchestration.notify_hook]\ncommand = \"x\"\n",
        "[daemon]\nsocket = \"/tmp/x\"\n[chaos]\na = 1\n[colours]\nb = 2\n[workers.w]\ntype = \"cli\"\nbinary = \"b\"\ntimeout = 60\n",
    ))
    .unwrap();
    let said = notes(&loaded).join("\n");
    for part in [
        "[daemon] expected_worker_version",
        "DEVIT_NOTIFY_HOOK",
        "`daemon.socket`",
        "`chaos`",
        "`timeout_secs`",
        "`colours`",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!loaded.config.daemon.expected_worker_version.enforced());
    assert_eq!(loaded.config.workers[&agent("w")].timeout_secs, 300);
}

#[test]
fn a_mistake_in_a_devit_file_never_switches_an_enforcement_off() {
    for text in [
        "[daemon]\nexpected_worker_version = 1",
        "[daemon]\nexpected_worker_versoin = \"a/1\"",
        "[workspace]\nsandbox_rot = \"a\"",
        "daemon = 1",
        "[deamon]\nexpected_worker_version = \"a/1\"",
        "expected_worker_version = \"a/1\"",
        "[daemon.approvals]\ndefault_targets = \"x\"",
    ] {
        devit(text).expect_err(text);
    }
    let loaded = devit("[daemon]\nexpected_worker_version = \"a/1\"\n[workers.bad]\ntype = 7\n").unwrap();
    assert!(
        loaded.config.daemon.expected_worker_version.enforced()
            && loaded.config.refused_workers.contains_key("bad")
    );
}

// Pins.

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
    assert!(notes(&before)[0].contains("provost allow .provost/provost.toml"));

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

// Places.

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

// Environment.

#[test]
fn the_environment_speaks_only_where_the_files_are_silent() {
    let machine = Machine::new()
        .with("DEVIT_EXPECTED_WORKER_VERSION", "a/1, b/2")
        .with("DEVIT_AUTO_SHUTDOWN_AFTER", "90")
        .with("DEVIT_NOTIFY_HOOK", "notify-me");
    let config = machine.load(&Sources::default()).unwrap().config;
    assert_eq!(config.daemon.expected_worker_version, Versions(vec!["a/1".into(), "b/2".into()]));
    assert_eq!(config.daemon.auto_shutdown_after, Some(seconds(90)));
    assert_eq!(config.notify.command.as_deref(), Some("notify-me"));

    let user = Some(machine.write("u.toml", "[daemon]\nexpected_worker_version = \"c/3\"\n"));
    let loaded = machine.load(&Sources { user, ..Sources::default() }).unwrap();
    assert_eq!(loaded.config.daemon.expected_worker_version, Versions(vec!["c/3".into()]));
    assert!(notes(&loaded)[0].contains("DEVIT_EXPECTED_WORKER_VERSION"));

    let off = Machine::new().with("DEVIT_AUTO_SHUTDOWN_AFTER", "0").load(&Sources::default()).unwrap();
    assert_eq!(off.config.daemon.auto_shutdown_after, None);
}

#[test]
fn the_command_line_names_the_file_before_the_environment_does() {
    let machine = Machine::new().with("PROVOST_CONFIG", "/p.toml").with("DEVIT_CORE_CONFIG", "/d.toml");
    let named =
        |flag: Option<&str>, devit_form| named(flag.map(Into::into), devit_form, &machine.environment());
    assert_eq!(named(Some("/x.toml"), false), Some(("/x.toml".into(), Dialect::Provost)));
    assert_eq!(named(Some("/devit.core.toml"), false), Some(("/devit.core.toml".into(), Dialect::Devit)));
    assert_eq!(named(Some("/x.toml"), true), Some(("/x.toml".into(), Dialect::Devit)));
    assert_eq!(named(None, false), Some(("/p.toml".into(), Dialect::Provost)));
}

#[test]
fn a_version_list_of_nothing_but_commas_is_an_error_and_not_everybody() {
    let machine = Machine::new().with("DEVIT_EXPECTED_WORKER_VERSION", " , ");
    machine.load(&Sources::default()).unwrap_err();
}

#[test]
fn empty_and_published_secrets_are_weak() {
    let weak = |text: &str| weak_secret(&Secret::new(text.into())).is_some();
    for text in ["", "  ", "\n", "change-me", "change-me-in-production", "Change-Me"] {
        assert!(weak(text), "{text:?}");
    }
    assert!(!weak("f3b0c44298fc1c149afbf4c8996fb924"));
}

#[test]
fn what_provost_env_prints_arrives_unharmed_in_a_shell() {
    let (socket, secret) =
        (Path::new("/run/it's \\ $HOME/`x`/d.sock"), Secret::new(b"a'b\"c$d\\e f".to_vec()));
    let at = |wit_root, broker| Whereabouts {
        socket,
        secret: &secret,
        wit_root,
        agent_protocol: Some(4700),
        broker,
    };
    let printed = for_clients(&at(None, None), Shell::Sh).unwrap();
    let script =
        format!("{printed}\nprintf '%s|%s|%s' \"$DEVIT_SOCK\" \"$DEVIT_DAEMON_SOCKET\" \"$DEVIT_SECRET\"");
    let out = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    let expected = format!("{0}|{0}|a'b\"c$d\\e f", socket.display());
    assert_eq!(String::from_utf8(out.stdout).unwrap(), expected);

    let fish = for_clients(&at(None, None), Shell::Fish).unwrap();
    assert!(fish.contains(r#"set -gx DEVIT_SECRET 'a\'b"c$d\\e f';"#), "{fish}");
    let printed = for_clients(&at(Some(Path::new("/a b")), Some(9119)), Shell::Json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["DEVIT_SECRET"], "a'b\"c$d\\e f");
    assert_eq!(json["DEVIT_SOCK"], socket.to_str().unwrap());
    assert_eq!(json["WIT_REPO_ROOT"], "/a b");
    assert_eq!(json["AGENT_PROTOCOL_URL"], "http://127.0.0.1:4700");
    assert_eq!(json["GIT_PAW_BROKER_URL"], "http://127.0.0.1:9119");
}

#[test]
fn a_client_may_start_a_daemon_unless_told_not_to() {
    assert!(Machine::new().environment().auto_start);
    assert!(!Machine::new().with("CI", "1").environment().auto_start);
    assert!(!Machine::new().with("DEVIT_NO_AUTO_START", "").environment().auto_start);
}
