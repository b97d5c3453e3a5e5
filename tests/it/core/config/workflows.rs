//! Workflows in files: what they may say, and that a wrong one is refused alone.

use super::*;

use provost::config::{BUILT_IN_FILE, Pattern, StepPhase};

fn loaded(machine: &Machine, text: &str) -> provost::config::Loaded {
    let user = machine.write("config/provost/provost.toml", text);
    machine.load(&Sources { user: Some(user), root: machine.folder("repo"), ..Sources::default() }).unwrap()
}

const GOOD: &str =
    "[[workflow]]\nid = \"dev:good\"\n[[workflow.step]]\nname = \"one\"\nprompt = \"{input}\"\n";

/// A workflow of one step that says this, and what is said about it.
fn refused(head: &str, steps: &str) -> String {
    let machine = Machine::new();
    let loaded = loaded(&machine, &format!("{GOOD}\n[[workflow]]\nid = \"dev:bad\"\n{head}\n{steps}"));
    assert_eq!(loaded.config.workflows.len(), 1, "the other one stays: {steps}");
    assert_eq!(loaded.config.workflows[0].head.id, "dev:good");
    let note = notes(&loaded).into_iter().find(|it| it.contains("this workflow is refused"));
    let note = note.unwrap_or_else(|| panic!("{steps}: {:?}", notes(&loaded)));
    assert!(note.contains("provost.toml:"), "{note}");
    let kept = loaded.config.refused_workflows.get("dev:bad").map(|it| it.reason.clone());
    assert!(kept.is_none_or(|reason| reason.starts_with("line ")), "{note}");
    note
}

fn step(more: &str) -> String {
    format!("[[workflow.step]]\nname = \"one\"\n{more}\n")
}

#[test]
fn the_built_in_workflows_are_there_until_a_file_says_otherwise() {
    let machine = Machine::new();
    let ids = |config: &Config| -> Vec<(String, String)> {
        config.all_workflows().into_iter().map(|it| (it.head.id, it.file)).collect()
    };
    let built_in = |id: &str| (id.to_owned(), BUILT_IN_FILE.to_owned());
    let bare = loaded(&machine, "");
    assert!(notes(&bare).is_empty());
    assert_eq!(ids(&bare.config), [built_in("dev:fix_and_review"), built_in("dev:test_until_green")]);
    let own = loaded(&machine, &GOOD.replace("dev:good", "dev:fix_and_review"));
    let all = own.config.all_workflows();
    assert_eq!(all.len(), 2);
    assert_ne!(all[1].file, BUILT_IN_FILE, "one's own takes its place");
    let wrong = loaded(&machine, "[[workflow]]\nid = \"dev:fix_and_review\"\n");
    assert_eq!(ids(&wrong.config), [built_in("dev:test_until_green")], "what was not meant is not there");
}

#[test]
fn a_workflow_says_what_it_says() {
    let machine = Machine::new();
    let loaded = loaded(
        &machine,
        "[[workflow]]\nid = \"ops:a-1\"\nname = \"A\"\ndescription = \"d\"\npattern = \"maker_checker\"\nmax_rounds = 20\n\
         [[workflow.step]]\nname = \"make\"\nagent = \"x\"\nprompt = \"{check}{inputs.a}{other} {} {{json}}\"\n\
         [[workflow.step]]\nname = \"check\"\ncommand = [\"make\", \"test\"]\n",
    );
    assert!(notes(&loaded).is_empty(), "{:?}", notes(&loaded));
    let it = &loaded.config.workflows[0];
    assert_eq!((it.domain(), it.name(), it.line, it.head.max_rounds), ("ops", "A", 1, 20));
    assert_eq!((it.head.pattern, it.steps[1].phase), (Pattern::MakerChecker, StepPhase::Generate));
    assert_eq!((it.steps[0].agent.as_deref(), it.steps[1].command.len()), (Some("x"), 2));
}

