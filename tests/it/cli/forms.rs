//! The forms of commands: nouns with verbs, the short forms of daily use, and the old forms that work for one
//! more version.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Output, Stdio};

use provost::cli::{FORMS, Form, Kind, OLD_FORMS_END, definition, read};
use serde_json::{Value, json};

use crate::support::{World, provost};

/// Typed lines, and the commands as which they are read. Blanks separate words.
const READ: &[(&str, &str)] = &[
    // Short forms.
    ("up", "daemon start"),
    ("up --foreground", "daemon start --foreground"),
    ("approve 7 --note yes", "approval approve 7 --note yes"),
    ("deny 7", "approval deny 7"),
    ("delegate true --wait", "task delegate true --wait"),
    ("say 3f0c2a --now stop", "task say 3f0c2a --now stop"),
    ("env --shell fish", "daemon env --shell fish"),
    ("unlock --all", "lock release --all"),
    ("guard list", "file check list"),
    ("log job_a", "journal show job_a"),
    // A noun that is a form, too.
    ("lock src/a.ts:f", "lock acquire src/a.ts:f"),
    ("lock --ttl 10m src/a.ts", "lock acquire --ttl 10m src/a.ts"),
    ("lock --reason list src/a.ts", "lock acquire --reason list src/a.ts"),
    ("lock --as list release", "lock acquire --as list release"),
    ("lock -- list", "lock acquire -- list"),
    ("lock ./list", "lock acquire ./list"),
    ("lock lists", "lock acquire lists"),
    ("lock List", "lock acquire List"),
    ("lock src/a.ts list", "lock acquire src/a.ts list"),
    ("lock acquirelist", "lock acquire acquirelist"),
    ("apply 3f0c2a --preview", "task apply 3f0c2a --preview"),
    ("apply --preview 3f0c2a", "task apply --preview 3f0c2a"),
    ("apply -- list", "task apply -- list"),
    ("mcp", "mcp serve"),
    ("mcp --as coder", "mcp serve --as coder"),
    ("mcp --json", "mcp serve --json"),
    ("web", "web open"),
    ("web --json", "web open --json"),
    // Flags before the command, and between its words.
    ("--json lock src/a.ts", "--json lock acquire src/a.ts"),
    ("--json --json locks", "--json --json lock list"),
    ("lock --json src/a.ts", "lock acquire --json src/a.ts"),
    ("lock --json --wait 1m list", "lock acquire --json --wait 1m list"),
    ("worker --json off w", "worker pause --json w"),
    ("--help locks", "--help lock list"),
    // Old forms.
    ("locks", "lock list"),
    ("locks --mine", "lock list --mine"),
    ("locks list", "lock list list"),
    ("tasks --filter failed", "task list --filter failed"),
    ("task 3f0c2a --wait", "task show 3f0c2a --wait"),
    ("task --wait list", "task show --wait list"),
    ("task -- list", "task show -- list"),
    ("cancel 3f0c2a", "task cancel 3f0c2a"),
    ("notify 3f0c2a --status ack", "task report 3f0c2a --status ack"),
    ("intend new --file a", "intent declare new --file a"),
    ("intent 3f0c2a active", "intent update 3f0c2a active"),
    ("claim src/a.ts", "claim acquire src/a.ts"),
    ("release acquire", "claim release acquire"),
    ("screenshot", "screenshot take"),
    ("screenshot --wait", "screenshot take --wait"),
    ("workflows", "workflow list"),
    ("workflows --json", "workflow list --json"),
    ("workflows show dev:x", "workflow show dev:x"),
    ("workflows list --domain dev", "workflow list --domain dev"),
    ("worker on w", "worker resume w"),
    ("hooks install claude", "hook install claude"),
    ("hooks", "hook"),
    ("hooks --json status", "hook --json status"),
    // What installed hooks call.
    ("hooks run claude pre-tool-use", "hook run claude pre-tool-use"),
    ("hooks --json run claude stop", "hook run --json claude stop"),
];

