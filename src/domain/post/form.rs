//! Questions that the agent of a task asks in a form. Its program waits for the answer, and takes it as its person's.
//!
//! ```text
//!   [open] --the task's asker or a person answers--> [answered]: its number is in the answer's event
//!     \--nothing is waited for any more, or the task has ended--> [gone]
//! ```
//! An answer of any other agent is refused, and the question stays open. An answer closes one question.

use provost_base::{PostSeq, TaskId, task_command};

use super::working_set::of;
use super::{Post, PostChange, Question, Source};
use crate::command::{QuestionWithdrawn, WithdrawQuestion};
use crate::{Change, Outbox, Principal, Proof, Refusal, Scope, State};

/// The origin of a question that was asked from inside a task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct AskedInside {
    /// The task of the asker.
    pub(super) task: Option<TaskId>,
    /// Whether the program of the task's agent waits for the answer.
    pub(super) is_form: bool,
}

impl AskedInside {
    pub(super) fn of(who: &Principal, source: Source) -> Self {
        let task = (who.proof() == Proof::Jailed).then(|| TaskId::parse(who.session().as_str()).ok());
        Self { task: task.flatten(), is_form: source == Source::Form }
    }
}

/// The questions that a post closes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Closed {
    pub(super) questions: Vec<PostSeq>,
    /// The question of a waiting program, which gets this answer.
    pub(super) form: Option<PostSeq>,
}

impl Question {
    /// Checks whether an answer that names `re` is about this question: all of it, or its beginning.
    fn is_meant_by(&self, re: &str) -> bool {
        // Lists show the beginning of a question.
        let named = re.trim_end().trim_end_matches(['…', '.']);
        !named.is_empty() && (self.text.starts_with(named) || named.starts_with(&*self.text))
    }
}

impl State {
    /// Returns the questions that a post closes.
    ///
    /// # Errors
    /// The post answers a form, and its sender may not: then it is not published.
    pub(super) fn closed_by(&self, who: &Principal, post: &Post) -> Result<Closed, Refusal> {
        let (agent, re) = match post {
            Post::Answer { agent, re, .. } => (agent, re.as_deref()),
            Post::Feedback { agent, re, .. } => (agent, re.as_deref()),
            _ => return Ok(Closed::default()),
        };
        let asker = of(agent);
        let open: Vec<&Question> =
            self.broker.questions().map(|it| &**it).filter(|it| of(&it.agent) == asker).collect();
        let fit = |it: &&Question| re.is_some_and(|re| it.is_meant_by(re));
        let named: Vec<&Question> = open.iter().copied().filter(fit).collect();
        let is_answer = matches!(post, Post::Answer { .. });
        let (forms, others): (Vec<&Question>, Vec<&Question>) = match (named.is_empty(), re) {
            // It repeats an answer, which has closed its question.
            (true, Some(_)) if !is_answer => return Ok(Closed::default()),
            // As with git-paw, an answer that names no open question closes the questions for which no program waits.
            (true, Some(_)) => (Vec::new(), open.into_iter().filter(|it| !it.is_form).collect()),
            (true, None) => open.into_iter().partition(|it| it.is_form),
            (false, _) => named.into_iter().partition(|it| it.is_form),
        };
        if !others.is_empty() || forms.is_empty() || !is_answer {
            return Ok(Closed { questions: others.into_iter().map(|it| it.n).collect(), form: None });
        }
        let form = self.answered_form(who, &forms, re)?;
        Ok(Closed { questions: vec![form], form: Some(form) })
    }

    /// Returns the form that an answer of this caller is for. Of forms with the same question, it is the oldest.
    fn answered_form(
        &self,
        who: &Principal,
        forms: &[&Question],
        re: Option<&str>,
    ) -> Result<PostSeq, Refusal> {
        let mine: Vec<&&Question> = forms.iter().filter(|it| self.may_answer(who, it)).collect();
        let exact = mine.iter().find(|it| re == Some(&*it.text));
        match (exact, mine.as_slice()) {
            (Some(one), _) => Ok(one.n),
            (None, [one, others @ ..]) if others.iter().all(|it| it.text == one.text) => Ok(one.n),
            (None, [one, ..]) => Err(Refusal::SessionCannot {
                why: format!(
                    "{} questions of {} fit this answer, and it is for one; name it: provost question answer {} \"…\"",
                    mine.len(),
                    one.agent,
                    one.n.0
                )
                .into(),
            }),
            (None, []) => Err(self.not_to_answer(who, forms[0])),
        }
    }

    /// Checks whether this caller may answer the agent of a task: the task's asker or a person may, but not the
    /// task's own worker, nor a model that has left out its name.
    fn may_answer(&self, who: &Principal, question: &Question) -> bool {
        if who.may(Scope::Operate) {
            return !who.is_of_agents();
        }
        let task = question.task.as_ref().and_then(|it| self.tasks.get(it));
        task.is_some_and(|task| {
            let is_its_worker = who.proof() == Proof::Jailed || of(&task.order.worker) == of(who.agent());
            !is_its_worker && of(&task.asked_by) == of(who.agent())
        })
    }

    fn not_to_answer(&self, who: &Principal, question: &Question) -> Refusal {
        let task = question.task.as_ref().and_then(|it| self.tasks.get(it));
        let whose = match task {
            Some(task) => format!("people and {}, who has asked for task {}", task.asked_by, task.id()),
            None => "people".to_owned(),
        };
        let unnamed = match who.may(Scope::Operate) {
            true => ", and this caller may be a model that has left its name out",
            false => "",
        };
        let next = task_command("question answer", &question.n.0.to_string(), "\"…\"");
        Refusal::SessionCannot {
            why: format!(
                "{} waits for the answer of {whose}{unnamed}; a person answers it at a terminal: {next}",
                question.agent
            )
            .into(),
        }
    }

    /// Withdraws a form whose program no longer waits for the answer.
    pub(crate) fn withdraw_question(&self, verb: &WithdrawQuestion, out: &mut Outbox) -> QuestionWithdrawn {
        if self.broker.questions().any(|it| it.n == verb.question && it.is_form) {
            out.put(Change::Post(PostChange::DropQuestion(verb.question)));
        }
        QuestionWithdrawn
    }

    /// Drops the questions of a task that has ended, since no program waits for the answers.
    pub(crate) fn drop_questions_of(&self, task: &TaskId, out: &mut Outbox) {
        for it in self.broker.questions().filter(|it| it.task.as_ref() == Some(task)) {
            out.put(Change::Post(PostChange::DropQuestion(it.n)));
        }
    }

    /// Drops the forms of a run that begins again, since the process that waited for them is gone.
    pub(crate) fn drop_forms_of(&self, task: &TaskId, out: &mut Outbox) {
        for it in self.broker.questions().filter(|it| it.is_form && it.task.as_ref() == Some(task)) {
            out.put(Change::Post(PostChange::DropQuestion(it.n)));
        }
    }
}
