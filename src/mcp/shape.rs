//! The JSON Schemas of the arguments and answers of tools, short and readable for every host: no references, no
//! unions with `null`, no formats of Provost's own.
//!
//! A member that may be absent is not required. An answer never has it as `null`: [`fit`] removes such members, so
//! that hosts that validate answers against the schema accept them.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Keywords that tell a host nothing: names of Provost's types, formats that JSON does not know, defaults.
const BESIDE: [&str; 5] = ["$schema", "title", "format", "default", "minimum"];

/// Returns the schema of a tool's arguments. Each member has a description; that of the whole is the tool's.
pub(super) fn taken<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = of::<T>(SchemaSettings::draft2020_12());
    schema.remove("description");
    schema.insert("additionalProperties".into(), false.into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Arc::new(schema)
}

/// Returns the schema of the arguments of a tool with another's name: its clients may send more members than it knows.
pub(super) fn taken_by_alias<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = (*taken::<T>()).clone();
    schema.remove("additionalProperties");
    Arc::new(schema)
}

/// Returns the schema of a tool's answer: its members and their types. The answer's text says what they mean.
pub(super) fn answered<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = Value::Object(of::<T>(SchemaSettings::draft2020_12().for_serialize()));
    without_words(&mut schema);
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

fn of<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let generator = settings.with(|it| it.inline_subschemas = true).into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::default(),
    }
}

/// Simplifies a schema, and returns whether it allowed `null`.
fn plain(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.retain(|name, _| !BESIDE.contains(&name.as_str()));
    let mut may_be_null = of_several(members);
    if let Some(Value::Array(types)) = members.get_mut("type") {
        let all = types.len();
        types.retain(|it| it != "null");
        may_be_null |= types.len() < all;
        if let [one] = types.as_slice() {
            let one = one.clone();
            members.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|it| !it.is_null());
    }
    let mut absent = Vec::new();
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (name, its) in properties.iter_mut() {
            if plain(its) {
                absent.push(name.clone());
            }
        }
    }
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| !absent.iter().any(|it| name == it));
        if required.is_empty() {
            members.remove("required");
        }
    }
    for inner in ["items", "additionalProperties"] {
        members.get_mut(inner).map(plain);
    }
    if let Some(Value::Array(items)) = members.get_mut("prefixItems") {
        for item in items {
            let _ = plain(item);
        }
    }
    may_be_null
}

/// Simplifies a choice of schemas: words become an `enum`, and a schema or `null` becomes that schema.
fn of_several(members: &mut JsonObject) -> bool {
    let mut may_be_null = false;
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(mut several)) = members.remove(keyword) else { continue };
        let all = several.len();
        several.retain(|it| it["type"] != "null");
        may_be_null |= several.len() < all;
        for one in &mut several {
            let _ = plain(one);
        }
        if several.iter().all(|it| !words(it).is_empty()) {
            let words: Vec<Value> = several.iter().flat_map(words).cloned().collect();
            members.insert("type".into(), "string".into());
            members.insert("enum".into(), words.into());
        } else if let [Value::Object(one)] = several.as_slice() {
            let described = members.get("description").cloned();
            members.extend(one.clone());
            members.extend(described.map(|it| ("description".to_owned(), it)));
        } else {
            members.insert(keyword.into(), several.into());
        }
    }
    may_be_null
}

/// Returns the words of a schema that allows only these.
fn words(schema: &Value) -> &[Value] {
    match (&schema["const"], &schema["enum"]) {
        (Value::String(_), _) => std::slice::from_ref(&schema["const"]),
        (_, Value::Array(words)) => words,
        _ => &[],
    }
}

fn without_words(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    members.remove("description");
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(without_words);
    }
    for inner in ["items", "additionalProperties"] {
        members.get_mut(inner).map(without_words);
    }
    for inner in ["prefixItems", "anyOf", "oneOf"] {
        if let Some(Value::Array(several)) = members.get_mut(inner) {
            several.iter_mut().for_each(without_words);
        }
    }
}

/// Removes absent members from an answer. Data that the schema does not describe belongs to other parties, and
/// stays as it is.
pub(super) fn fit(answer: &mut Value, schema: &Value) {
    match (answer, &schema["properties"], &schema["items"]) {
        (Value::Object(members), Value::Object(properties), _) => {
            let typed = |name: &String| properties.get(name).is_some_and(|it| it.get("type").is_some());
            members.retain(|name, value| !(value.is_null() && typed(name)));
            for (name, value) in members {
                if let Some(its) = properties.get(name) {
                    fit(value, its);
                }
            }
        }
        (Value::Array(rows), _, its @ Value::Object(_)) => rows.iter_mut().for_each(|row| fit(row, its)),
        _ => {}
    }
}

/// Returns a member of a call that the tool does not know, and the names that it knows.
pub(super) fn unknown<'a>(arguments: &'a JsonObject, taken: &JsonObject) -> Option<(&'a str, String)> {
    let known = taken.get("properties")?.as_object()?;
    let strange = arguments.keys().find(|it| !known.contains_key(*it))?;
    let all: Vec<&str> = known.keys().map(String::as_str).collect();
    Some((strange, if all.is_empty() { "none".into() } else { all.join(", ") }))
}
