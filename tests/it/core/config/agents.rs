//! `[[agent]]` and `[role.<id>]`: what they mean, and what becomes of mistakes.

use provost::config::{Checks, Copies, Mode, Output, PromptBy, Reader};

use super::*;

const CODER: &str = "[[agent]]\nid = \"coder-ai\"\ncommand = [\"claude\", \"-p\"]\n";

fn refused(text: &str) -> String {
    let loaded = user(text).unwrap();
    let id = AgentId::parse("coder-ai").unwrap();
    assert!(!loaded.config.workers.contains_key(&id), "{text}");
    assert!(loaded.config.agents.iter().all(|agent| agent.id != id), "{text}");
    let note = loaded.notes.iter().find(|note| note.severity == Severity::Error).expect(text);
    assert!(note.line.is_some(), "{note}");
    loaded.config.refused_workers.get("coder-ai").unwrap_or_else(|| panic!("{text}: {note}")).reason.clone()
}

#[test]
fn an_agent_is_a_worker_of_its_name_with_a_copy_of_its_own() {
    let loaded = user(
        "[[agent]]\nid = \"coder-ai\"\nname = \"Claude\"\ncapability = \"BUILD\"\ncommand = [\"claude\", \"-p\"]\n\
         prompt = \"stdin\"\noutput = \"json\"\nstream = \"claude-json\"\nsandbox = \"default\"\nnetwork = false\n\
         timeout_s = 900\nmax_parallel = 2\nenv = [\"ANTHROPIC_API_KEY\"]\nmethods = [\"code.*\", \"agents.invoke\"]\n\
         memory = \"1GiB\"\n\
         [[agent]]\nid = \"b\"\ncommand = [\"codex\", \"exec\", \"{prompt}\"]\nenv = { A = \"b\" }\ntimeout = \"1h\"\n\
         [role.reviewer-ai]\nagent = \"coder-ai\"\npreamble = \"Act as a careful code reviewer.\"\n",
    )
    .unwrap();
    assert_eq!(loaded.notes, []);
    let config = &loaded.config;
    let ids: Vec<&str> = config.agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["coder-ai", "b"], "in the order of the file");
    let (a, b) = (&config.agents[0], &config.agents[1]);
    assert_eq!((a.output, a.stream, a.prompt_by()), (Output::Json, Reader::Claude, PromptBy::Stdin));
    assert_eq!((a.max_parallel, a.timeout), (2, Ttl::minutes(15)));
    assert_eq!((a.methods.join(" "), b.methods.join(" ")), ("code.* agents.invoke".into(), "*".into()));
    assert_eq!((b.output, b.prompt_by(), b.timeout), (Output::Edit, PromptBy::Argument, Ttl::minutes(60)));
    let worker = &config.workers[&a.id];
    assert_eq!((worker.kind, worker.copy, worker.tier), (WorkerKind::Cli, Some(Copies::Kept), Tier::Ns));
    assert_eq!(
        (worker.secrets.as_slice(), worker.memory.0),
        (["ANTHROPIC_API_KEY".to_owned()].as_slice(), 1 << 30)
    );
    assert_eq!((worker.timeout_secs, worker.network), (900, Network::None));
    assert_eq!(config.workers[&b.id].env["A"], "b");
    let role = &config.roles[&AgentId::parse("reviewer-ai").unwrap()];
    assert_eq!(role.agent.as_ref(), Some(&a.id));
}

