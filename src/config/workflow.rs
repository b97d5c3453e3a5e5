//! The entries of `[[workflow]]`: steps that name agents, in the files of settings and in files of their own.
//!
//! An invalid entry is refused alone, with its file, line and reason. Two entries are built in; an entry of the same id
//! replaces one of them. The daemon checks the agents of steps when a workflow is requested, since agents come and go.

use toml::de::{DeArray, DeTable, DeValue};

use super::env::Environment;
use super::load::{File, Loading, RefusedWorker, Severity, join, line_of};
use super::table::{Config, key, section};
use super::value::{Context, Mark, Row, Value, checked, quoted, words};
use super::worker::unknown;
use provost_base::limits::{
    TEMPLATE_BYTES_MAX, WORKFLOW_NAME_BYTES_MAX, WORKFLOW_ROUNDS, WORKFLOW_ROUNDS_MAX, WORKFLOW_STEPS_MAX,
    WORKFLOWS_MAX,
};
use provost_base::nearest;

/// The workflows that come with the program.
const BUILT_IN: &str = include_str!("workflows.toml");

/// The name that stands in place of a file for built-in workflows.
pub const BUILT_IN_FILE: &str = "built in";

words! {
    /// The order in which a workflow's steps are carried out.
    Pattern {
        /// One after another, in one copy of the workspace; the first failure ends the workflow.
        Sequential = "sequential",
        /// All at once, each in a copy of its own.
        Parallel = "parallel",
        /// The first step decides, round by round, which of the others is next and what it is told.
        Supervisor = "supervisor",
        /// The first step makes, the others check, and the rounds go on until all of them approve.
        MakerChecker = "maker_checker",
    }
    /// The phase of an execution that a step belongs to.
    StepPhase {
        /// The facts are gathered.
        Research = "research",
        /// The agent finds out whether the work can be done.
        Inspect = "inspect",
        /// The work itself is done.
        Generate = "generate",
        /// The result is tidied up.
        Optimize = "optimize",
        /// The result is checked.
        Review = "review",
    }
}

section! {
    /// One `[[workflow]]` entry: steps that name agents. docs/workflows.md shows some.
    WorkflowHead {
        /// What it is called by editors: `domain:name`.
        id: String = String::new(), "domain:name", Required, Strict;
        /// Its name for people; without one, what stands behind the colon.
        name: Option<String> = None, "";
        /// What it is for, in a sentence.
        description: Option<String> = None, "";
        /// In what order its steps are taken. `sequential`: one after another, in one copy; `parallel`: at once, each in a copy of its own; `supervisor`: the first decides who is next; `maker_checker`: the first makes, the others check.
        pattern: Pattern = Pattern::Sequential, "", Strict;
        /// How often a supervisor decides, or a maker tries, before it has failed.
        max_rounds: u32 = WORKFLOW_ROUNDS, "rounds" within 1..=WORKFLOW_ROUNDS_MAX, Strict;
    }
}

section! {
    /// One `[[workflow.step]]` of the workflow above it: an agent with a prompt, or a command.
    Step {
        /// What it is called, by editors and by other steps.
        name: String = String::new(), "word", Required, Strict;
        /// The id or name of an agent, or a role; without it, the first agent that works. A command runs in the jail of this one.
        agent: Option<String> = None, "ident", Strict;
        /// What the agent is told: `{input}`, `{inputs.KEY}`, `{previous}`, `{steps.NAME}`, `{check}` and, under a supervisor, `{task}` are filled in.
        prompt: Option<Prompt> = None, "template", Strict;
        /// Run instead of an agent, in the same copy, without network and secrets; the step fails if it does. `{input}` and `{inputs.KEY}` are filled in.
        command: Vec<String> = Vec::new(), "", Strict;
        /// The agent is asked again until this command succeeds, to which the same applies; where it succeeds at once, the agent is not asked.
        until: Vec<String> = Vec::new(), "", Strict;
        /// How often the agent is asked, at the most, where there is an `until`.
        max_rounds: u32 = WORKFLOW_ROUNDS, "rounds" within 1..=WORKFLOW_ROUNDS_MAX, Strict;
        /// Which of the five phases of an execution it belongs to.
        phase: StepPhase = StepPhase::Generate, "", Strict;
    }
}

