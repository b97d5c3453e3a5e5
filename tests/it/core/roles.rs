//! The agent that a name means: an agent, a role of the configuration, or a role that editors' plugins know from the
//! beginning.

use std::collections::BTreeMap;

use provost::agents::{AgentOutput, Agents, ConfiguredAgent, Role};
use provost::base::{AgentId, Ttl};
use provost::domain::Switch;
use provost::jail::Reader;

fn id(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

fn agent(text: &str, name: &str, methods: &[&str]) -> ConfiguredAgent {
    ConfiguredAgent {
        id: id(text),
        name: name.into(),
        description: "".into(),
        capability: "BUILD".into(),
        region: "local".into(),
        output: AgentOutput::Edit,
        reader: Reader::Lines,
        parallel: 1,
        timeout: Ttl::minutes(15),
        methods: methods.iter().map(|it| (*it).into()).collect(),
        enabled: true,
        trouble: None,
        checks: Default::default(),
    }
}

fn agents() -> Agents {
    let role = |text: &str, agent: Option<&str>, preamble: Option<&str>| {
        (id(text), Role { id: id(text), agent: agent.map(id), preamble: preamble.map(Into::into) })
    };
    Agents {
        refused: [].into(),
        agents: vec![
            agent("first", "Claude", &["*"]),
            agent("second", "Codex", &["code.*", "agents.invoke"]),
        ],
        roles: BTreeMap::from([
            role("reviewer-ai", Some("second"), Some("Be kind.")),
            role("tester-ai", None, None),
            role("mine", None, None),
        ]),
        role_aliases: true,
        ..Agents::default()
    }
}

#[test]
fn ids_come_before_names_names_before_roles_and_those_before_what_plugins_know() {
    let agents = agents();
    let meant = |name: &str| {
        let meant = agents.find(name)?;
        Some((
            meant.agent.id.as_str().to_owned(),
            meant.role.map(str::to_owned),
            meant.preamble.map(str::to_owned),
        ))
    };
    let who = |name: &str| meant(name).map(|(id, ..)| id);
    assert_eq!(who("SECOND").as_deref(), Some("second"));
    assert_eq!(who(" codex ").as_deref(), Some("second"));
    let named = |id: &str, role: &str, preamble: &str| {
        Some((id.to_owned(), Some(role.to_owned()), Some(preamble.to_owned())))
    };
    assert_eq!(meant("Reviewer-AI"), named("second", "reviewer-ai", "Be kind."));
    let (agent, _, preamble) = meant("tester-ai").unwrap();
    assert!(agent == "first" && preamble.unwrap().starts_with("Write tests"), "the built-in sentence");
    assert_eq!(meant("mine"), Some(("first".into(), Some("mine".into()), None)));
    assert_eq!(who("security-ai").as_deref(), Some("first"));
    assert_eq!(who("nobody-ai"), None);
    assert_eq!(agents.ids(), "first, second");
    let strict = Agents { role_aliases: false, ..self::agents() };
    assert_eq!(strict.find("security-ai"), None);
}

#[test]
fn the_first_that_works_is_meant_where_nobody_is_named() {
    let mut agents = agents();
    agents.agents[0].enabled = false;
    assert_eq!(agents.first().unwrap().id, id("second"));
    agents.agents[1].trouble = Some("there is no executable".into());
    assert_eq!(agents.first().unwrap().id, id("first"), "it says itself why it does not");
}

#[test]
fn an_agent_takes_what_its_methods_name() {
    let agents = agents();
    let second = agents.get(&id("second")).unwrap();
    for (method, takes) in [
        ("code.review", true),
        ("agents.invoke", true),
        ("workflows.run", false),
        ("codex.run", false),
        ("code", false),
    ] {
        assert_eq!(second.takes(method), takes, "{method}");
        assert!(agents.agents[0].takes(method));
    }
}

#[test]
fn a_question_about_code_goes_to_who_takes_it_and_works() {
    let mut agents = agents();
    let asked = |agents: &Agents, off: &[&str]| {
        let switch = |id: &AgentId| if off.contains(&id.as_str()) { Switch::Off } else { Switch::On };
        let asked = agents.asked_for("code.review", switch);
        asked.map(|meant| meant.agent.id.as_str().to_owned()).map_err(|nobody| nobody.to_string())
    };
    assert_eq!(asked(&agents, &[]).as_deref(), Ok("first"));
    assert_eq!(asked(&agents, &["first"]).as_deref(), Ok("second"));
    agents.code_agent = Some(id("reviewer-ai"));
    assert_eq!(asked(&agents, &[]).as_deref(), Ok("second"), "the role's");
    agents.agents[1].methods = vec!["agents.*".into()];
    assert_eq!(asked(&agents, &[]).as_deref(), Ok("first"), "who is preferred does not take it");
    agents.agents[0].trouble = Some("there is no /bin/none".into());
    assert_eq!(asked(&agents, &[]), Err("first cannot be asked: there is no /bin/none".into()));
    let paused = |id: &AgentId| if id.as_str() == "first" { Switch::Paused } else { Switch::On };
    agents.agents[0].trouble = None;
    assert!(agents.asked_for("code.review", paused).is_ok(), "it waits with who is held back");
    let refused = BTreeMap::from([("x".into(), "provost.toml: `command` is missing".into())]);
    let wrong = Agents { refused, ..Agents::default() };
    assert_eq!(asked(&wrong, &[]), Err("x cannot be used: provost.toml: `command` is missing".into()));
}
