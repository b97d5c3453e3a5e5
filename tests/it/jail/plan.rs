//! Refusals of a plan before anything is started, and the plan's text.

use proptest::prelude::*;
use provost::jail::{EnvironmentRefused, PlanRefused, ResolvedPath, Topic};

use crate::support::jails::*;

/// A place as it would be found, at any path.
fn place(path: &str) -> ResolvedPath {
    serde_json::from_value(serde_json::json!({ "path": path, "dev": 1, "ino": 2 })).unwrap()
}

fn with_workspace(path: &str) -> Draft {
    Draft::new(resolve_program(Path::new("/bin/sh")).unwrap(), Environment::new([]), place(path))
}

fn forbidden_paths() -> ForbiddenPaths {
    ForbiddenPaths { home: "/home/user".into(), forbidden: vec!["/home/user/.local/state/provost".into()] }
}

#[test]
fn a_workspace_is_neither_the_system_nor_a_home_nor_our_own() {
    let refusal = |path| with_workspace(path).check(&forbidden_paths()).unwrap_err();
    for path in ["/", "/home", "/home/user", "/home/other", "/root"] {
        assert!(matches!(refusal(path), PlanRefused::TooWide(_)), "{path}: {}", refusal(path));
    }
    for path in ["/usr", "/usr/local/src", "/etc", "/etc/x", "/proc", "/run/user/1000", "/dev/shm/x"] {
        assert!(matches!(refusal(path), PlanRefused::System(_)), "{path}: {}", refusal(path));
    }
    let state = "/home/user/.local/state/provost";
    for path in ["/home/user/.local", state, "/home/user/.local/state/provost/run"] {
        assert!(matches!(refusal(path), PlanRefused::OurOwn { .. }), "{path}: {}", refusal(path));
    }
    for path in ["/home/user/project", "/tmp/project", "/srv/project", "/var/tmp/x"] {
        assert!(with_workspace(path).check(&forbidden_paths()).is_ok(), "{path}");
    }
}

#[test]
fn what_a_worker_reads_is_neither_our_own_nor_a_whole_home() {
    for path in ["/home/user", "/home", "/", "/home/user/.local/state", "/proc/1"] {
        let mut draft = with_workspace("/home/user/project");
        draft.read_only.push(place(path));
        draft.check(&forbidden_paths()).unwrap_err();
    }
}

#[test]
fn a_worker_starts_where_it_may_write_and_cannot_replace_its_program() {
    let mut draft = with_workspace("/home/user/project");
    draft.cwd = place("/home/user/other");
    assert!(matches!(draft.check(&forbidden_paths()), Err(PlanRefused::Directory(_))));
    let mut draft = with_workspace("/home/user/project");
    draft.writable.clear();
    assert!(matches!(draft.check(&forbidden_paths()), Err(PlanRefused::Directory(_))));
    let world = World::new();
    let tool = world.path("workspace/tool");
    fs::copy("/bin/true", &tool).unwrap();
    let draft = world.draft(tool.to_str().unwrap(), &[]);
    assert!(matches!(draft.check(&world.forbidden_paths()), Err(PlanRefused::ProgramInWorkspace(_))));
}

#[test]
fn a_limit_of_zero_is_a_mistake_and_not_no_limit() {
    let breaks: [fn(&mut Limits); 10] = [
        |l| l.processes = 0,
        |l| l.open_files = 0,
        |l| l.file_bytes = 0,
        |l| l.data_bytes = 0,
        |l| l.resident_bytes = 0,
        |l| l.cpu_seconds = 0,
        |l| l.tmp_bytes = 0,
        |l| l.growth_bytes = 0,
        |l| l.growth_entries = 0,
        |l| l.output_bytes = usize::MAX,
    ];
    for set in breaks {
        let mut draft = with_workspace("/home/user/project");
        set(&mut draft.limits);
        assert_eq!(draft.check(&forbidden_paths()), Err(PlanRefused::Limits));
    }
}

#[test]
fn a_plan_survives_the_journey_to_the_supervisor() {
    let plan = with_workspace("/home/user/project").check(&forbidden_paths()).unwrap();
    let there: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(there, plan);
}