/// Lines that are read as they stand.
const AS_IT_STANDS: &[&str] = &[
    "",
    "--json",
    "--help",
    "--version",
    "lock",
    "lock --help",
    "lock -h",
    "lock --json",
    "lock list",
    "lock --json list",
    "--json lock --json list",
    "lock --help acquire",
    "lock acquire list",
    "lock acquire -- list",
    "lock release --all",
    "task",
    "task list",
    "task show list",
    "task apply 3f0c2a",
    "apply list",
    "apply undo 7",
    "apply",
    "claim release src/a.ts",
    "claim acquire release",
    "intent update 3f0c2a active",
    "screenshot --help",
    "screenshot take",
    "mcp -h",
    "mcp serve --as coder",
    "worker pause off",
    "worker report on",
    "hook run claude pre-tool-use",
    "hook wait",
    "git run pre-commit",
    "git install",
    "doctor",
    "ui",
    "ui --no-mouse",
    // A command that does not exist, and flags that no noun has, are for the definition to refuse.
    "lcok list",
    "--jsn locks",
    "--socket locks",
    "-- locks",
    "-q lock a",
    "Locks",
    "daemon up",
    "lock-list",
];

fn args(line: &str) -> Vec<OsString> {
    ["provost"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect()
}

/// A line as it is read, and the form that stood in it.
fn as_read(line: &str) -> (String, Option<&'static Form>) {
    let read = read(args(line), &definition());
    let words: Vec<&str> = read.args.iter().map(|it| it.to_str().unwrap()).collect();
    (words[1..].join(" "), read.form)
}

#[test]
fn each_form_is_read_as_the_command_that_it_stands_for() {
    for (typed, meant) in READ {
        let (read, form) = as_read(typed);
        assert_eq!(read, *meant, "{typed}");
        assert!(form.is_some(), "{typed}");
    }
}

#[test]
fn a_noun_with_a_verb_is_read_as_it_stands() {
    for line in AS_IT_STANDS {
        let (read, form) = as_read(line);
        assert_eq!((read.as_str(), form), (*line, None), "{line}");
    }
}

#[test]
fn the_table_of_readings_has_every_form() {
    let tried: BTreeSet<&str> =
        READ.iter().filter_map(|(line, _)| as_read(line).1).map(|form| form.typed).collect();
    let untried: Vec<&str> = FORMS.iter().map(|it| it.typed).filter(|it| !tried.contains(it)).collect();
    for typed in untried {
        // What has no line of its own is typed alone, or with a word behind it.
        let form = FORMS.iter().find(|it| it.typed == typed).unwrap();
        let (read, found) = as_read(&format!("{typed} something"));
        assert_eq!((read, found), (format!("{} something", form.meant), Some(form)));
    }
}

#[test]
fn every_form_stands_for_a_command_and_none_for_another_form() {
    let line = definition();
    line.clone().debug_assert();
    let mut seen = BTreeSet::new();
    for form in FORMS {
        assert!(seen.insert(form.typed), "{} stands twice", form.typed);
        let find = |words: &str| {
            words.split(' ').try_fold(&line, |command, word| command.find_subcommand(word)).is_some()
        };
        assert!(find(form.meant), "`{}` does not exist", form.meant);
        let is_whole_noun = !form.typed.contains(' ');
        assert!(is_whole_noun || !find(form.typed), "`{}` is a command", form.typed);
        assert_eq!(as_read(form.meant).1, None, "`{}` is a form itself", form.meant);
    }
    assert!(FORMS.iter().filter(|it| it.kind == Kind::Short).count() <= 27, "short forms stay few");
}

/// Words in an order that no table has: what is read has no form any more, and loses and invents nothing.
#[test]
fn what_was_read_is_read_the_same_again() {
    let line = definition();
    let mut words: Vec<String> = ["--json", "-h", "--help", "--", "-", "", "--wait", "x", "a:b", "--ttl=1m"]
        .map(String::from)
        .to_vec();
    words
        .extend(FORMS.iter().flat_map(|it| it.typed.split(' ').chain(it.meant.split(' '))).map(String::from));
    let mut state = 7_u64;
    let mut pick = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut forms = 0;
    for _ in 0..20_000 {
        let count = pick(6);
        let typed: Vec<OsString> = ["provost".into()]
            .into_iter()
            .chain((0..count).map(|_| words[pick(words.len())].clone().into()))
            .collect();
        let once = read(typed.clone(), &line);
        let again = read(once.args.clone(), &line);
        let Some(form) = once.form else {
            assert_eq!(once.args, typed);
            continue;
        };
        forms += 1;
        // `hooks` alone leaves its verb, and with it a noun, to what follows.
        assert!(form.typed == "hooks" || again.form.is_none(), "{typed:?}: {:?}", once.args);
        let rest = |all: &[OsString], less: &str| {
            let mut all = all.to_vec();
            for word in less.split(' ') {
                let at = all.iter().position(|it| it == word).unwrap();
                all.remove(at);
            }
            all
        };
        assert_eq!(rest(&typed, form.typed), rest(&once.args, form.meant), "{typed:?}");
    }
    assert!(forms > 1_000, "only {forms} lines had a form");
}

#[cfg(unix)]
#[test]
fn words_that_are_no_text_are_left_alone() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = OsString::from_vec(vec![b'l', 0xff]);
    let typed = vec!["provost".into(), odd.clone(), "locks".into()];
    assert_eq!(read(typed.clone(), &definition()).args, typed);
    let typed = vec!["provost".into(), "lock".into(), odd.clone()];
    let meant: Vec<OsString> = vec!["provost".into(), "lock".into(), "acquire".into(), odd];
    assert_eq!(read(typed, &definition()).args, meant);
}

