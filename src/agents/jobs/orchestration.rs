//! Workflows in rounds: a supervisor that decides the next step, and a maker with its checkers. A6s 6.9.

use serde_json::{Value, json};

use super::runner::Stop;
use super::workflow_run::{Checked, SoFar, WorkflowRun, unsuccessful};
use crate::prompts::{Ask, PromptFor, as_json};
use crate::replies::reply_as;
use crate::workflows::{TemplateValues, told};
use provost_base::Json;

/// The supervisor's answer when no step is left.
const DONE: &str = "done";

impl WorkflowRun<'_> {
    /// Lets the first step decide, round by round, which step is next and what its agent has to do.
    pub(super) async fn supervised(&self, so_far: &mut SoFar) -> Result<(), Stop> {
        let went = self.decisions(so_far).await;
        let ran = so_far.answers.clone();
        for (number, step) in self.flow.steps.iter().enumerate().skip(1) {
            if let Some((_, answer)) = ran.iter().rev().find(|(name, _)| *name == step.name) {
                self.over(number, Ok(answer.clone()), &mut SoFar::default()).await?;
            }
        }
        self.over(0, went, so_far).await
    }

    async fn decisions(&self, so_far: &mut SoFar) -> Result<String, Stop> {
        let others = &self.flow.steps[1..];
        let mut words: Vec<&str> = others.iter().map(|step| &*step.name).collect();
        words.push(DONE);
        let schema = json!({
            "type": "object",
            "required": ["next"],
            "properties": {
                "next": { "enum": words },
                "task": { "type": "string" },
                "reason": { "type": "string" }
            }
        });
        for _ in 0..self.flow.max_rounds {
            let decision = self.in_form(0, &self.question(so_far), "next", &schema, so_far).await?;
            let decision = decision
                .map_err(|why| Stop::Failed(format!("its reply was not in the asked form: {why}")))?;
            let said = |key: &str| decision.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let next = said("next");
            let Some(number) = self.flow.steps.iter().skip(1).position(|step| *step.name == *next) else {
                return Ok(said("reason"));
            };
            let answer = self.one_of_many(number + 1, &said("task"), so_far).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(stop) => return self.over(number + 1, Err(stop), so_far).await.map(|()| String::new()),
            };
            so_far.answers.push((next.into(), answer));
        }
        Err(Stop::Failed(format!("it has not said `{DONE}` in {} rounds", self.flow.max_rounds)))
    }

    async fn one_of_many(&self, number: usize, task: &str, so_far: &mut SoFar) -> Result<String, Stop> {
        let step = &self.flow.steps[number];
        if step.prompt.is_some() {
            return self.ask(number, "", task, so_far).await;
        }
        Ok(match self.command(number, &step.command, so_far).await? {
            Checked::Passed(said) => format!("It has succeeded.\n{said}"),
            Checked::Failed(said) => format!("It has failed.\n{said}"),
        })
    }

    /// Returns the prompt for a supervisor: its own text, the steps that it may choose, and their answers.
    fn question(&self, so_far: &SoFar) -> String {
        let known =
            TemplateValues { inputs: &self.flow.inputs, answers: &so_far.answers, check: "", task: "" };
        let mut says = known.prompt(self.flow.steps[0].prompt.as_deref().unwrap_or_default());
        says.push_str("\n\nYou decide who is next. These can be:\n");
        for step in &self.flow.steps[1..] {
            let what = match &step.prompt {
                Some(prompt) => {
                    prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
                }
                None => format!("the command {}", step.command.join(" ")),
            };
            says.push_str(&format!("- {}: {}\n", step.name, what.trim()));
        }
        for (name, answer) in &so_far.answers {
            says.push_str(&format!("\n{}\n", told(&format!("What the step {name} has answered"), answer)));
        }
        says.push_str(&format!(
            "\nName the `next` one and what it is to do, as its `task`; or `{DONE}`, when nothing is left to do, with the \
             `reason`."
        ));
        says
    }

    /// Lets the first step make and the others check, until all of them approve.
    pub(super) async fn made_and_checked(&self, so_far: &mut SoFar) -> Result<(), Stop> {
        let (mut complaint, mut refused_by) = (String::new(), 0);
        for _ in 0..self.flow.max_rounds {
            let made = match self.ask(0, &complaint, "", so_far).await {
                Ok(made) => made,
                Err(stop) => return self.over(0, Err(stop), so_far).await,
            };
            // The checkers see the newest work alone.
            so_far.answers.retain(|(name, _)| *name != self.flow.steps[0].name);
            so_far.answers.push((self.flow.steps[0].name.clone(), made.clone()));
            let mut by = None;
            for number in 1..self.flow.steps.len() {
                match self.verdict(number, so_far).await {
                    Ok(Checked::Passed(_)) => {}
                    Ok(Checked::Failed(said)) => {
                        by = Some(number);
                        complaint = said;
                        break;
                    }
                    Err(stop) => return self.over(number, Err(stop), so_far).await,
                }
            }
            let Some(by) = by else {
                for number in (0..self.flow.steps.len()).rev() {
                    let answer = if number == 0 { made.clone() } else { "approved".into() };
                    self.over(number, Ok(answer), &mut *so_far).await?;
                }
                return Ok(());
            };
            complaint = format!("{}: {complaint}", self.flow.steps[by].name);
            refused_by = by;
        }
        for number in 0..refused_by {
            self.over(number, Ok(String::new()), &mut SoFar::default()).await?;
        }
        let why = format!("it does not approve after {} rounds", self.flow.max_rounds);
        self.over(refused_by, Err(unsuccessful(&why, &complaint)), so_far).await
    }

    /// Asks one of the checkers for its verdict. A reply that cannot be read does not approve.
    async fn verdict(&self, number: usize, so_far: &mut SoFar) -> Result<Checked, Stop> {
        let step = &self.flow.steps[number];
        let Some(prompt) = &step.prompt else { return self.command(number, &step.command, so_far).await };
        let known =
            TemplateValues { inputs: &self.flow.inputs, answers: &so_far.answers, check: "", task: "" };
        let says = format!(
            "{}\n\nSay whether you approve of what is there now, and if not, in your `comments` what is to be changed.",
            known.prompt(prompt)
        );
        let schema = json!({
            "type": "object",
            "required": ["approved"],
            "properties": { "approved": { "type": "boolean" }, "comments": { "type": "string" } }
        });
        let verdict = self.in_form(number, &says, "approved", &schema, so_far).await?;
        Ok(match verdict {
            Ok(verdict) => {
                let comments = verdict.get("comments").and_then(Value::as_str).unwrap_or_default().to_owned();
                match verdict.get("approved") == Some(&Value::Bool(true)) {
                    true => Checked::Passed(comments),
                    false => Checked::Failed(comments),
                }
            }
            Err(why) => Checked::Failed(format!("its reply was not in the asked form ({why})")),
        })
    }

    /// Asks for JSON, and once more if the reply is none.
    async fn in_form(
        &self,
        number: usize,
        says: &str,
        member: &str,
        schema: &Value,
        so_far: &mut SoFar,
    ) -> Result<Result<Value, String>, Stop> {
        let (form, text) = (Json::from_value(schema), schema.to_string());
        let says =
            format!("{says}\n\nAnswer with JSON alone that satisfies this JSON Schema:\n{}", as_json(&text));
        let reply = self.ask_for(number, &says, Some(&form), so_far).await?;
        let why = match reply_as(&reply, member, schema, |value| value) {
            Ok(value) => return Ok(Ok(value)),
            Err(why) => why,
        };
        let ask = Ask { task: &why, code: &reply, schema: &text, ..Ask::default() };
        let repair = self.runner.service.configured().prompts.render(PromptFor::Repair, &ask);
        let repair = repair.map_err(|err| Stop::Failed(err.to_string()))?;
        let reply = self.tell(number, repair, Some(&form), so_far).await?;
        Ok(reply_as(&reply, member, schema, |value| value))
    }
}
