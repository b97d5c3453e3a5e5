//! An agent's questions: a form reaches a person as a question, and the person's answer goes back. ACP v1, "Elicitation".
//!
//! A form without a field asks for yes or no. The answer to a single field is its value; the answer to several fields names each:
//! `name=value; name=value`, a line for each, or a JSON object. Jailed agents cannot have an address opened (`url`): a person would sign in
//! at a place that an agent has chosen.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use provost_domain::Task;
use provost_jail::plain_text;

/// Gets an answer to a question of a task's agent; `None` if no answer came in time. Dropping the future withdraws the question.
pub type Asker =
    Arc<dyn Fn(&Task, String) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// The most fields that a form may have to be asked.
const FIELDS_MAX: usize = 8;

/// A form that an agent sends.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The question, for people.
    pub(super) question: String,
    /// The form's fields; a form without fields only asks for yes or no.
    fields: Vec<Field>,
}

/// A field of a form.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    schema: Value,
    /// Whether the field must have a value.
    required: bool,
}

impl Form {
    /// Reads a request. `None` if it is no form, has too many fields, or has two fields whose names differ only in upper and lower case.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let is_form = params.get("mode").is_none_or(|it| it == "form");
        let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
        let required = params.pointer("/requestedSchema/required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
        let fields: Vec<Field> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| Field {
                name: name.clone(),
                schema: schema.clone(),
                required: is_required(name),
            })
            .collect();
        let is_plain = |it: &Field| !it.name.is_empty() && !it.name.contains(['=', ';', '\n']);
        let names: BTreeSet<String> = fields.iter().map(|it| it.name.to_lowercase()).collect();
        let several_are_plain =
            fields.len() < 2 || (fields.iter().all(is_plain) && names.len() == fields.len());
        if !is_form || fields.len() > FIELDS_MAX || !several_are_plain {
            return None;
        }
        let message = params["message"].as_str().filter(|it| !it.trim().is_empty())?;
        let mut question = plain_text(message);
        match fields.as_slice() {
            [] => question.push_str(" (one of: yes, no)"),
            [one] => question.push_str(&one.in_words(&one.name)),
            several => {
                for it in several {
                    let title = it.in_words("");
                    let may = if it.required { "" } else { " (may be left out)" };
                    question.push_str(&format!("\n{}:{title}{may}", plain_text(&it.name)));
                }
                let names: Vec<String> = several.iter().map(|it| format!("{}=…", it.name)).collect();
                question.push_str(&format!("\nAnswer: {}", plain_text(&names.join("; "))));
            }
        }
        Some(Self { question, fields })
    }

    /// Returns the result for the agent. An answer that does not fit the form declines the question.
    pub(super) fn result(&self, answer: Option<&str>) -> Value {
        let content = answer.map(str::trim).and_then(|answer| match self.fields.as_slice() {
            [] => {
                let is_yes = matches!(answer.to_ascii_lowercase().as_str(), "yes" | "y" | "ok" | "true");
                is_yes.then(Map::new)
            }
            [one] => Some(Map::from_iter([(one.name.clone(), value(&one.schema, answer)?)])),
            several => content(several, answer),
        });
        match content {
            Some(content) => json!({ "action": "accept", "content": content }),
            None => json!({ "action": "decline" }),
        }
    }
}

impl Field {
    /// Returns the words about a field for people: its title, unless that is empty, and its choices.
    fn in_words(&self, name: &str) -> String {
        let title = self.schema["title"].as_str().or(self.schema["description"].as_str()).unwrap_or(name);
        let mut words = if title.is_empty() { String::new() } else { format!(" [{}]", plain_text(title)) };
        let known = choices(&self.schema);
        if !known.is_empty() {
            let many = if is_list(&self.schema) { "any of, with commas" } else { "one of" };
            words.push_str(&format!(" ({many}: {})", plain_text(&known.join(", "))));
        }
        words
    }
}

