//! The output of commands: sentences instead of records, times of one clock, exit codes that mean something, and errors that
//! name their subject.

use super::*;

#[test]
fn a_worker_that_a_signal_or_the_time_has_ended_has_the_code_of_shells() {
    let desk = Desk::with_daemon();
    let said = desk.run(&["delegate", "kill -9 $$", "--wait"]).ends(137);
    assert!(said.err.contains("failed. The worker ended badly: terminated by signal 9."), "{}", said.err);
    let said = desk.run(&["delegate", "sleep 600", "--timeout", "1s", "--wait", "--json"]).ends(124);
    let id = said.json()["id"].as_str().unwrap().to_owned();
    for line in ["task list", "task show"] {
        let mut args: Vec<&str> = line.split(' ').collect();
        args.extend((line == "task show").then_some(id.as_str()));
        let shown = desk.run(&args).ends(DONE).out;
        assert!(
            shown.contains("failed") && !shown.contains("(-1)") && !shown.contains("exit code"),
            "{shown}"
        );
    }
    let shown = desk.run(&["task", "show", &id]).ends(DONE).out;
    assert!(shown.contains("It ran longer than the 1 s that it had."), "{shown}");
}

#[test]
fn what_a_worker_writes_without_an_end_of_line_is_not_run_into_our_words() {
    let desk = Desk::with_daemon();
    let seen = desk.type_in("delegate 'printf abc' --wait").ends(DONE).out;
    assert!(seen.lines().any(|it| it.ends_with("abc")) && !seen.contains("abctask"), "{seen}");
    let read = desk.run(&["delegate", "printf abc", "--wait"]).ends(DONE);
    assert_eq!(read.out, "abc", "a program reads what the worker has written");
}

fn numbers(log: &str) -> Vec<u64> {
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter_map(|it| it["seq"].as_u64()).collect()
}

#[test]
fn the_log_ends_after_as_many_events_as_asked_for() {
    let desk = Desk::with_daemon();
    for name in ["worker:a", "worker:b", "worker:c"] {
        desk.run(&["key", "add", name]).ends(DONE);
    }
    let asked = ["log", "--json", "--after", "1", "--limit", "2"];
    assert_eq!(numbers(&desk.run(&asked).ends(DONE).out), [2, 3]);
    assert!(numbers(&desk.run(&asked[..4]).ends(DONE).out).len() > 2, "without a number all are shown");
    desk.run(&["down"]).ends(DONE);
    assert_eq!(numbers(&desk.run(&asked).ends(DONE).out), [2, 3], "the same without a daemon");
}

#[test]
fn the_log_has_times_and_the_names_of_rights() {
    let desk = Desk::with_daemon();
    desk.run(&["token", "mint", "feat-auth", "--scopes", "read,join"]).ends(DONE);
    let mut log = desk.command(&["log"]);
    let log: Said = log.env("TZ", "<+0530>-5:30").output().unwrap().into();
    let log = log.ends(DONE).out;
    let minted = log.lines().find(|it| it.contains("token_minted")).unwrap_or_else(|| panic!("{log}"));
    assert!(minted.contains("scopes=read,join"), "{minted}");
    assert!(minted.contains("expires_at=20") && minted.matches("+05:30").count() == 2, "{minted}");
}

#[test]
fn tokens_keys_and_refusals_have_the_time_of_the_lists() {
    let desk = Desk::with_daemon();
    desk.run(&["token", "mint", "feat-auth"]).ends(DONE);
    desk.run(&["key", "add", "worker:gpu"]).ends(DONE);
    let lines = ["token list", "key list", "lock @db:test --as x1", "lock @db:test --as x2"];
    for (line, code) in lines.into_iter().zip([DONE, DONE, DONE, 5]) {
        let args: Vec<&str> = line.split(' ').collect();
        let said: Said = desk.command(&args).env("TZ", "<+0530>-5:30").output().unwrap().into();
        let said = said.ends(code);
        assert!((said.out + &said.err).contains("+05:30"), "{line}: {}", said.err);
    }
    let mut refused = desk.command(&["lock", "@db:test", "--as", "x2", "--json"]);
    let said: Said = refused.env("TZ", "<+0530>-5:30").output().unwrap().into();
    let said = said.ends(5);
    assert!(!said.err.contains("+05:30"), "a program reads the time as the daemon has it: {}", said.err);
}

