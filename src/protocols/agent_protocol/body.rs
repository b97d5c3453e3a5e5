//! The data of requests: a JSON object, member by member, and the parameters of a query.

use serde_json::{Map, Value};

use super::error::AgentProtocolError;
use super::route::decoded;
use provost_base::{AgentId, Json};

/// The members of a request. A list, or a body whose type is not JSON, counts as empty.
#[derive(Default)]
pub(super) struct Members(Map<String, Value>);

impl Members {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// A body that is not JSON, or neither an object nor a list.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, AgentProtocolError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let invalid = || AgentProtocolError::bad("Invalid JSON");
        let text = std::str::from_utf8(bytes).map_err(|_| invalid())?;
        match Json::parse(text).map_err(|_| invalid())?.value() {
            Value::Object(members) => Ok(Self(members)),
            Value::Array(_) => Ok(Self::default()),
            _ => Err(invalid()),
        }
    }

    /// Checks that all of these members are present, and neither empty nor zero.
    ///
    /// # Errors
    /// `says`, if one of them is not.
    pub(super) fn require(&self, names: &[&str], says: &str) -> Result<(), AgentProtocolError> {
        let is_nothing = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            _ => false,
        };
        let missing = |name: &&&str| self.0.get(**name).is_none_or(is_nothing);
        if names.iter().any(|name| missing(&name)) { Err(AgentProtocolError::bad(says)) } else { Ok(()) }
    }

    /// Returns a member as text, if it is present.
    ///
    /// # Errors
    /// A value that is no text.
    pub(super) fn text(&self, name: &str) -> Result<Option<Box<str>>, AgentProtocolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().into())),
            Some(_) => Err(AgentProtocolError::bad(format!("{name} must be a string"))),
        }
    }

    /// Returns a text that `require` has checked.
    pub(super) fn given(&self, name: &str) -> Result<Box<str>, AgentProtocolError> {
        Ok(self.text(name)?.unwrap_or_default())
    }

    /// Returns a list of texts; `None` if it is absent.
    ///
    /// # Errors
    /// A value that is no list of texts.
    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<Box<str>>>, AgentProtocolError> {
        let bad = || AgentProtocolError::bad(format!("{name} must be an array of strings"));
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .map(|it| it.as_str().map(Into::into).ok_or_else(bad))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(bad()),
        }
    }

    /// Returns the name of an agent that `require` has checked.
    ///
    /// # Errors
    /// A text that is no such name.
    pub(super) fn agent(&self, name: &str) -> Result<AgentId, AgentProtocolError> {
        let text = self.given(name)?;
        AgentId::parse(&text).map_err(|err| AgentProtocolError::bad(format!("{name} {err}")))
    }

    /// Returns one of these words, if the member is present.
    ///
    /// # Errors
    /// A text that is none of the words; the error lists them.
    pub(super) fn one_of<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, AgentProtocolError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let known = super::map::read(words, &text);
        let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        known.map(Some).ok_or_else(|| AgentProtocolError::bad(format!("{name} must be one of {}", all())))
    }

    /// Returns any value; an empty object if the member is absent.
    pub(super) fn anything(&self, name: &str) -> Json {
        match self.0.get(name) {
            None | Some(Value::Null) => Json::from_value(&Value::Object(Map::new())),
            Some(value) => Json::from_value(value),
        }
    }

    /// Returns a nested member, if it is a text.
    pub(super) fn text_in(&self, name: &str, inner: &str) -> Option<&str> {
        self.inside(name, inner)?.as_str()
    }

    /// Returns a nested member of any type.
    pub(super) fn inside(&self, name: &str, inner: &str) -> Option<&Value> {
        self.0.get(name)?.get(inner)
    }
}

/// The parameters of a query, in their order.
#[derive(Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of a target after `?`; without one, there are no parameters.
    ///
    /// # Errors
    /// A parameter that is not well-formed.
    pub(super) fn read(query: Option<&str>) -> Result<Self, AgentProtocolError> {
        let pairs = query.unwrap_or_default().split('&').filter(|it| !it.is_empty());
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decoded(&text.replace('+', " "));
            Ok((plain(name)?, plain(value)?))
        };
        pairs.map(read).collect::<Result<_, AgentProtocolError>>().map(Self)
    }

    /// Returns a parameter; an empty one counts as absent. `Err` if it was given several times.
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, Repeated> {
        let mut found = self.0.iter().filter(|(it, _)| it == name).map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(Repeated),
            (value, None) => Ok(value.filter(|it| !it.is_empty())),
        }
    }
}

/// A parameter that was given several times.
pub(super) struct Repeated;