/// The prompt for the agent of a step; names in braces stand for inputs and for the answers of other steps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct Prompt(pub String);

/// The names that may stand between braces, beside names of inputs and of steps.
const PLACEHOLDERS: [&str; 4] = ["input", "previous", "check", "task"];

impl Value for Prompt {
    const NAME: &'static str = "text";
    fn read(value: &DeValue<'_>, context: &Context) -> Result<Self, String> {
        let text = String::read(value, context)?;
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(format!("is longer than {TEMPLATE_BYTES_MAX} bytes"));
        }
        for word in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(word, _)| word) {
            // Other braces are left alone; a misspelt name is an error.
            let plain = !word.is_empty() && word.bytes().all(|it| it.is_ascii_lowercase());
            if let Some(near) = nearest(word, PLACEHOLDERS).filter(|near| plain && *near != word) {
                return Err(format!("`{{{word}}}` is not a placeholder; did you mean `{{{near}}}`?"));
            }
        }
        Ok(Self(text))
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

/// A workflow, with its place in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Workflow {
    /// The id, the texts and the pattern of the workflow.
    pub head: WorkflowHead,
    /// The steps, in the order of the file.
    pub steps: Vec<Step>,
    /// The file with the entry.
    pub file: String,
    /// The line in that file at which the entry begins, from 1.
    pub line: usize,
}

impl Workflow {
    /// Returns the part of its id before the colon.
    pub fn domain(&self) -> &str {
        self.head.id.split(':').next().unwrap_or_default()
    }

    /// Returns its name for people.
    pub fn name(&self) -> &str {
        let last = self.head.id.split(':').next_back().unwrap_or_default();
        self.head.name.as_deref().unwrap_or(last)
    }
}

/// The byte of the file at which a mistake stands, and a sentence about it.
type Wrong = (usize, String);

/// Returns the built-in workflows.
fn built_in() -> Vec<Workflow> {
    let mut loading = Loading::new(&Environment::default());
    loading.workflow_file(BUILT_IN_FILE, BUILT_IN, false);
    loading.done.config.workflows
}

impl Config {
    /// Returns every workflow that can be used: the built-in ones, unless a file has an entry with their id, and
    /// those of the files.
    pub fn all_workflows(&self) -> Vec<Workflow> {
        let written = |id: &String| {
            self.refused_workflows.contains_key(id) || self.workflows.iter().any(|it| it.head.id == *id)
        };
        let built_in = built_in().into_iter().filter(|it| !written(&it.head.id));
        built_in.chain(self.workflows.iter().cloned()).collect()
    }
}

impl Loading {
    /// Reads a file that has only workflows: a mistake in it leaves everything else unchanged.
    pub(super) fn workflow_file(&mut self, name: &str, text: &str, foreign: bool) {
        let file = File { name, text, context: Context::default(), foreign };
        let document = match DeTable::parse(text) {
            Ok(document) => document,
            Err(e) => {
                let at = e.span().map_or(0, |span| span.start);
                let message = format!("is not valid TOML: {}; this file is refused", e.message());
                return self.note(&file, at, "", message, Severity::Error);
            }
        };
        for (key, value) in document.get_ref() {
            match value.get_ref() {
                DeValue::Array(list) if key.get_ref() == "workflow" => self.workflows(&file, list),
                _ => {
                    let message = "does not belong into a file of workflows, which has `[[workflow]]` alone";
                    self.note(&file, key.span().start, key.get_ref(), message.into(), Severity::Error);
                }
            }
        }
    }

    /// Reads the entries of `[[workflow]]`: each stands alone, and replaces the entry of an earlier file with the same id.
    pub(super) fn workflows(&mut self, file: &File<'_>, list: &DeArray<'_>) {
        for entry in list {
            let at = entry.span().start;
            let read = match entry.get_ref() {
                DeValue::Table(table) => self.workflow(file, at, table),
                other => Err((None, (at, format!("expected a table, found {}", other.type_str())))),
            };
            match read {
                Ok(workflow) => self.put_workflow(file, workflow),
                Err((id, wrong)) => self.refuse_workflow(file, id, wrong),
            }
        }
    }