#[test]
fn an_agent_whose_name_is_taken_is_told_which_tokens_end() {
    let desk = Desk::with_daemon();
    desk.run(&["token", "mint", "agent-b"]).ends(DONE);
    let said = desk.run(&["claim", "acquire", "inner/a.ts", "--as", "agent-b"]).ends(REFUSED);
    assert!(said.err.contains("provost token revoke --of agent-b"), "{}", said.err);
}

#[test]
fn a_check_of_a_file_that_is_not_there_says_so() {
    let desk = Desk::with_daemon();
    let said = desk.run(&["contract", "check", "nope.ts"]).ends(FAILED);
    assert!(said.err.contains("there is no file nope.ts") && said.err.contains("try:"), "{}", said.err);
}

#[test]
fn another_grant_of_ones_own_lock_is_named_and_releasing_all_is_no_leaving() {
    let desk = Desk::with_daemon();
    let locked = desk.run(&["lock", "inner/a.ts:f", "--as", "x1", "--json"]).ends(DONE).json();
    let grant = locked["lock"]["fence"].as_u64().unwrap();
    let other = (grant + 7).to_string();
    let said = desk.run(&["unlock", "inner/a.ts:f", "--as", "x1", "--fence", &other]).ends(REFUSED).err;
    assert!(said.contains(&format!("grant {grant}, and not {other}")), "{said}");
    assert!(said.contains(&format!("--fence {grant}")) && !said.contains("--force"), "{said}");
    desk.run(&["unlock", "--all", "--as", "x1"]).ends(DONE);
    let log = desk.run(&["log"]).ends(DONE).out;
    assert!(log.contains("its agent has released all") && !log.contains("its session has left"), "{log}");
}

#[test]
fn errors_have_a_subject_and_a_next_step() {
    let desk = Desk::with_daemon();
    let written =
        "// Code generated by stringer. DO NOT EDIT.\npackage a\n\nfunc Generated() int { return 1 }\n";
    fs::write(desk.path("repo/gen.go"), written).unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (
            &["contract", "propose", "gen.go:Generated"],
            REFUSED,
            "no contract can be made on gen.go:Generated",
        ),
        (&["contract", "propose", "gen.go"], USAGE, "provost contract propose gen.go:SYMBOL"),
        (&["lock", ".", "--as", "x1"], USAGE, "FILE:SYMBOL"),
        (&["lock", "", "--as", "x1"], USAGE, "FILE:SYMBOL"),
        (&["approve", "abc"], USAGE, "provost approval list"),
    ];
    for (args, code, word) in cases {
        let said = desk.run(args).ends(code).err;
        assert!(said.contains(word) && said.contains("error:"), "{args:?}: {said}");
    }
}

#[test]
fn help_is_asked_for_in_words_too_and_a_misspelt_verb_is_pointed_out() {
    let desk = Desk::new();
    for (asked, same) in
        [("help", "--help"), ("help lock", "lock --help"), ("help up", "daemon start --help")]
    {
        let [asked, same] = [asked, same].map(|it| it.split(' ').collect::<Vec<_>>());
        assert_eq!(desk.run(&asked).ends(DONE).out, desk.run(&same).ends(DONE).out, "{asked:?}");
    }
    let said = desk.run(&["task", "lst"]).ends(USAGE).err;
    assert!(said.contains("'list'") && !said.contains("is now"), "{said}");
    for noun in ["apply", "merge"] {
        let help = desk.run(&[noun, "--help"]).ends(DONE).out;
        assert!(
            help.contains(&format!("Usage: provost {noun} [OPTIONS] <COMMAND>\n       provost {noun} ")),
            "{help}"
        );
    }
}

