//! Configuration: layers and mistakes, through real files.

mod agents;
mod environment;
mod pins;
mod places;
mod rates;
mod workflows;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use provost::base::{AgentId, Digest, Secret, Ttl};
use provost::config::env::{Environment, Shell, Whereabouts, for_clients, weak_secret};
use provost::config::pin::{self, PinError, RepoFile, Status, pending};
use provost::config::{
    Broken, Config, Copies, Dialect, Loaded, Network, Places, Rate, Severity, Sources, Tier, Versions,
    WorkerKind, load, named, print_toml,
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

/// Loads the configuration with one file of a user.
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
    assert!(why("untyped").contains("`type` is missing: write cli or mcp or acp or polling"));
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
        (512 << 20, 16, Some(Copies::Thrown), Tier::Ns, Network::Hosts)
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
