//! Agents on several machines whose work trees are at different commits and branches: what one of them writes is told to the others, what it
//! has locked holds for all, and a contract binds on its branch.

use serde_json::{Value, json};

use super::CODE;
use super::held::{CLAUDE, claude, held, other, told_by};
use crate::support::machines::{Machines, git};
use crate::support::waits::within;
use crate::support::{Daemon, World};

fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(std::time::Duration::from_secs(60), condition), "{what}: not within a minute");
}

/// Two machines: the second one is on a branch of its own, with a commit more.
fn on_two_branches(more: &str) -> (Machines, Vec<Daemon>) {
    let machines = Machines::joined(2);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    a.write("src/auth.ts", CODE);
    git(a, &["add", "."]);
    git(a, &["commit", "-q", "-m", "code"]);
    let from = a.repo().display().to_string();
    git(b, &["fetch", "-q", &from, "HEAD"]);
    git(b, &["checkout", "-q", "-b", "feature", "FETCH_HEAD"]);
    b.write("src/auth.ts", &format!("{CODE}export function who(): string {{ return '' }}\n"));
    git(b, &["commit", "-q", "-a", "-m", "who"]);
    for world in [a, b] {
        machines.configure_with(world, more);
        assert!(world.install_hooks("claude", &[]).status.success());
    }
    let daemons = machines.start();
    (machines, daemons)
}

/// The same call in a third session.
fn third(mut told: Value) -> Value {
    told["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c003");
    told
}

fn checks(world: &World) -> Option<i32> {
    world.command(&["contract", "check", "src/auth.ts"]).output().unwrap().status.code()
}

#[test]
fn what_is_written_on_one_machine_is_told_on_another_and_a_lock_holds_on_both() {
    let (machines, _daemons) = on_two_branches("");
    let (a, b) = (&machines.all[0], &machines.all[1]);
    a.goes_on("claude", &claude(a, "edit"));
    let of_a = format!("src/auth.ts:login {CLAUDE}");
    until("the other machine has it", || held(b) == [of_a.as_str()]);
    let said = told_by(b, "claude", "PreToolUse", &other(claude(b, "edit")));
    assert!(said.contains(&format!("{CLAUDE} has been writing src/auth.ts:login since")), "{said}");
    // In each work tree one of them has it.
    b.is_refused("claude", &third(claude(b, "edit")));
    a.is_refused("claude", &third(claude(a, "edit")));
    assert_eq!(held(b), ["src/auth.ts:login claude-2b64a1f3c001", "src/auth.ts:login claude-2b64a1f3c002"]);

    // A lock is by path, on all machines and branches.
    a.done("ada", &["lock", "acquire", "src/auth.ts:logout"]);
    until("the other machine has it", || held(b).iter().any(|it| it.contains("logout ada")));
    let why = b.is_refused("claude", &other(claude(b, "edit_beside")));
    assert!(why.contains("ada"), "{why}");

    // What is committed on one machine ends what was written there, and nothing of the other's.
    let text = std::fs::read_to_string(b.repo().join("src/auth.ts")).unwrap();
    b.write("src/auth.ts", &text.replace("return a }", "return a + a }"));
    git(b, &["commit", "-q", "-a", "-m", "more"]);
    until("it is given back", || !held(a).iter().any(|it| it.ends_with("c002")));
    assert!(held(a).contains(&of_a), "{:?}", held(a));
}

#[test]
fn with_auto_across_what_is_written_on_one_machine_is_held_on_all() {
    let (machines, _daemons) = on_two_branches("[coordination]\nauto_across = \"hold\"\n");
    let (a, b) = (&machines.all[0], &machines.all[1]);
    a.goes_on("claude", &claude(a, "edit"));
    until("the other machine has it", || !held(b).is_empty());
    let why = b.is_refused("claude", &other(claude(b, "edit")));
    assert!(why.contains(CLAUDE), "{why}");
    b.goes_on("claude", &other(claude(b, "edit_beside")));
    machines.check();
}

#[test]
fn a_contract_binds_on_its_branch_where_the_settings_say_so() {
    let (machines, _daemons) = on_two_branches("[coordination]\ncontracts = \"branch\"\n");
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let offered = a.done("ada", &["contract", "propose", "src/auth.ts:login"]);
    let id = offered["id"].as_str().unwrap_or_else(|| panic!("{offered}")).to_owned();
    until("the other machine has it", || b.done("bob", &["contract", "list"]).to_string().contains(&id));
    b.done("bob", &["contract", "accept", &id]);
    let listed = b.done("bob", &["contract", "list"]).to_string();
    let branch = branch_of(a);
    assert!(listed.contains(&format!("\"branch\":\"{branch}\"")), "{listed}");
    assert_eq!((checks(a), checks(b)), (Some(0), Some(0)));
    // On the other branch the signature is another one, and none has agreed there.
    let changed = CODE.replace("login(a: string)", "login(a: number)");
    b.write("src/auth.ts", &changed);
    assert_eq!(checks(b), Some(0));
    a.write("src/auth.ts", &changed);
    assert_eq!(checks(a), Some(1), "it binds on its own");
    git(b, &["checkout", "-q", "-B", &branch]);
    assert_eq!(checks(b), Some(1), "on this machine, too");
    machines.check();
}

/// The branch that is checked out.
fn branch_of(world: &World) -> String {
    let head = std::fs::read_to_string(world.repo().join(".git/HEAD")).unwrap();
    head.trim().strip_prefix("ref: refs/heads/").unwrap().to_owned()
}
