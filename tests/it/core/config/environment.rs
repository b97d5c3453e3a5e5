//! The variables of the environment, and the output of `provost env` for them.

use provost::base::Door;
use provost::config::Ports;

use super::*;

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
    let (closed, mut open) = (Ports::default(), Ports::default());
    Door::over_loopback().for_each(|(door, at)| open.put(door, Some(at.port)));
    let at = |wit_root, ports| Whereabouts { socket, secret: &secret, wit_root, ports, page: None };
    let printed = for_clients(&at(None, &closed), Shell::Sh).unwrap();
    let script =
        format!("{printed}\nprintf '%s|%s|%s' \"$DEVIT_SOCK\" \"$DEVIT_DAEMON_SOCKET\" \"$DEVIT_SECRET\"");
    let out = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    let expected = format!("{0}|{0}|a'b\"c$d\\e f", socket.display());
    assert_eq!(String::from_utf8(out.stdout).unwrap(), expected);

    let fish = for_clients(&at(None, &closed), Shell::Fish).unwrap();
    assert!(fish.contains(r#"set -gx DEVIT_SECRET 'a\'b"c$d\\e f';"#), "{fish}");
    let printed = for_clients(&at(Some(Path::new("/a b")), &open), Shell::Json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["DEVIT_SECRET"], "a'b\"c$d\\e f");
    assert_eq!(json["DEVIT_SOCK"], socket.to_str().unwrap());
    assert_eq!(json["WIT_REPO_ROOT"], "/a b");
    assert_eq!(json["AGENT_PROTOCOL_URL"], "http://127.0.0.1:4700");
    assert_eq!(json["GIT_PAW_BROKER_URL"], "http://127.0.0.1:9119");
    assert_eq!(json["A6S_URL"], "ws://127.0.0.1:9876/ws");
    assert_eq!(json["PROVOST_MCP_URL"], "http://127.0.0.1:4710/mcp");
}

#[test]
fn a_client_may_start_a_daemon_unless_told_not_to() {
    assert!(Machine::new().environment().auto_start);
    assert!(!Machine::new().with("CI", "1").environment().auto_start);
    assert!(!Machine::new().with("DEVIT_NO_AUTO_START", "").environment().auto_start);
}