#[test]
fn a_plan_describes_itself_without_values_of_variables() {
    let mut draft = with_workspace("/home/user/project");
    draft.environment.set("API_TOKEN", "TOPSECRET").unwrap();
    draft.toolchain(place("/home/user/.cargo"));
    let lines = draft.check(&forbidden_paths()).unwrap().describe();
    let about = |topic| {
        let lines = lines.iter().filter(|(t, _)| *t == topic).map(|(_, text)| text.as_str());
        lines.collect::<Vec<_>>()
    };
    assert_eq!(about(Topic::Write), ["/home/user/project"]);
    assert_eq!(about(Topic::Read), ["/home/user/.cargo"]);
    assert_eq!(about(Topic::Network), ["none"]);
    assert!(about(Topic::Protected).contains(&"/home/user/project/.git"));
    assert!(about(Topic::Masked).contains(&"/home/user/.cargo/credentials.toml"));
    assert!(about(Topic::Environment)[0].contains("API_TOKEN"));
    assert!(!lines.iter().any(|(_, text)| text.contains("TOPSECRET")));
}

#[test]
fn names_that_load_code_or_lead_out_are_refused_even_when_asked_for() {
    let loading = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "GIT_SSH_COMMAND",
        "GIT_SSH",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_EXTERNAL_DIFF",
        "NODE_OPTIONS",
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "PROMPT_COMMAND",
        "LESSOPEN",
        "RUSTC_WRAPPER",
        "BASH_FUNC_ls%%",
        "GLIBC_TUNABLES",
        "ld_preload",
        "Node_Options",
        "GIT_EDITOR",
        "PAGER",
    ];
    let out = ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DISPLAY"];
    let mut environment = Environment::new([]);
    let before = environment.clone();
    for name in loading {
        let error = environment.set(name, "x").unwrap_err();
        assert!(!matches!(error, EnvironmentRefused::Value(_)), "{name}: {error}");
    }
    for name in out {
        assert!(matches!(environment.set(name, "x"), Err(EnvironmentRefused::LeadsOut(_))), "{name}");
    }
    for name in ["HOME", "TMPDIR", "PWD"] {
        assert!(matches!(environment.set(name, "x"), Err(EnvironmentRefused::SetByTheJail(_))), "{name}");
    }
    for name in ["", "A=B", "A B", "1A", "A\0", "Ä", "A-B"] {
        assert!(matches!(environment.set(name, "x"), Err(EnvironmentRefused::Name(_))), "{name:?}");
    }
    for (name, value) in [("PATH", "bin:/usr/bin"), ("PATH", ""), ("PATH", "/usr/bin:"), ("A", "x\0")] {
        assert!(
            matches!(environment.set(name, value), Err(EnvironmentRefused::Value(_))),
            "{name}={value:?}"
        );
    }
    assert_eq!(environment, before);
}

#[test]
fn only_language_and_terminal_are_taken_over() {
    let host = [
        ("LANG", "de_DE.UTF-8"),
        ("TERM", "xterm"),
        ("AWS_SECRET", "x"),
        ("LD_PRELOAD", "x"),
        ("HOME", "/x"),
    ];
    let taken = Environment::new(host.map(|(name, value)| (name.to_string(), value.to_string())));
    let names: Vec<&str> = taken.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["LANG", "PATH", "TERM"]);
}

proptest! {
    #[test]
    fn no_spelling_of_a_loading_name_gets_through(tail in "[A-Za-z0-9_]{0,20}", prefix in 0..4_usize) {
        let name = format!("{}{tail}", ["LD_", "ld_", "DYLD_", "GIT_CONFIG"][prefix]);
        prop_assert!(Environment::new([]).set(&name, "x").is_err());
    }

    #[test]
    fn whatever_is_accepted_is_a_clean_pair(name in ".{0,12}", value in ".{0,12}") {
        let mut environment = Environment::new([]);
        if environment.set(&name, &value).is_ok() {
            prop_assert!(!name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
        }
    }
}
