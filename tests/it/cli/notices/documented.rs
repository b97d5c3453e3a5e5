//! The page about notices: its commands run, its entries are valid, and its check of a webhook is right.

use std::process::Stdio;

use super::{KEY, OTHER_KEY, asks, keep, listed, said, webhook, world};
use crate::support::receiver::Receiver;
use crate::support::source::project_root;
use crate::support::{World, provost};

/// The blocks of code of one language, in order.
fn blocks(language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project_root().join("docs/notices.md")).unwrap();
    let parts = text.split("```").skip(1).step_by(2);
    parts.filter_map(|it| it.strip_prefix(language)).map(str::to_owned).collect()
}

#[test]
fn the_commands_and_entries_of_the_page_work_as_they_stand() {
    let world = World::new();
    let [store, reload] = &blocks("sh")[..] else { panic!("the page has other commands") };
    let run = |script: &str| {
        // The product under its own name, and the tools of the system.
        let bin = world.path("bin");
        let _there = std::fs::create_dir(&bin);
        let _linked = std::os::unix::fs::symlink(provost(), bin.join("provost"));
        let mut command = world.command(&[]);
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-e", "-c", script]).current_dir(world.repo()).env_clear().stdin(Stdio::null());
        let environment: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        shell.envs(environment).env("PATH", path);
        command = shell;
        said(command)
    };
    let (code, text) = run(store);
    assert_eq!(code, 0, "{text}");
    world.configure("");
    let _daemon = world.start();
    let entries = blocks("toml").remove(0);
    world.configure(&entries);
    let (code, text) = run(reload);
    assert_eq!(code, 0, "{text}");
    let listed = listed(&world);
    assert_eq!(listed.len(), 4);
    for it in &listed {
        assert!(it["broken"].is_null() && it["enabled"] == true, "{it}");
    }
    assert!(text.contains("ops") && text.contains("nothing sent yet"), "{text}");
}

#[test]
fn the_check_on_the_page_takes_what_we_send_and_nothing_else() {
    let receiver = Receiver::plain();
    let world = world(&webhook("team", &receiver.url(), ""));
    keep(&world, "other", OTHER_KEY);
    let daemon = world.start();
    asks(&world, &daemon, "echo");
    let heard = receiver.hears(1).remove(0);
    let check = blocks("python").remove(0);
    let verdict = |key: &str, body: &str, now: u64| {
        let headers = serde_json::to_string(&heard.headers).unwrap();
        let program = format!(
            "{check}\nimport json\nprint(is_ours(json.loads(sys.argv[1]), sys.argv[2].encode(), sys.argv[3], int(sys.argv[4])))"
        );
        let mut python = std::process::Command::new("/usr/bin/python3");
        python.args(["-c", &program, &headers, body, key, &now.to_string()]);
        said(python).1.trim().to_owned()
    };
    assert_eq!(verdict(KEY, &heard.body, heard.at), "True");
    assert_eq!(verdict(OTHER_KEY, &heard.body, heard.at), "False");
    assert_eq!(verdict(KEY, &heard.body.replace("asked", "granted"), heard.at), "False");
    assert_eq!(verdict(KEY, &heard.body, heard.at + 301), "False", "receivers take five minutes");
}
