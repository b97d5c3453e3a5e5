//! The prompt about a selection, and the use of the agent's answer.

use super::location::Found;
use super::patch::place;
use super::{CodeActionError, CodeAsk, CodePlan, CodeQuestion, Whom};
use crate::{AgentOutput, Ask, Prompts, code_schema, review_focus, review_schema};
use provost_base::RepoPath;
use provost_base::limits::A6S_CONTEXT_BYTES_MAX;

/// A question that is ready to be asked.
pub(super) struct PreparedQuestion {
    pub(super) prompt: String,
    pub(super) plan: CodePlan,
}

/// Prepares a question.
///
/// # Errors
/// The fault of the selection, as far as it shows before an agent has worked.
pub(super) fn of(
    prompts: &Prompts,
    whom: &Whom,
    ask: &CodeAsk,
    found: &Found,
) -> Result<PreparedQuestion, CodeActionError> {
    let (file, output) = (found.file.as_ref(), whom.output);
    let refactors = ask.question == CodeQuestion::Refactor;
    let makes_files = refactors || ask.question == CodeQuestion::GenerateTests;
    // The copy of an agent contains no buffer without a file, so the agent cannot change it.
    let edits = makes_files && output == AgentOutput::Edit && (file.is_some() || !refactors);
    let json = output == AgentOutput::Json && makes_files;
    let whole = if refactors { to_refactor(ask, found, edits)? } else { None };
    let schema = match ask.question {
        CodeQuestion::Review => review_schema().to_string(),
        _ if json => code_schema().to_string(),
        _ => String::new(),
    };
    let (instructions, context) = more_to_say(ask, found, edits);
    let said = Ask {
        code: whole.as_deref().unwrap_or(&ask.code),
        numbered: ask.question == CodeQuestion::Review,
        language: &ask.language,
        file: file.map_or(found.name.as_str(), RepoPath::as_str),
        instructions: &instructions,
        review_focus: review_focus(ask.focus).unwrap_or_default(),
        schema: &schema,
        preamble: &whom.preamble,
        context: &context,
        ..Ask::default()
    };
    let prompt = prompts.render_asking(ask.question.prompt(), &said)?;
    let plan = CodePlan {
        question: ask.question,
        code: ask.code.as_str().into(),
        language: ask.language.as_str().into(),
        file: found.file.clone(),
        name: found.name.as_str().into(),
        edits,
        json,
        tests: found.tests.as_ref().map(|tests| tests.path.clone()),
        was: found.was,
    };
    Ok(PreparedQuestion { prompt, plan })
}

/// Returns the selection as it stands in its file. From the indentation of its first line, an agent can tell the
/// indentation of all its lines.
///
/// # Errors
/// New text could not be put in the selection's place, or never be written.
fn to_refactor(ask: &CodeAsk, found: &Found, edits: bool) -> Result<Option<String>, CodeActionError> {
    let Some(file) = &found.file else { return Ok(None) };
    let refuse = |why: String| CodeActionError::Selection(why.into());
    if let Some(why) = &found.unwritable {
        return Err(refuse(format!("{file}: {why}")));
    }
    match found.text.as_ref().map(|text| place(text, &ask.code)) {
        Ok(Ok(placed)) => Ok(Some(placed.whole())),
        _ if edits => Ok(None),
        Ok(Err(nowhere)) => Err(refuse(nowhere.says(file.as_str()))),
        Err(why) => Err(refuse(why.clone())),
    }
}

/// Returns additional instructions for the template, and the data that they refer to.
fn more_to_say(ask: &CodeAsk, found: &Found, edits: bool) -> (String, String) {
    let own = ask.instructions.as_deref().unwrap_or_default().trim();
    match (ask.question, &found.tests) {
        (CodeQuestion::Refactor, _) => {
            let own = if own.is_empty() { "none" } else { own };
            let apart =
                "This code is in no file of the project: change no file, and answer with its new text.";
            let more = if found.file.is_none() { format!("\n\n{apart}") } else { String::new() };
            (format!("{own}{more}"), String::new())
        }
        (CodeQuestion::GenerateTests, Some(tests)) => {
            let path = shown(&tests.path);
            match &tests.text {
                Some(text) if !edits && text.len() <= A6S_CONTEXT_BYTES_MAX => {
                    let more = format!(
                        "They belong into {path}, which is there already and is the context below: answer with all of \
                         it, the new tests added."
                    );
                    (more, text.clone())
                }
                Some(_) => (format!("They belong into {path}, which is there already."), String::new()),
                None => (format!("They belong into {path}, which is not there yet."), String::new()),
            }
        }
        _ => (own.to_owned(), String::new()),
    }
}

fn shown(path: &RepoPath) -> String {
    format!("`{}`", path.as_str().replace(|c: char| c.is_control() || c == '`', "?"))
}
