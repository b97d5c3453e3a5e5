//! The programs that take pictures: those that do not behave, hang, or do not exist.

use super::{ON, allowed, ask, is_alive, pictures, refused, taken, world};
use crate::support::eventually;
use crate::support::screens::{stand_in, start};

#[test]
fn programs_that_do_not_behave_leave_nothing_but_an_error() {
    let world = world(&format!("{ON}rate_limit = 0\nbackend = \"scrot\"\n"), &allowed());
    let tools = stand_in(&world, "scrot", "exit 1");
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    let outside = world.home().join("outside");
    let write_outside = format!("echo here > {}; cp \"$tools/good.png\" \"$last\"", outside.display());
    let others: [(&str, String, &str); 8] = [
        (
            "exits",
            "printf 'no \\033[31mdisplay' >&2; exit 3".into(),
            "scrot failed with exit code 3: no display",
        ),
        ("writes nothing", "exit 0".into(), "scrot ended well and wrote no picture"),
        ("writes an empty file", ": > \"$last\"".into(), "scrot ended well and wrote an empty picture"),
        (
            "links",
            "ln -s \"$tools/good.png\" \"$last\"".into(),
            "scrot left a symbolic link instead of a picture",
        ),
        ("makes a folder", "mkdir \"$last\"".into(), "scrot left something that is no picture"),
        ("makes a pipe", "mkfifo \"$last\"".into(), "scrot left something that is no picture"),
        ("writes text", "echo not a picture > \"$last\"".into(), "scrot wrote something else than png"),
        (
            "writes too much",
            "exec head -c 70000000 /dev/zero > \"$last\"".into(),
            "scrot wrote more than a picture may have",
        ),
    ];
    for (what, script, said) in &others {
        stand_in(&world, "scrot", script);
        assert_eq!(refused(&client, "E_SCREENSHOT_FAILED"), *said, "{what}");
    }
    assert!(pictures(&world).is_empty());

    // The control: without the pen it does write there.
    stand_in(&world, "scrot", &write_outside);
    let control = std::process::Command::new(tools.join("scrot")).arg(world.path("control.png")).status();
    assert!(control.unwrap().success() && outside.exists());
    std::fs::remove_file(&outside).unwrap();
    taken(&world, &client);
    assert!(!outside.exists(), "it wrote outside");

    // It sees the screen, and of the rest of the user's environment nothing.
    let looks = "[ \"$DISPLAY\" = :77 ] || exit 8; [ -z \"$HOME$SECRET_OF_THE_USER$USER\" ] || exit 9; cp \"$tools/good.png\" \"$last\"";
    stand_in(&world, "scrot", looks);
    taken(&world, &client);

    std::fs::remove_file(tools.join("scrot")).unwrap();
    assert_eq!(pictures(&world).len(), 2);
}

#[test]
fn no_program_from_the_workspace_takes_pictures() {
    let world = world(&format!("{ON}backend = \"scrot\"\n"), &allowed());
    let tools = stand_in(&world, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let folder = world.repo().join("bin");
    std::fs::create_dir(&folder).unwrap();
    for name in ["scrot", "good.png"] {
        std::fs::copy(tools.join(name), folder.join(name)).unwrap();
    }
    let mut command = world.command(&["up", "--foreground"]);
    command.env("DISPLAY", ":77").env("PATH", &folder);
    let daemon = world.start_as(command);
    let said = refused(&world.client(&daemon, "orch:a"), "E_SCREENSHOT_FAILED");
    assert_eq!(said, "the screenshot backend scrot is not available; install it");
    assert!(pictures(&world).is_empty());
    drop(daemon);
    // The control: the same from elsewhere.
    let mut command = world.command(&["up", "--foreground"]);
    command.env("DISPLAY", ":77").env("PATH", format!("{}:{}", folder.display(), tools.display()));
    let daemon = world.start_as(command);
    taken(&world, &world.client(&daemon, "orch:a"));
}

#[test]
fn without_a_program_or_a_screen_the_answer_says_so() {
    let world = world(ON, &allowed());
    let mut command = world.command(&["up", "--foreground"]);
    let tools = world.path("tools");
    std::fs::create_dir(&tools).unwrap();
    command.env("DISPLAY", ":77").env("PATH", &tools);
    let daemon = world.start_as(command);
    let said = refused(&world.client(&daemon, "orch:a"), "E_SCREENSHOT_FAILED");
    assert_eq!(said, "no screenshot backend is available; install scrot or import");
    drop(daemon);
    let daemon = world.start();
    let said = refused(&world.client(&daemon, "orch:a"), "E_SCREENSHOT_FAILED");
    assert!(said.contains("DISPLAY") && said.contains("desktop session"), "{said}");
}

#[test]
fn a_program_that_hangs_is_ended_with_all_that_it_started() {
    let world = world(ON, &allowed());
    let tools = stand_in(&world, "scrot", "sleep 1000 & echo $! > \"$last.child\"; sleep 1000");
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    let answer = ask(&client);
    assert_eq!(answer["status"], "pending", "a client's second is over: {answer}");
    let task = answer["task_id"].as_str().unwrap();
    let child = || {
        let staged = std::fs::read_dir(world.state_dir().join("screen")).unwrap().flatten().next()?;
        let pid = std::fs::read_to_string(staged.path().join("screen.png.child")).ok()?;
        Some(pid.trim().to_owned())
    };
    let pid = child().unwrap();
    assert!(is_alive(&pid));
    let word = client.result_of(task);
    assert_eq!(word["artifacts"]["metadata"]["failure"]["reason"], "timeout", "{word}");
    eventually("the end of all its processes", || !is_alive(&pid));

    // Taken back, it ends at once.
    let answer = ask(&client);
    let task = answer["task_id"].as_str().unwrap();
    let pid = child().unwrap();
    assert!(world.command(&["task", "cancel", task]).status().unwrap().success());
    eventually("the end of all its processes", || !is_alive(&pid));
    assert_eq!(client.result_of(task)["status"], "cancelled");
    eventually("nothing is left over", || {
        std::fs::read_dir(world.state_dir().join("screen")).unwrap().next().is_none()
    });
    assert!(pictures(&world).is_empty());
}
