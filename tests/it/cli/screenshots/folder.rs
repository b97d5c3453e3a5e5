//! The folder of pictures: its place, its links, and the pictures in it.

use super::{ON, allowed, ask, pictures, refused, taken, world};
use crate::support::screens::{size, stand_in, start};

#[test]
fn no_link_leads_pictures_elsewhere() {
    let elsewhere = tempfile::tempdir().unwrap();
    for (link, behind) in [(".devit", ""), (".devit/screenshots", ".devit")] {
        let world = world(ON, &allowed());
        let tools = stand_in(&world, "scrot", "cp \"$tools/good.png\" \"$last\"");
        std::fs::create_dir_all(world.repo().join(behind)).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), world.repo().join(link)).unwrap();
        let daemon = start(&world, ":77", Some(&tools));
        let said = refused(&world.client(&daemon, "orch:a"), "E_SCREENSHOT_DENIED");
        assert!(said.contains("symbolic link"), "{said}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}

#[test]
fn pictures_go_beneath_the_workspace_or_the_state_folder_only() {
    let bare = world(ON, &allowed());
    let tools = stand_in(&bare, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let daemon = start(&bare, ":77", Some(&tools));
    let state = bare.state_dir();
    let client = bare.client(&daemon, "orch:a");
    let inside = |dir: &str| format!("{ON}output_dir = \"{dir}\"\n");
    let asked = |dir: &str| {
        bare.configure(&inside(dir));
        assert!(bare.command(&["daemon", "reload"]).status().unwrap().success());
        ask(&client)
    };
    for outside in ["/tmp/elsewhere", "../elsewhere", "a/../../elsewhere", "/etc"] {
        let answer = asked(outside);
        assert_eq!(answer["code"], "E_SCREENSHOT_DENIED", "{outside}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("output_dir"), "{answer}");
        let status = bare.command(&["status", "--json"]).output().unwrap();
        assert!(String::from_utf8_lossy(&status.stdout).contains("screenshot.output_dir"));
    }
    let path = |dir: &str| asked(dir)["path"].as_str().unwrap().to_owned();
    assert!(path("pictures/of/me").starts_with("pictures/of/me/screenshot-"));
    let below = bare.repo().canonicalize().unwrap().join("seen");
    assert!(path(below.to_str().unwrap()).starts_with("seen/screenshot-"));
    let private = path(state.join("pictures").to_str().unwrap());
    assert!(private.starts_with(state.join("pictures/screenshot-").to_str().unwrap()), "{private}");
    assert!(std::path::Path::new(&private).is_file());
}

#[test]
fn no_picture_takes_anothers_place_and_old_ones_go() {
    let world = world(&format!("{ON}keep = 3\n"), &allowed());
    let tools = stand_in(&world, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    let folder = world.repo().join(".devit/screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    let strangers = ["screenshot-mine.png", "notes.txt", "screenshot-20251007T205456.png"];
    strangers.iter().for_each(|name| std::fs::write(folder.join(name), "mine").unwrap());
    std::fs::write(folder.join("screenshot-20251007T205456.713Z.png"), "old").unwrap();
    let names: Vec<_> = (0..5).map(|_| taken(&world, &client)).collect();
    let mut left = pictures(&world);
    left.retain(|name| !strangers.contains(&name.as_str()));
    let newest: Vec<_> =
        names[2..].iter().map(|it| it.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(left, newest);
    assert!(strangers.iter().all(|name| folder.join(name).exists()), "what is not ours is not removed");

    // Every name of the next moments is taken; on a busy machine the moment may have passed.
    world.configure(&format!("{ON}keep = 10000\n"));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    let occupied = || {
        let now = chrono::Utc::now();
        for ms in 0..2_000 {
            let at = now + chrono::Duration::milliseconds(ms);
            let name = format!("screenshot-{}.png", at.format("%Y%m%dT%H%M%S%.3fZ"));
            let _there_already = std::os::unix::fs::symlink("kept", folder.join(name));
        }
        taken(&world, &client)
    };
    let crowded = (0..20).map(|_| occupied()).find(|file| file.to_str().unwrap().ends_with("Z-2.png"));
    let file = crowded.unwrap();
    assert_eq!(size(&file), "PNG 4x4");
    let first = folder.join(file.file_name().unwrap().to_str().unwrap().replace("Z-2.", "Z."));
    assert_eq!(std::fs::read_link(first).unwrap().to_str(), Some("kept"));
    assert!(!folder.join("kept").exists(), "a link was written through");
}