#[test]
fn the_old_forms_are_gone_with_the_version_that_ends_them() {
    let numbers = |version: &str| -> Vec<u32> {
        version.split('.').map(|it| it.split('-').next().unwrap().parse().unwrap()).collect()
    };
    let is_over = numbers(env!("CARGO_PKG_VERSION")) >= numbers(OLD_FORMS_END);
    let old = FORMS.iter().filter(|it| it.kind == Kind::Old).count();
    assert!(!is_over || old == 0, "take {old} old forms out of src/cli/forms.rs");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ran(world: &World, line: &str) -> Output {
    world.command(&line.split_whitespace().collect::<Vec<_>>()).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn an_old_form_does_the_same_with_one_hint_on_standard_error() {
    let world = World::new();
    let _daemon = world.start();
    for (old, new, code) in [
        ("locks", "lock list", 0),
        ("locks --mine", "lock list --mine", 0),
        ("agents --json", "agent list --json", 0),
        ("workflows show dev:fix_and_review", "workflow show dev:fix_and_review", 0),
        ("task never", "task show never", 1),
        ("task --wait", "task show --wait", 2),
    ] {
        let (old, new, typed) = (ran(&world, old), ran(&world, new), old);
        assert_eq!((old.status.code(), new.status.code()), (Some(code), Some(code)), "{typed}");
        assert_eq!(text(&old.stdout), text(&new.stdout), "{typed}");
        let hints = text(&old.stderr).matches("; the old form ends with version").count();
        assert_eq!((hints, text(&new.stderr).matches("old form").count()), (1, 0), "{typed}");
        let hint = text(&old.stderr).lines().find(|it| it.contains("old form")).unwrap().to_owned();
        assert!(hint.starts_with("provost: `") && hint.contains("` is now `"), "{hint}");
        assert_eq!(text(&old.stderr).replacen(&format!("{hint}\n"), "", 1), text(&new.stderr), "{typed}");
    }
    let hint = text(&ran(&world, "locks").stderr);
    assert!(
        hint.starts_with("provost: `locks` is now `lock list`; the old form ends with version 0.2\n"),
        "{hint}"
    );
}

#[test]
fn a_program_reads_one_value_on_standard_error_with_the_hint_in_it() {
    let world = World::new();
    let _daemon = world.start();
    let said = ran(&world, "task never --json");
    assert_eq!((said.status.code(), text(&said.stdout)), (Some(1), String::new()));
    let error: Value = serde_json::from_slice(&said.stderr).unwrap();
    assert!(error["hint"].as_str().unwrap().contains("`task` is now `task show`"), "{error}");
    let said = ran(&world, "task show never --json");
    assert_eq!(serde_json::from_slice::<Value>(&said.stderr).unwrap()["hint"], Value::Null);
}

#[test]
fn short_forms_and_what_installed_hooks_call_give_no_hint() {
    let world = World::new();
    let _daemon = world.start();
    for line in [
        "status",
        "env",
        "log --limit 1",
        "lock a.ts:f",
        "guard a.ts",
        "unlock a.ts:f",
        "git run post-commit",
    ] {
        let said = ran(&world, line);
        assert!(said.status.success(), "{line}: {}", text(&said.stderr));
        assert!(!text(&said.stderr).contains("is now"), "{line}: {}", text(&said.stderr));
    }
    for line in ["hooks run claude session-start", "hook run claude session-start"] {
        let mut hook = world
            .command(&line.split(' ').collect::<Vec<_>>())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let told = json!({ "session_id": "s1", "cwd": world.repo(), "hook_event_name": "SessionStart", "source": "startup" });
        hook.stdin.take().unwrap().write_all(told.to_string().as_bytes()).unwrap();
        let said = hook.wait_with_output().unwrap();
        assert_eq!(said.status.code(), Some(0), "{line}");
        assert!(!text(&said.stderr).contains("is now"), "{line}: {}", text(&said.stderr));
    }
}

#[test]
fn hooks_of_an_earlier_version_are_known_as_ours() {
    let world = World::new();
    let _daemon = world.start();
    assert!(ran(&world, "hook install claude").status.success());
    let file = world.repo().join(".claude/settings.local.json");
    let installed = std::fs::read_to_string(&file).unwrap();
    let earlier = installed.replace(" hook run claude ", " hooks run claude ");
    assert_ne!(installed, earlier, "{installed}");
    std::fs::write(&file, &earlier).unwrap();
    let status = ran(&world, "hook status claude");
    assert!(text(&status.stdout).contains("installed"), "{}", text(&status.stdout));
    assert!(ran(&world, "hook install claude").status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), installed);
    std::fs::write(&file, &earlier).unwrap();
    assert!(ran(&world, "hook remove claude").status.success());
    let left = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(!left.contains("provost"), "{left}");
}

fn said(args: &[&str]) -> Output {
    std::process::Command::new(provost()).args(args).output().unwrap()
}

#[test]
fn help_has_every_noun_once_with_its_verbs_and_names_the_short_forms() {
    let help = text(&said(&["--help"]).stdout);
    let (groups, rest) = help.split_once("\nOptions:\n").unwrap();
    for noun in definition().get_subcommands() {
        let lines: Vec<&str> = groups.lines().collect();
        let at: Vec<usize> = (0..lines.len())
            .filter(|at| {
                lines[*at].strip_prefix("  ").is_some_and(|it| it.split(' ').next() == Some(noun.get_name()))
            })
            .collect();
        assert_eq!(at.len(), 1, "{} in {groups}", noun.get_name());
        for verb in noun.get_subcommands().filter(|it| !it.is_hide_set()) {
            let verbs: Vec<&str> = lines[at[0] + 1].trim().split(", ").collect();
            assert!(verbs.contains(&verb.get_name()), "{} {}: {verbs:?}", noun.get_name(), verb.get_name());
        }
    }
    for form in FORMS {
        let stands = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let meant: Vec<&str> = form.meant.split(' ').collect();
            words.windows(1 + meant.len()).any(|it| it[0] == form.typed && it[1..] == meant[..])
        };
        let list = rest.split_once("Short forms:").unwrap().1.split_once("\n\n").unwrap().0;
        assert_eq!(stands(list), form.kind == Kind::Short, "{}: {list}", form.typed);
        if form.kind == Kind::Short {
            let help = text(&said(&[form.meant.split(' ').collect(), vec!["--help"]].concat()).stdout);
            assert!(help.contains(&format!("Short form: provost {}\n", form.typed)), "{help}");
            // A short form that is no noun has the help of its command.
            if !form.meant.starts_with(&format!("{} ", form.typed)) && form.typed != "apply" {
                assert_eq!(text(&said(&[form.typed, "--help"]).stdout), help);
            }
        }
    }
    let help = text(&said(&["lock", "--help"]).stdout);
    assert!(help.contains("provost lock [OPTIONS] <COMMAND>"), "{help}");
    assert!(help.contains("Without a verb: short for provost lock acquire\n"), "{help}");
}