#[test]
fn a_wrong_workflow_is_refused_alone_with_its_line_and_the_reason() {
    let says = |head: &str, steps: &str, words: &str| {
        let note = refused(head, steps);
        assert!(note.contains(words), "{note} has no {words:?}");
    };
    let prompt = "prompt = \"x\"";
    says("pattern = \"loop\"", &step(prompt), "sequential");
    says("", "", "has 1 to 20 steps, and this one has 0");
    says("pattern = \"parallel\"", &step(prompt), "has 2 to 20 steps");
    says("", &(0..21).map(|n| step(prompt).replace("one", &format!("s{n}"))).collect::<String>(), "has 21");
    says("max_rounds = 21", &step(prompt), "between 1 and 20");
    says("step = 3", "", "write `[[workflow.step]]`");
    says("", "[[workflow.step]]\nprompt = \"x\"\n", "give the step a name");
    says("", &step(prompt).replace("one", "One step"), "give the step a name");
    says("", &step(prompt).repeat(2), "two steps are called `one`");
    says("", &step(""), "`prompt` is missing");
    says("", &step("prompt = \"x\"\ncommand = [\"make\"]"), "not both");
    says("", &step("command = [\"make\"]\nuntil = [\"make\"]"), "not asked again");
    says("", &step("prompt = \"{previus}\""), "did you mean `{previous}`?");
    says("", &step("prompt = \"{steps.later}\""), "no earlier step is called `later`");
    says("", &step("prompt = \"{task}\""), "the supervisor's text");
    says("", &step("prompt = \"x\"\nmax_rounds = 0"), "between 1 and 20");
    says("", &step("prompt = \"x\"\nphase = \"deploy\""), "generate");
    says("", &step(&format!("prompt = \"{}\"", "x".repeat(70_000))), "longer than");
    let two = |first: &str, second: &str| format!("{}{}", step(first), step(second).replace("one", "two"));
    says("", &two("prompt = \"x\"\nphase = \"review\"", prompt), "comes before that of an earlier step");
    says("pattern = \"supervisor\"", &two("command = [\"make\"]", prompt), "a supervisor is an agent");
    says("pattern = \"maker_checker\"", &two(prompt, "command = [\"make\"]"), "has `{check}`");
    says("pattern = \"parallel\"", &two(prompt, "prompt = \"{previous}\""), "know nothing of each other");
    says("pattern = \"parallel\"", &two(prompt, "prompt = \"x\"\nphase = \"review\""), "the same `phase`");
    says("pattern = \"supervisor\"", &two(prompt, "prompt = \"x\"\nuntil = [\"make\"]"), "`until` is for");
    let machine = Machine::new();
    for (text, words) in [
        ("[[workflow]]\nname = \"x\"\n", "`id` is missing"),
        ("[[workflow]]\nid = \"good\"\n", "write it `domain:name`"),
        ("[[workflow]]\nid = \"a:b:c\"\n", "write it `domain:name`"),
        ("[[workflow]]\nid = \"../a:b\"\n", "write it `domain:name`"),
    ] {
        let loaded = loaded(&machine, &format!("{GOOD}{text}"));
        assert!(
            notes(&loaded).iter().any(|it| it.contains(words) && it.contains("provost.toml:")),
            "{words}"
        );
        assert_eq!(loaded.config.workflows.len(), 1);
    }
    let twice = loaded(&machine, &GOOD.repeat(2));
    assert!(notes(&twice)[0].contains("is there twice"), "{:?}", notes(&twice));
}

#[test]
fn files_of_workflows_lie_beside_the_users_own_settings() {
    let machine = Machine::new();
    machine.write("config/provost/workflows/b.toml", &GOOD.replace("good", "b"));
    machine.write("config/provost/workflows/a.toml", &GOOD.replace("good", "a"));
    machine.write("config/provost/workflows/c.toml", "[[workflow]]\nid = \n");
    machine.write("config/provost/workflows/d.toml", "[daemon]\nadvertised_version = \"x\"\n");
    machine.write("config/provost/workflows/.hidden.toml", GOOD);
    machine.write("config/provost/workflows/readme.md", "not one\n");
    let loaded = loaded(&machine, "");
    let ids: Vec<&str> = loaded.config.workflows.iter().map(|it| it.head.id.as_str()).collect();
    assert_eq!(ids, ["dev:a", "dev:b"]);
    let said = notes(&loaded);
    assert!(said.iter().any(|it| it.contains("c.toml:2: is not valid TOML")), "{said:?}");
    assert!(said.iter().any(|it| it.contains("d.toml:1") && it.contains("`[[workflow]]` alone")), "{said:?}");
    assert_ne!(loaded.config.daemon.advertised_version, "x", "a file of workflows sets nothing else");
    // Others could have written it.
    let open = machine.write("config/provost/workflows/a.toml", &GOOD.replace("good", "a"));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    let loaded = self::loaded(&machine, "");
    assert_eq!(loaded.config.workflows.len(), 1);
    assert!(notes(&loaded).iter().any(|it| it.contains("a.toml")), "{:?}", notes(&loaded));
}

#[test]
fn a_repositorys_workflows_count_only_as_they_were_allowed() {
    let machine = Machine::new();
    let path = ".provost/workflows/ops.toml";
    machine.write(&format!("repo/{path}"), GOOD);
    machine.write("repo/.provost/workflows/not one.toml", GOOD);
    let (root, state) = (machine.folder("repo"), machine.folder("state"));
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let now = || {
        let repository = pending(&root, &state).unwrap();
        machine.load(&Sources { root: root.clone(), repository, ..Sources::default() }).unwrap()
    };
    let files = pending(&root, &state).unwrap();
    assert_eq!(files.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), [path]);
    assert!(now().config.workflows.is_empty());
    assert!(notes(&now())[0].contains(&format!("provost config allow {path}")));
    pin::allow(&root, &state, path, files[0].digest).unwrap();
    assert_eq!((now().config.workflows.len(), now().config.workflows[0].file.as_str()), (1, path));
    machine.write(&format!("repo/{path}"), &GOOD.replace("{input}", "something else"));
    assert!(now().config.workflows.is_empty());
    assert!(notes(&now())[0].contains("HAS CHANGED"));
    fs::remove_file(root.join(path)).unwrap();
    assert_eq!(pending(&root, &state).unwrap()[0].status, Status::Missing);
    for name in
        [".provost/workflows/../provost.toml", ".provost/workflows/a/b.toml", ".provost/workflows/.toml"]
    {
        assert!(
            matches!(pin::allow(&root, &state, name, Digest::of(b"")), Err(PinError::NotOurs(_))),
            "{name}"
        );
    }
}