/// Returns the values of several fields; `None` if a required field is missing, or a name is not in the form or occurs twice.
fn content(fields: &[Field], answer: &str) -> Option<Map<String, Value>> {
    let given = match serde_json::from_str::<Map<String, Value>>(answer) {
        Ok(given) => {
            given.into_iter().map(|(name, it)| Some((name, text_of(&it)?))).collect::<Option<Vec<_>>>()?
        }
        Err(_) => parts(fields, answer)?,
    };
    let mut content = Map::new();
    for (name, text) in given {
        let field = fields.iter().find(|it| it.name.eq_ignore_ascii_case(name.trim()))?;
        if content.insert(field.name.clone(), value(&field.schema, text.trim())?).is_some() {
            return None;
        }
    }
    let is_there = |it: &Field| !it.required || content.contains_key(&it.name);
    (!content.is_empty() && fields.iter().all(is_there)).then_some(content)
}

/// Splits `name=value` at semicolons or lines. A semicolon within a value stays if no field's name and `=` follow it.
fn parts(fields: &[Field], answer: &str) -> Option<Vec<(String, String)>> {
    let named = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let is_field = fields.iter().any(|it| it.name.eq_ignore_ascii_case(name.trim()));
        is_field.then(|| (name.trim().to_owned(), value.to_owned()))
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for line in answer.lines().filter(|it| !it.trim().is_empty()) {
        for (at, part) in line.split(';').enumerate() {
            match (named(part), found.last_mut()) {
                (Some(it), _) => found.push(it),
                (None, Some(last)) if at > 0 && !part.trim().is_empty() => {
                    last.1.push(';');
                    last.1.push_str(part);
                }
                (None, _) if part.trim().is_empty() => {}
                (None, _) => return None,
            }
        }
    }
    Some(found)
}

/// Returns a JSON value as a person would type it.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(items.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(",")),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Object(_) => None,
    }
}

fn is_list(schema: &Value) -> bool {
    schema["type"] == "array"
}

/// Returns the choices that a field offers, as people see them.
fn choices(schema: &Value) -> Vec<String> {
    let of = if is_list(schema) { &schema["items"] } else { schema };
    let titled = ["oneOf", "anyOf"].into_iter().flat_map(|it| of[it].as_array().into_iter().flatten());
    let titled = titled.filter_map(|it| it["const"].as_str());
    let plain = of["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let known: Vec<String> = titled.chain(plain).map(str::to_owned).collect();
    match schema["type"].as_str() {
        Some("boolean") if known.is_empty() => vec!["yes".into(), "no".into()],
        _ => known,
    }
}

/// Returns an answer as the field's value; `None` if it does not fit.
fn value(schema: &Value, answer: &str) -> Option<Value> {
    let known = choices(schema);
    match schema["type"].as_str() {
        Some("boolean") => match answer.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" => Some(true.into()),
            "no" | "n" | "false" => Some(false.into()),
            _ => None,
        },
        Some("integer") => answer.parse::<i64>().ok().filter(|it| fits(schema, *it as f64)).map(Value::from),
        Some("number") => {
            answer.parse::<f64>().ok().filter(|it| it.is_finite() && fits(schema, *it)).map(Value::from)
        }
        Some("array") => {
            let items: Vec<&str> = answer.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
            let all_known = !known.is_empty() && items.iter().all(|it| known.iter().any(|known| known == it));
            let count = items.len() as u64;
            let is_enough = schema["minItems"].as_u64().is_none_or(|it| count >= it)
                && schema["maxItems"].as_u64().is_none_or(|it| count <= it);
            (all_known && is_enough).then(|| json!(items))
        }
        Some("string") | None if known.is_empty() => {
            let count = answer.chars().count() as u64;
            let is_enough = schema["minLength"].as_u64().is_none_or(|it| count >= it)
                && schema["maxLength"].as_u64().is_none_or(|it| count <= it);
            is_enough.then(|| answer.into())
        }
        Some("string") | None if known.iter().any(|it| it == answer) => Some(answer.into()),
        _ => None,
    }
}

/// Checks whether a number is within the bounds of its field.
fn fits(schema: &Value, number: f64) -> bool {
    schema["minimum"].as_f64().is_none_or(|it| number >= it)
        && schema["maximum"].as_f64().is_none_or(|it| number <= it)
}