    fn put_workflow(&mut self, file: &File<'_>, workflow: Workflow) {
        let config = &mut self.done.config;
        config.refused_workflows.remove(&workflow.head.id);
        self.done.origins.insert(join("workflow", &workflow.head.id), file.name.into());
        match config.workflows.iter_mut().find(|known| known.head.id == workflow.head.id) {
            Some(known) => *known = workflow,
            None => config.workflows.push(workflow),
        }
    }

    /// Refuses an entry and drops all earlier ones with its id, since this one was meant to replace them.
    fn refuse_workflow(&mut self, file: &File<'_>, id: Option<String>, (at, why): Wrong) {
        let full = id.as_ref().map_or("workflow".into(), |id| join("workflow", id));
        self.note(file, at, &full, format!("{why}; this workflow is refused"), Severity::Error);
        let Some(id) = id else { return };
        self.done.config.workflows.retain(|known| known.head.id != id);
        let reason = format!("line {}: {why}", line_of(file.text, at));
        let refused = RefusedWorker { file: file.name.into(), reason, is_agent: false };
        self.done.config.refused_workflows.insert(id, refused);
    }

    fn workflow(
        &mut self,
        file: &File<'_>,
        at: usize,
        table: &DeTable<'_>,
    ) -> Result<Workflow, (Option<String>, Wrong)> {
        let id = self.workflow_id(file, at, table).map_err(|wrong| (None, wrong))?;
        let read = self.workflow_entry(file, at, table, &id);
        read.map_err(|wrong| (Some(id), wrong))
    }

    fn workflow_id(&self, file: &File<'_>, at: usize, table: &DeTable<'_>) -> Result<String, Wrong> {
        let value = table.get("id").ok_or((at, "`id` is missing: name it `domain:name`".into()))?;
        let at = value.span().start;
        let id = String::read(value.get_ref(), &file.context).map_err(|why| (at, format!("`id`: {why}")))?;
        let parts = id.split_once(':').filter(|(domain, name)| is_name(domain) && is_name(name));
        if parts.is_none() {
            let message = "`id`: write it `domain:name`, with small letters, digits, `_` and `-`";
            return Err((at, message.into()));
        }
        if self.done.origins.get(&join("workflow", &id)).is_some_and(|it| it == file.name) {
            return Err((at, format!("`id`: `{id}` is there twice")));
        }
        let known = self.done.config.workflows.iter().any(|it| it.head.id == id);
        if !known && self.done.config.workflows.len() >= WORKFLOWS_MAX {
            return Err((at, format!("there may be at most {WORKFLOWS_MAX} workflows")));
        }
        Ok(id)
    }

    fn workflow_entry(
        &mut self,
        file: &File<'_>,
        at: usize,
        table: &DeTable<'_>,
        id: &str,
    ) -> Result<Workflow, Wrong> {
        let (mut head, mut steps) = (WorkflowHead::default(), Vec::new());
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            match (name, value.get_ref()) {
                ("step", DeValue::Array(list)) => steps = self.workflow_steps(file, list, id)?,
                ("step", _) => return Err((at, "`step` must be a list: write `[[workflow.step]]`".into())),
                (_, value) => match head.set(name, value, &file.context) {
                    Some(result) => result.map_err(|why| (at, format!("`{name}`: {why}")))?,
                    None => {
                        let rows = WorkflowHead::rows();
                        let message = unknown(name, &rows, "a workflow").map_err(|why| (at, why))?;
                        let full = join(&join("workflow", id), name);
                        self.note(file, at, &full, message, Severity::Warning);
                    }
                },
            }
        }
        let steps = fitting(&head, steps, at)?;
        Ok(Workflow { head, steps, file: file.name.into(), line: line_of(file.text, at) })
    }

    fn workflow_steps(
        &mut self,
        file: &File<'_>,
        list: &DeArray<'_>,
        id: &str,
    ) -> Result<Vec<(usize, Step)>, Wrong> {
        let mut steps: Vec<(usize, Step)> = Vec::new();
        for entry in list {
            let at = entry.span().start;
            let DeValue::Table(table) = entry.get_ref() else {
                return Err((at, format!("expected a table, found {}", entry.get_ref().type_str())));
            };
            let mut step = Step::default();
            for (key, value) in table {
                let (name, at) = (key.get_ref().as_ref(), key.span().start);
                match step.set(name, value.get_ref(), &file.context) {
                    Some(result) => result.map_err(|why| (at, format!("`{name}`: {why}")))?,
                    None => {
                        let message = unknown(name, &Step::rows(), "a step").map_err(|why| (at, why))?;
                        let full = join(&join("workflow", id), name);
                        self.note(file, at, &full, message, Severity::Warning);
                    }
                }
            }
            check_step(&step, &steps).map_err(|why| (at, why))?;
            steps.push((at, step));
        }
        Ok(steps)
    }
}

