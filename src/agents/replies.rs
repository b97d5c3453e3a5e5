//! Agents' answers in JSON or plain text: finds the answer in the output, normalises it, and checks it against its
//! schema. This module does no input or output.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use provost_base::limits::{REPLY_BYTES_MAX, REPLY_STARTS_MAX, REVIEW_ISSUES_MAX, REVIEW_TEXT_MAX};

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The code is wrong there.
    Error,
    /// The code may be wrong there.
    Warning,
    /// The finding is worth knowing.
    Info,
}

impl Severity {
    /// Returns the protocol's word.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }

    /// Returns the severity that a reviewer means by its own word.
    pub fn meant_by(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().as_str() {
            "error" | "critical" | "blocker" | "fatal" | "high" | "major" | "severe" => Severity::Error,
            "warning" | "warn" | "medium" | "moderate" | "minor" => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

/// A finding of a reviewer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Issue {
    /// The severity.
    pub severity: Severity,
    /// The finding, in one sentence.
    pub message: String,
    /// The line of the code that was sent, counted from one.
    pub line: Option<u64>,
    /// A way to correct the finding, if the reviewer has named one.
    pub suggestion: Option<String>,
}

/// The findings of a reviewer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Review {
    /// The findings, in any order.
    pub issues: Vec<Issue>,
    /// A summary in a few sentences.
    pub summary: String,
}

/// Returns the JSON Schema of a review.
pub fn review_schema() -> Value {
    let text = |most: usize| json!({ "type": "string", "minLength": 1, "maxLength": most });
    json!({
        "type": "object",
        "required": ["issues", "summary"],
        "properties": {
            "summary": { "type": "string" },
            "issues": {
                "type": "array",
                "maxItems": REVIEW_ISSUES_MAX,
                "items": {
                    "type": "object",
                    "required": ["severity", "message"],
                    "properties": {
                        "severity": { "enum": ["error", "warning", "info"] },
                        "message": text(REVIEW_TEXT_MAX),
                        "line": { "type": "integer", "minimum": 1 },
                        "suggestion": text(REVIEW_TEXT_MAX)
                    }
                }
            }
        }
    })
}

/// Returns the JSON Schema of new text for some code.
pub fn code_schema() -> Value {
    json!({
        "type": "object",
        "required": ["code"],
        "properties": {
            "code": { "type": "string", "minLength": 1 },
            "explanation": { "type": "string" }
        }
    })
}

/// Reads a review of code that has this many lines.
///
/// # Errors
/// The mistake, as a sentence for the agent that has to correct it.
pub fn review(reply: &str, lines: u64) -> Result<Review, String> {
    let schema = review_schema();
    let value = reply_as(reply, "issues", &schema, |value| in_form(value, lines))?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let issue = |value: &Value| Issue {
        severity: Severity::meant_by(&text(value, "severity").unwrap_or_default()),
        message: text(value, "message").unwrap_or_default(),
        line: value.get("line").and_then(Value::as_u64),
        suggestion: text(value, "suggestion"),
    };
    let issues = value.get("issues").and_then(Value::as_array);
    Ok(Review {
        issues: issues.into_iter().flatten().map(issue).collect(),
        summary: text(&value, "summary").unwrap_or_default(),
    })
}

/// Returns a review for a reply that could not be read: visibly so, since an empty one would look like praise.
pub fn unread_review(reply: &str) -> Review {
    let message = "The reviewer's reply was not in the asked form".to_owned();
    let issue = Issue { severity: Severity::Info, message, line: None, suggestion: None };
    Review { issues: vec![issue], summary: reply.trim().to_owned() }
}

/// Returns the JSON object in a reply that satisfies a schema, once `in_form` has corrected trivial mistakes. Tries the
/// whole reply, its last block of JSON, and the last object in it that has `member`.
///
/// # Errors
/// The fault of the first of them, or that the reply has no such object.
pub fn reply_as(
    reply: &str,
    member: &str,
    schema: &Value,
    in_form: impl Fn(Value) -> Value,
) -> Result<Value, String> {
    let reply = &reply[..reply.floor_char_boundary(REPLY_BYTES_MAX.min(reply.len()))];
    let validator = jsonschema::validator_for(schema).map_err(|error| format!("the schema: {error}"))?;
    let mut wrong = None;
    for candidate in [whole(reply), last_block(reply), last_object(reply, member)].into_iter().flatten() {
        let value = in_form(candidate);
        let Some(error) = validator.iter_errors(&value).next() else { return Ok(value) };
        let at = error.instance_path().to_string();
        let at = if at.is_empty() { "the reply".to_owned() } else { format!("`{at}`") };
        // The error's words can be as long as the reply.
        let words: String = error.to_string().chars().take(LONGEST_ERROR).collect();
        wrong.get_or_insert(format!("{at}: {words}"));
    }
    Err(wrong.unwrap_or_else(|| format!("it holds no JSON object with `{member}`")))
}

const LONGEST_ERROR: usize = 300;

fn whole(reply: &str) -> Option<Value> {
    serde_json::from_str::<Value>(reply.trim()).ok().filter(Value::is_object)
}

/// Returns the last block between fences that is marked as JSON, or is JSON.
fn last_block(reply: &str) -> Option<Value> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in reply.split_inclusive('\n') {
        let bare = line.trim();
        let ticks = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        match open {
            Some((from, fence)) if bare == fence => {
                blocks.push(&reply[from..at]);
                open = None;
            }
            None if ticks.len() >= 3 => open = Some((at + line.len(), ticks)),
            _ => {}
        }
        at += line.len();
    }
    blocks.into_iter().rev().find_map(whole)
}