#[test]
fn completions_and_the_manual_have_the_commands_and_no_old_form() {
    let bash = text(&said(&["completions", "bash"]).stdout);
    let manual = text(&said(&["man"]).stdout);
    for form in FORMS {
        let heading = format!(".SH \"PROVOST {}\"", form.meant.to_uppercase());
        assert!(manual.contains(&heading), "{heading}");
        let is_command = definition().find_subcommand(form.typed).is_some();
        let is_completed = bash.contains(&format!("provost,{})", form.typed));
        assert_eq!(is_completed, is_command || form.kind == Kind::Short, "{}", form.typed);
        let old = format!(".SH \"PROVOST {}\"", form.typed.to_uppercase());
        assert!(is_command || !manual.contains(&old), "{old}");
    }
}

#[test]
fn a_mistake_in_a_short_form_shows_what_it_is_short_for() {
    let wrong = said(&["approve"]);
    let error = text(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error.contains("Usage: provost approval approve"), "{error}");
    assert!(error.contains("`provost approve` is short for `provost approval approve`"), "{error}");
    let error = text(&said(&["lock", "aquire", "src/a.ts"]).stderr);
    assert!(error.contains("`provost lock` is short for `provost lock acquire`"), "{error}");
    let error = text(&said(&["lock", "acquire"]).stderr);
    assert!(error.contains("Usage: provost lock acquire") && !error.contains("is short for"), "{error}");
}