#[test]
fn a_wrong_agent_is_refused_alone_and_says_why() {
    for (text, why) in [
        ("[[agent]]\nid = \"coder-ai\"\n", "`command` is missing"),
        ("[[agent]]\nid = \"coder-ai\"\ncommand = []\n", "`command` is empty"),
        ("[[agent]]\nid = \"coder-ai\"\ncommand = \"claude -p\"\n", "expected a list"),
        ("[[agent]]\nid = \"coder-ai\"\ncommand = [\"../claude\"]\n", "`..`"),
        (
            "[[agent]]\nid = \"coder-ai\"\ncommand = [\"c\", \"{prompt}\"]\nprompt = \"stdin\"\n",
            "remove one of them",
        ),
    ] {
        let reason = refused(text);
        assert!(reason.contains(why), "{text}: {reason}");
    }
    for (line, why) in [
        ("output = \"prose\"", "expected one of \"edit\""),
        ("stream = \"xml\"", "expected one of \"lines\""),
        ("network = true", "the whole network is never open"),
        ("network = \"hosts\"", "needs `hosts`"),
        ("hosts = [\"api.example.com:443\"]", "needs `network = \"hosts\"`"),
        ("sandbox = \"none\"", "or \"default\""),
        ("timeout_s = 0", "between 1 and 604800"),
        ("max_parallel = 0", "must lie between 1 and 64"),
        ("methods = [\"code.revue\"]", "did you mean `code.review`"),
        ("secret = [\"KEY\"]", "did you mean `secrets`"),
        ("max_paralel = 1", "did you mean `max_parallel`"),
        ("env = { DEVIT_SECRET = \"x\" }", "DEVIT_SECRET"),
        ("fix = [\"cargo fmt\"]", "each a list: [[\"cargo\", \"fmt\"]]"),
        ("fix = [[]]", "a command needs a program"),
        ("check = [[\"scripts/test\"]]", "[\"sh\", \"scripts/test\"]"),
        ("check = [[\"/usr/../bin/true\"]]", "`..`"),
        ("check = [[\"true\", \"\\u0000\"]]", "zero byte"),
        (&*format!("fix = [{}]", "[\"true\"],".repeat(17)), "at most 16"),
        ("checks = \"sometimes\"", "expected one of \"reported\""),
        ("mode = \"double\"", "expected one of \"single\""),
        ("tier = \"ll\"\nnetwork = \"ports\"\nports = [80]", "has no network of its own"),
    ] {
        let reason = refused(&format!("{CODER}{line}\n[workers.other]\ntype = \"polling\"\n"));
        assert!(reason.contains(why), "{line}: {reason}");
    }
    let loaded = user(&format!("{CODER}colour = \"blue\"\n")).unwrap();
    assert!(loaded.notes[0].to_string().contains("`agent.coder-ai.colour` is not a setting of an agent"));
    assert_eq!(loaded.config.agents.len(), 1, "a key that means nothing is only told");
}

#[test]
fn what_surrounds_an_agents_work_is_read_as_it_is_written() {
    let text = format!(
        "{CODER}fix = [[\"cargo\", \"fmt\"], [\"/bin/true\", \"\"]]\nchecks = \"required\"\nreviewer = \"b\"\n\
         [[agent]]\nid = \"b\"\ncommand = [\"x\"]\nmode = \"pipeline\"\n\
         [a6s.pipeline]\nreview = \"b\"\nresearch = \"a\"\n[a6s.pipeline.prompts]\ninspect = \"{{previous}}\"\n"
    );
    let loaded = user(&text).unwrap();
    let (a, b) = (&loaded.config.agents[0], &loaded.config.agents[1]);
    assert_eq!(a.fix.0, [vec!["cargo", "fmt"], vec!["/bin/true", ""]]);
    assert_eq!((a.check.0.len(), a.checks, b.checks), (0, Checks::Required, Checks::Reported));
    assert_eq!((a.mode, b.mode, loaded.config.a6s.mode), (None, Some(Mode::Pipeline), Mode::Single));
    assert_eq!(loaded.config.phase_prompts.inspect.as_ref().unwrap().0, "{previous}");
    assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
    let said = loaded.notes[0].to_string();
    assert!(said.contains("called `a`; did you mean `b`?; this phase fails"), "{said}");

    let chain = format!(
        "{CODER}reviewer = \"b\"\n[[agent]]\nid = \"b\"\ncommand = [\"x\"]\nreviewer = \"c\"\n\
         [[agent]]\nid = \"d\"\ncommand = [\"x\"]\nreviewer = \"d\"\n"
    );
    let loaded = user(&chain).unwrap();
    let said = loaded.notes[0].to_string();
    assert!(said.contains("`agent.b` `reviewer`: no agent that can be used is called `c`"), "{said}");
    let left: Vec<String> = loaded.config.agents.iter().map(|it| it.id.to_string()).collect();
    assert_eq!(left, ["d"], "whoever is to be reviewed by one that is refused is refused");
}

