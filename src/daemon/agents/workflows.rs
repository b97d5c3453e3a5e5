//! Translates the configuration's workflows into those that doors list and agents run.

use std::collections::BTreeMap;

use provost_agents::{Pattern, Step, Workflow};
use provost_config::{self as config, Config};
use provost_domain::PhaseName;

/// Returns the workflows that can be run.
pub(super) fn usable(config: &Config) -> Vec<Workflow> {
    config.all_workflows().iter().map(workflow).collect()
}

/// Returns the workflows that cannot be run, each with the reason.
pub(super) fn refused(config: &Config) -> BTreeMap<Box<str>, Box<str>> {
    let why = |it: &config::RefusedWorker| format!("{}: {}", it.file, it.reason).into();
    config.refused_workflows.iter().map(|(id, it)| (id.as_str().into(), why(it))).collect()
}

fn workflow(it: &config::Workflow) -> Workflow {
    let pattern = match it.head.pattern {
        config::Pattern::Sequential => Pattern::Sequential,
        config::Pattern::Parallel => Pattern::Parallel,
        config::Pattern::Supervisor => Pattern::Supervisor,
        config::Pattern::MakerChecker => Pattern::MakerChecker,
    };
    Workflow {
        id: it.head.id.as_str().into(),
        name: it.name().into(),
        description: it.head.description.as_deref().unwrap_or_default().into(),
        pattern,
        max_rounds: it.head.max_rounds,
        steps: it.steps.iter().map(step).collect(),
        place: format!("{}:{}", it.file, it.line).into(),
    }
}

fn step(it: &config::Step) -> Step<Option<Box<str>>> {
    let words = |words: &[String]| words.iter().map(|it| it.as_str().into()).collect();
    Step {
        name: it.name.as_str().into(),
        who: it.agent.as_deref().map(Into::into),
        prompt: it.prompt.as_ref().map(|it| it.0.as_str().into()),
        command: words(&it.command),
        until: words(&it.until),
        max_rounds: it.max_rounds,
        phase: match it.phase {
            config::StepPhase::Research => PhaseName::Research,
            config::StepPhase::Inspect => PhaseName::Inspect,
            config::StepPhase::Generate => PhaseName::Generate,
            config::StepPhase::Optimize => PhaseName::Optimize,
            config::StepPhase::Review => PhaseName::Review,
        },
    }
}