/// Checks one step, as far as it can be checked alone; it may refer to earlier steps only.
fn check_step(step: &Step, earlier: &[(usize, Step)]) -> Result<(), String> {
    if !is_name(&step.name) {
        return Err(
            "`name`: give the step a name, with small letters, digits, `_` and `-`, by which others know it"
                .into(),
        );
    }
    if earlier.iter().any(|(_, it)| it.name == step.name) {
        return Err(format!("`name`: two steps are called `{}`", step.name));
    }
    match (&step.prompt, step.command.is_empty()) {
        (None, true) => return Err("`prompt` is missing: give the agent's prompt, or a `command`".into()),
        (Some(_), false) => return Err("a step has a `prompt` or a `command`, not both".into()),
        _ => {}
    }
    if !step.command.is_empty() && !step.until.is_empty() {
        return Err("`until` is for a step with a `prompt`: a command is not asked again".into());
    }
    let texts = step.prompt.iter().map(|it| &it.0).chain(&step.command).chain(&step.until);
    for word in texts.flat_map(|text| text.split("{steps.").skip(1)).filter_map(|rest| rest.split_once('}')) {
        if !earlier.iter().any(|(_, it)| it.name == word.0) {
            return Err(format!("`{{steps.{}}}`: no earlier step is called `{}`", word.0, word.0));
        }
    }
    Ok(())
}

/// Returns the steps if they fit the pattern together.
fn fitting(head: &WorkflowHead, steps: Vec<(usize, Step)>, at: usize) -> Result<Vec<Step>, Wrong> {
    let pattern = head.pattern;
    let word = pattern.print().unwrap_or_default();
    let least = if pattern == Pattern::Sequential { 1 } else { 2 };
    if steps.len() < least || steps.len() > WORKFLOW_STEPS_MAX {
        let many = format!("a workflow with `pattern = {word}` has {least} to {WORKFLOW_STEPS_MAX} steps");
        return Err((at, format!("{many}, and this one has {}", steps.len())));
    }
    let first = steps.first().map(|(_, step)| step.phase);
    let mut reached = StepPhase::Research;
    for (number, (at, step)) in steps.iter().enumerate() {
        let wrong = |why: &str| Err((*at, format!("step `{}`: {why}", step.name)));
        if pattern == Pattern::Sequential && step.phase < reached {
            return wrong("its `phase` comes before that of an earlier step");
        }
        if pattern != Pattern::Sequential && first != Some(step.phase) {
            return wrong("under this pattern all steps belong to the same `phase`");
        }
        reached = step.phase;
        let says = step.prompt.as_ref().map(|it| it.0.as_str()).unwrap_or_default();
        if says.contains("{task}") && (pattern != Pattern::Supervisor || number == 0) {
            return wrong("`{task}` is the supervisor's text for a step; the first step cannot use it");
        }
        if pattern != Pattern::Sequential && !step.until.is_empty() {
            return wrong("`until` is for `pattern = \"sequential\"`");
        }
        if pattern == Pattern::Parallel && ["{previous}", "{steps."].iter().any(|it| says.contains(it)) {
            return wrong("steps that run at once know nothing of each other: no `{previous}`, no `{steps.`");
        }
        if number == 0 && !step.command.is_empty() && pattern == Pattern::Supervisor {
            return wrong("a supervisor is an agent: give it a `prompt`");
        }
        if number == 0 && pattern == Pattern::MakerChecker && !says.contains("{check}") {
            return wrong("a maker is an agent whose `prompt` has `{check}`: what those who check have said");
        }
    }
    Ok(steps.into_iter().map(|(_, step)| step).collect())
}

fn is_name(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_' || it == b'-';
    (1..=WORKFLOW_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}