#[test]
fn a_name_stands_for_one_thing() {
    let twice = user(&format!("{CODER}{CODER}")).unwrap();
    assert!(twice.notes[0].message.contains("there twice"), "{:?}", twice.notes);
    let both = user(&format!("{CODER}[workers.coder-ai]\ntype = \"polling\"\n")).unwrap();
    assert!(both.notes[0].message.contains("is the name of an `[[agent]]`"), "{:?}", both.notes);
    assert_eq!(both.config.agents.len(), 1);
    assert!(user(&CODER.replace("coder-ai", "shell")).unwrap().notes[0].message.contains("built-in worker"));
    assert!(user("[[agent]]\ncommand = [\"x\"]\n").unwrap().notes[0].message.contains("`id` is missing"));
    assert!(user("[agent]\nid = \"a\"\n").unwrap_err().note.message.contains("[[agent]]"));
}

#[test]
fn a_later_file_replaces_an_agent_and_a_wrong_one_takes_it_away() {
    let machine = Machine::new();
    let system =
        Some(machine.write(
            "system.toml",
            &format!("{CODER}name = \"old\"\n[[agent]]\nid = \"b\"\ncommand = [\"x\"]\n"),
        ));
    let read = |text: &str| {
        let user = Some(machine.write("user.toml", text));
        machine.load(&Sources { system: system.clone(), user, ..Sources::default() }).unwrap()
    };
    let loaded = read(&format!("{CODER}name = \"new\"\n"));
    let names: Vec<_> = loaded.config.agents.iter().map(|agent| agent.name.clone()).collect();
    assert_eq!(names, [Some("new".to_owned()), None], "in its old place");
    let loaded = read(&format!("{CODER}tier = \"none\"\n"));
    assert_eq!(loaded.config.agents.len(), 1);
    assert!(loaded.config.refused_workers.contains_key("coder-ai"));
    let loaded = read("[workers.coder-ai]\ntype = \"polling\"\n");
    assert_eq!(loaded.config.agents.len(), 1, "a worker takes the name over");
}

#[test]
fn a_role_needs_its_agent_and_a_template_its_placeholders() {
    let loaded =
        user(&format!("{CODER}[role.x]\nagent = \"coder-i\"\n[role.y]\n[role.z]\npreambel = \"z\"\n"))
            .unwrap();
    let said: Vec<_> = loaded.notes.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|it| it.contains("`role.x`") && it.contains("did you mean `coder-ai`")),
        "{said:?}"
    );
    assert!(said.iter().any(|it| it.contains("did you mean `preamble`")), "{said:?}");
    assert_eq!(loaded.config.roles.len(), 2);
    let template = |text: &str| user(&format!("[a6s.prompts]\nexplain = '''{text}'''\n")).unwrap();
    assert!(template("Explain {cod}").notes[0].message.contains("did you mean `{code}`"));
    assert!(template("Explain this").notes[0].message.contains("has no placeholder"));
    let loaded = template("Like {\"a\": {\"b\": 1}}: {code}");
    assert_eq!(loaded.notes, []);
    assert!(loaded.config.prompts.explain.is_some());
}

#[test]
fn an_agent_that_may_do_more_at_once_than_there_are_places_for_workers_is_noted() {
    let places = "[limits]\nworkers = 2\n";
    let loaded = user(&format!("{places}{CODER}max_parallel = 8\n")).unwrap();
    let note = loaded.notes.first().expect("a note").to_string();
    assert!(note.contains("max_parallel = 8") && note.contains("limits.workers = 2"), "{note}");
    assert!(note.contains("no more than 2 of its tasks"), "{note}");
    assert_eq!(loaded.notes[0].severity, Severity::Warning);
    assert_eq!(user(&format!("{places}{CODER}max_parallel = 2\n")).unwrap().notes, []);
}