#[test]
fn examples_in_help_keep_their_lines() {
    let desk = Desk::new();
    let definition = provost::cli::definition();
    let examples = definition.find_subcommand("broker").and_then(|it| it.find_subcommand("publish"));
    let examples = examples.and_then(|it| it.get_after_help()).unwrap().to_string();
    let help = desk.run(&["broker", "publish", "--help"]).ends(DONE).out;
    for line in examples.lines().filter(|it| it.starts_with("  ")) {
        assert!(help.lines().any(|it| it.trim_end() == line.trim_end()), "{line}\n{help}");
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_told_a_program_in_json() {
    let desk = Desk::new();
    for line in ["lock src/a.ts:f --ttl banana --json", "nope --json", "--json task show", "store --json"] {
        let said = desk.run(&line.split(' ').collect::<Vec<_>>()).ends(USAGE);
        let error: Value =
            serde_json::from_str(&said.err).unwrap_or_else(|e| panic!("{line}: {e}: {}", said.err));
        assert_eq!(error["exit_code"], 2, "{line}: {error}");
        assert!(
            error["error"].as_str().is_some_and(|it| !it.is_empty() && !it.contains("error:")),
            "{error}"
        );
        assert!(said.out.is_empty());
    }
}

#[test]
fn small_answers_say_what_is_so() {
    let desk = Desk::with_daemon();
    let said = desk.run(&["delegate", "true", "--model", "gpt", "--wait"]).ends(DONE).err;
    assert!(said.contains("shell has no choice of model"), "{said}");
    let mut add = desk.command(&["secret", "add", "hook-key", "--daemon"]);
    let mut add = add.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut add.stdin.take().unwrap(), b"abc\n").unwrap();
    assert!(add.wait().unwrap().success());
    let said = desk.run(&["secret", "remove", "hook-key"]).ends(DONE).err;
    assert!(said.contains("no notice that needs it") && !said.contains("workers"), "{said}");
    let said = desk.run(&["hook", "remove", "claude"]).ends(DONE).err;
    assert!(said.contains("nothing was removed"), "{said}");
    assert!(desk.run(&["hook", "install", "claude"]).ends(DONE).err.contains("info/exclude"));
    assert!(
        desk.run(&["hook", "remove", "claude"]).ends(DONE).err.contains("the hooks of claude are removed")
    );
    // Where there is no git, nothing is kept out of commits.
    let outside = desk.path("outside");
    fs::create_dir(&outside).unwrap();
    let mut install = desk.command(&["hook", "install", "claude"]);
    let said: Said = install.current_dir(outside).output().unwrap().into();
    assert!(!said.ends(DONE).err.contains("rev-parse"));
}

#[test]
fn nothing_is_said_to_a_socket_that_is_no_daemon_of_ours() {
    let desk = Desk::new();
    let folder = desk.run(&["env", "--json"]).json()["DEVIT_SOCK"].as_str().map(PathBuf::from).unwrap();
    let own = folder.with_file_name("own.sock");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "").unwrap();
    let said = desk.run(&["status"]).ends(REFUSED);
    assert!(said.err.contains("is not a socket") && said.err.contains("nothing was sent"), "{}", said.err);
    fs::remove_file(&own).unwrap();

    // Someone who listens and says nothing sensible is no daemon either.
    let listener = std::os::unix::net::UnixListener::bind(&own).unwrap();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _asked = stream.read(&mut [0; 4096]).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nx-provost-api: 2\r\ncontent-length: 2\r\n\r\n{}";
        std::io::Write::write_all(&mut stream, answer).unwrap();
    });
    let said = desk.run(&["status"]).ends(REFUSED);
    assert!(said.err.contains("version 2") && said.err.contains("provost up"), "{}", said.err);
    answering.join().unwrap();
}