/// Returns the last object in a text that has a member of this name.
fn last_object(reply: &str, member: &str) -> Option<Value> {
    let starts = memchr::memrchr_iter(b'{', reply.as_bytes()).take(REPLY_STARTS_MAX);
    starts
        .filter_map(|at| serde_json::Deserializer::from_str(&reply[at..]).into_iter::<Value>().next()?.ok())
        .find(|value| value.get(member).is_some())
}

/// Corrects trivial mistakes: synonyms, numbers as text, nulls, and values that are too long or too many.
fn in_form(value: Value, lines: u64) -> Value {
    let Value::Object(mut review) = value else { return value };
    if let Some(Value::Array(issues)) = review.get_mut("issues") {
        issues.truncate(REVIEW_ISSUES_MAX);
        for issue in issues {
            if let Value::Object(issue) = issue {
                put_right(issue, lines);
            }
        }
    }
    Value::Object(review)
}

fn put_right(issue: &mut Map<String, Value>, lines: u64) {
    issue.retain(|_, value| !value.is_null());
    if let Some(Value::String(word)) = issue.get("severity") {
        let meant = Severity::meant_by(word).name();
        issue.insert("severity".into(), meant.into());
    }
    for key in ["message", "suggestion"] {
        if let Some(Value::String(text)) = issue.get(key) {
            let text: String = text.trim().chars().take(REVIEW_TEXT_MAX).collect();
            match text.is_empty() && key == "suggestion" {
                true => drop(issue.remove(key)),
                false => drop(issue.insert(key.into(), text.into())),
            }
        }
    }
    if let Some(said) = issue.remove("line") {
        let number =
            said.as_u64().or_else(|| whole_number(&said)).or_else(|| said.as_str()?.trim().parse().ok());
        if let Some(number) = number.filter(|number| (1..=lines).contains(number)) {
            issue.insert("line".into(), number.into());
        }
    }
}

/// Reads a whole number that is written as 12.0.
fn whole_number(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|it| it.fract() == 0.0 && (0.0..1e9).contains(it))?;
    format!("{number:.0}").parse().ok()
}

/// Returns Markdown without the one fence around all of it, if there is one.
pub fn as_markdown(answer: &str) -> &str {
    unfenced(answer, &["markdown", "md", ""])
}

/// Returns new text of some code without the fence around all of it, which agents add even if they are told not to. Without
/// a fence, white space at both ends stays.
pub fn as_code<'a>(answer: &'a str, language: &str) -> &'a str {
    let inner = unfenced(answer, &[]);
    let said = answer.trim_start().trim_start_matches('`').split('\n').next().unwrap_or_default().trim();
    // A fence within Markdown is the code itself.
    let is_the_code = matches!(language, "markdown" | "md") && said != language;
    if inner.len() == answer.trim().len() || is_the_code { answer } else { inner }
}

/// Returns the new text of some code in an answer in words: the whole answer, the text in a fence around all of it,
/// or the only block between words.
///
/// # Errors
/// The reason why the new text cannot be found, as a part of a sentence.
pub fn code_in<'a>(answer: &'a str, language: &str, sent: &str) -> Result<&'a str, String> {
    let inner = as_code(answer, language);
    let has_fences = |text: &str| text.lines().any(|line| line.starts_with("```"));
    let is_its_own = matches!(language, "markdown" | "md") || has_fences(sent);
    if inner.len() != answer.len() || is_its_own || !has_fences(answer) {
        return Ok(inner);
    }
    let (mut blocks, mut open, mut at) = (Vec::new(), None, 0);
    for line in answer.split_inclusive('\n') {
        let bare = line.trim_end();
        let ticks = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        match open {
            Some((from, fence)) if bare == fence => {
                blocks.push(&answer[from..at]);
                open = None;
            }
            None if ticks.len() >= 3 => open = Some((at + line.len(), ticks)),
            _ => {}
        }
        at += line.len();
    }
    match (&blocks[..], open) {
        (_, Some(_)) => Err("the answer ends within a block of code".into()),
        ([block], None) => Ok(block),
        _ => Err(format!("the answer has {} blocks of code with words between them", blocks.len())),
    }
}

/// Does the same for an answer in JSON of [`code_schema`]; an answer that is no JSON at all is read as words.
///
/// # Errors
/// As for [`code_in`].
pub fn code_of_json(answer: &str, language: &str, sent: &str) -> Result<String, String> {
    match reply_as(answer, "code", &code_schema(), |value| value) {
        Ok(value) => Ok(value.get("code").and_then(Value::as_str).unwrap_or_default().to_owned()),
        Err(why) if answer.trim_start().starts_with(['{', '[']) => {
            Err(format!("the answer is not in the asked form: {why}"))
        }
        Err(_) => code_in(answer, language, sent).map(str::to_owned),
    }
}

/// Returns the text that one fence encloses; without `allowed`, the fence may have any word.
fn unfenced<'a>(answer: &'a str, allowed: &[&str]) -> &'a str {
    let text = answer.trim();
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks < 3 {
        return text;
    }
    let (fence, rest) = text.split_at(ticks);
    let Some((word, body)) = rest.split_once('\n') else { return text };
    let fits = allowed.is_empty() || allowed.contains(&word.trim());
    let Some(inner) =
        body.strip_suffix(fence).filter(|inner| fits && (inner.is_empty() || inner.ends_with('\n')))
    else {
        return text;
    };
    // Two blocks with words between them are not one block.
    let closed_before = inner.lines().any(|line| line.trim_end() == fence);
    if closed_before { text } else { inner }
}
