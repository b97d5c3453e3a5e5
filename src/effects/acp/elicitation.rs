//! Questions of an agent's: a form with one field or none reaches a person as a question, and its answer goes back. ACP v1,
//! "Elicitation".

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

use provost_domain::Task;
use provost_jail::plain_text;

/// Has a question of a task's agent answered; `None` where no answer has come in time. Dropped, it is not waited for any more.
pub type Asker =
    Arc<dyn Fn(&Task, String) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// A form that is asked.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The question, for people.
    pub(super) question: String,
    /// The name and the schema of its field; `None` for one that only asks for yes or no.
    field: Option<(String, Value)>,
}

impl Form {
    /// Reads a request. `None` for what is no form with at most one field.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let is_form = params.get("mode").is_none_or(|it| it == "form");
        let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
        let fields = properties.map_or(0, serde_json::Map::len);
        if !is_form || fields > 1 {
            return None;
        }
        let field = properties.and_then(|it| it.iter().next()).map(|(name, it)| (name.clone(), it.clone()));
        let message = params["message"].as_str().filter(|it| !it.trim().is_empty())?;
        let mut question = plain_text(message);
        let known =
            field.as_ref().map_or_else(|| vec!["yes".into(), "no".into()], |(_, schema)| choices(schema));
        if let Some((name, schema)) = &field {
            let title = schema["title"].as_str().or(schema["description"].as_str()).unwrap_or(name);
            question.push_str(&format!(" [{}]", plain_text(title)));
        }
        if !known.is_empty() {
            question.push_str(&format!(" (one of: {})", plain_text(&known.join(", "))));
        }
        Some(Self { question, field })
    }

    /// The result for the agent. An answer that the form does not take declines it.
    pub(super) fn result(&self, answer: Option<&str>) -> Value {
        let declined = json!({ "action": "decline" });
        let Some(answer) = answer.map(str::trim) else { return declined };
        let Some((name, schema)) = &self.field else {
            let is_yes = matches!(answer.to_ascii_lowercase().as_str(), "yes" | "y" | "ok" | "true");
            return if is_yes { json!({ "action": "accept", "content": {} }) } else { declined };
        };
        match value(schema, answer) {
            Some(value) => json!({ "action": "accept", "content": { name.as_str(): value } }),
            None => declined,
        }
    }
}

/// The choices that a form offers, as people see them.
fn choices(schema: &Value) -> Vec<String> {
    let titled = schema["oneOf"].as_array().into_iter().flatten().filter_map(|it| it["const"].as_str());
    let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let known: Vec<String> = titled.chain(plain).map(str::to_owned).collect();
    match schema["type"].as_str() {
        Some("boolean") if known.is_empty() => vec!["yes".into(), "no".into()],
        _ => known,
    }
}

/// An answer as the field's value.
fn value(schema: &Value, answer: &str) -> Option<Value> {
    let known = choices(schema);
    match schema["type"].as_str() {
        Some("boolean") => match answer.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" => Some(true.into()),
            "no" | "n" | "false" => Some(false.into()),
            _ => None,
        },
        Some("integer") => answer.parse::<i64>().ok().map(Value::from),
        Some("number") => answer.parse::<f64>().ok().filter(|it| it.is_finite()).map(Value::from),
        Some("string") | None if known.is_empty() || known.iter().any(|it| it == answer) => {
            Some(answer.into())
        }
        _ => None,
    }
}
