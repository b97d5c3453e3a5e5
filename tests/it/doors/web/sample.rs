//! The living sample of `scripts/demo --web`, as README.md leads through it, and the pictures that `scripts/pictures` takes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::browser::Browser;
use crate::support::sample::{demo, prepared};
use crate::support::source::project_root;
use crate::support::{World, eventually};

/// The least content of a picture that shows something: colours of a picture of the page, and texts and blocks of one of the terminal.
const COLOURS_MIN: u32 = 100;
const PARTS_MIN: usize = 10;

/// How many colours a picture has, as another program decodes it, and how wide it is.
fn looked_at(picture: &Path) -> (u32, u32) {
    let output = Command::new("/usr/bin/identify").args(["-format", "%k %w"]).arg(picture).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (colours, width) = text.split_once(' ').unwrap_or_else(|| panic!("{}: {text:?}", picture.display()));
    (colours.parse().unwrap(), width.parse().unwrap())
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn each_picture_that_documents_show_is_taken_and_none_is_blank() {
    let world = World::new();
    let (place, taken) = (prepared(&world), world.path("pictures"));
    fs::create_dir(&taken).unwrap();
    let done = demo(&place, &["pictures", taken.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{}\n{}{said}", done.status, String::from_utf8_lossy(&done.stdout));
    assert_eq!(
        names(&taken),
        names(&project_root().join("docs/pictures")),
        "take them again: scripts/pictures"
    );
    for name in names(&taken) {
        let picture = taken.join(&name);
        if name.ends_with(".svg") {
            let text = fs::read_to_string(&picture).unwrap();
            let parts = ["<text", "<rect"].map(|it| text.matches(it).count());
            assert!(parts.iter().sum::<usize>() >= PARTS_MIN && parts[0] > 5, "{name} is blank: {text}");
            assert!(!text.contains(place.to_str().unwrap()), "{name} shows a path of this machine");
            continue;
        }
        let (colours, width) = looked_at(&picture);
        assert!(colours >= COLOURS_MIN && width >= 700, "{name}: {colours} colours, {width} wide");
    }
    assert!(!place.exists(), "something was left behind");
}

/// The facts about a process: its parent, and whether its end was seen already.
struct Seen {
    parent: u32,
    is_over: bool,
}

fn processes() -> BTreeMap<u32, Seen> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|it| it.unwrap().file_name().to_str()?.parse().ok());
    let of = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before may have blanks and brackets in it.
        let mut rest = stat.rsplit_once(") ")?.1.split(' ');
        let is_over = rest.next()? == "Z";
        Some((pid, Seen { parent: rest.next()?.parse().ok()?, is_over }))
    };
    all.filter_map(of).collect()
}

/// The processes that a folder is named to, in their command or their environment, and all below them.
fn of_the_sample(place: &Path) -> BTreeSet<u32> {
    let name = place.to_str().unwrap().as_bytes();
    let all = processes();
    let is_named = |pid: &u32| {
        ["cmdline", "environ"].iter().any(|it| {
            let said = fs::read(format!("/proc/{pid}/{it}")).unwrap_or_default();
            said.windows(name.len()).any(|part| part == name)
        })
    };
    let mut found: BTreeSet<u32> = all.keys().copied().filter(is_named).collect();
    loop {
        let below = all.iter().filter(|(_, it)| found.contains(&it.parent)).map(|(pid, _)| *pid);
        let more: BTreeSet<u32> = below.filter(|it| !found.contains(it)).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The demo with its page; what it prints up to the last line about it.
fn living(place: &Path) -> (Child, String) {
    let mut demo = demo(place, &["web"]);
    // A group of its own, as a shell gives to a command, so that Ctrl-C reaches it as a whole.
    let mut child = demo.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.by_ref() {
        said.push_str(&line.unwrap());
        said.push('\n');
        if said.contains("Ctrl-C ends") {
            // It may say more, which is read as at a terminal.
            std::thread::spawn(move || lines.count());
            return (child, said);
        }
    }
    panic!("{}: {said}", child.wait().unwrap());
}

/// Returns the output of a command that a person types at another terminal, as `scripts/demo --at` hands it over.
fn at_another_terminal(place: &Path, line: &str) -> String {
    let mut person = Command::new("script");
    let line = format!("bash {0}/bin/demo --at-in {0} {line}", place.display());
    person.args(["-qec", &line, "/dev/null"]).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let output = crate::support::apart(&person);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_living_sample_ends_with_an_approval_by_passkey_and_ctrl_c_ends_all_of_it() {
    let world = World::new();
    let place = prepared(&world);
    let (mut child, said) = living(&place);
    let address = said.split_whitespace().find(|it| it.starts_with("http://")).unwrap().trim_end_matches('/');
    for agent in ["checkout", "client:planner", "codex-", "docs-1", "feat-login", "reviewer"] {
        assert!(said.contains(agent), "{agent} is not there: {said}");
    }
    // README.md's first minute: a code at another terminal, a passkey, and the release that waits.
    let readme = fs::read_to_string(project_root().join("README.md")).unwrap();
    let command = "provost passkey add --even-so";
    assert!(readme.contains(&format!("scripts/demo --at {command}")) && said.contains(command), "{said}");
    let printed = at_another_terminal(&place, &format!("{command} --json"));
    let printed = &printed[printed.find('{').unwrap()..=printed.rfind('}').unwrap()];
    let printed: serde_json::Value = serde_json::from_str(printed).unwrap();
    let browser = Browser::start();
    let tab = browser.open(&format!("{address}/passkeys"));
    let _phone = tab.authenticator("internal");
    tab.until("the form", "document.querySelector('#code')");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(printed["code"].as_str().unwrap());
    tab.eval("document.querySelector('#passkey-name').focus()");
    tab.write("phone");
    tab.click("button[data-does=enrol]");
    tab.shows("phone answers from now on");
    tab.go(&format!("{address}/a/1"));
    tab.click("button[data-does=approve]");
    tab.shows("granted (proof: passkey, phone)");
    let version = place.join("home/shop/release/VERSION");
    eventually("the release", || fs::read_to_string(&version).is_ok_and(|it| it == "2.4\n"));

    let started = of_the_sample(&place);
    assert!(started.len() > 8, "a daemon, agents, workers: {started:?}");
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait().unwrap();
    assert_eq!((ended.code(), ended.signal()), (Some(130), None));
    eventually("the end of all processes", || {
        let all = processes();
        started.iter().all(|pid| all.get(pid).is_none_or(|it| it.is_over)) && of_the_sample(&place).is_empty()
    });
    assert!(!place.exists(), "something was left behind");
}
