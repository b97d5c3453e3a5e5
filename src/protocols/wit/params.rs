//! Reads and checks the parameters of a request, member by member, and reports all faults at once. wit, 4.

use serde_json::value::RawValue;

use super::map::WitError;
use super::wire::{self, Faults, members, string};
use provost_auth::peer::process_of_ours;
use provost_base::limits::{DESCRIPTION_LEN_MAX, ID_LEN_MAX, TTL_MAX_MS};
use provost_base::{AgentId, RepoPath, SymbolPath, Ttl, WITH_BACKSLASH, check_look};
use provost_domain::ProcessMark;
use provost_service::Checkouts;

/// The parameters of a request, with the checkouts for its absolute paths.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) params: Option<&'a RawValue>,
    pub(super) checkouts: &'a Checkouts,
}

/// A reader of a request's parameters. It collects the faults, and [`Params::all`] returns them.
pub(super) struct Params<'a, const N: usize> {
    names: [&'static str; N],
    values: [Option<&'a RawValue>; N],
    checkouts: &'a Checkouts,
    faults: Faults,
}

impl<'a, const N: usize> Params<'a, N> {
    /// Finds members by name. A value that is no object is an error.
    pub(super) fn of(given: Given<'a>, names: [&'static str; N]) -> Result<Self, WitError> {
        let values = given.params.and_then(|it| members(it, names));
        let values = values.ok_or_else(|| {
            WitError::params(Faults { form_errors: vec!["must be an object".into()], ..Faults::default() })
        })?;
        Ok(Self { names, values, checkouts: given.checkouts, faults: Faults::default() })
    }

    /// Does the same for a query, which may have no parameters: all of its members are filters.
    pub(super) fn of_question(given: Given<'a>, names: [&'static str; N]) -> Result<Self, WitError> {
        match given.params {
            Some(it) if it.get() != "null" => Self::of(given, names),
            _ => Ok(Self { names, values: [None; N], checkouts: given.checkouts, faults: Faults::default() }),
        }
    }

    /// Returns the parts of a request, if there was no fault at all.
    pub(super) fn all<T>(self, parts: Option<T>) -> Result<T, WitError> {
        match parts {
            Some(parts) if self.faults.field_errors.is_empty() => Ok(parts),
            _ => Err(WitError::params(self.faults)),
        }
    }

    fn value(&self, name: &'static str) -> Option<&'a RawValue> {
        let at = self.names.iter().position(|it| *it == name);
        self.values[at.expect("a member is read that was found by name")]
    }

    /// Notes a fault of a member; the result `None` takes the place of its value.
    pub(super) fn wrong<T>(&mut self, name: &'static str, why: impl Into<String>) -> Option<T> {
        let fields = &mut self.faults.field_errors;
        match fields.iter_mut().find(|(it, _)| *it == name) {
            Some((_, texts)) => texts.push(why.into()),
            None => fields.push((name, vec![why.into()])),
        }
        None
    }

    /// Returns a required member.
    fn required(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.value(name).or_else(|| self.wrong(name, "is missing"))
    }

    /// Returns a required string, which may be empty.
    pub(super) fn any_text(&mut self, name: &'static str) -> Option<String> {
        let value = self.required(name)?;
        string(value).or_else(|| self.wrong(name, format!("must be a string, not {}", kind(value))))
    }

    /// Returns a required string that is not empty.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.any_text(name).filter(|it| !it.is_empty()).or_else(|| self.empty(name))
    }

    fn empty<T>(&mut self, name: &'static str) -> Option<T> {
        let known = self.faults.field_errors.iter().any(|(it, _)| *it == name);
        if known { None } else { self.wrong(name, "must not be empty") }
    }

    /// Returns an optional string; `Some(None)` if it is absent.
    pub(super) fn filter(&mut self, name: &'static str) -> Option<Option<String>> {
        match self.value(name) {
            None => Some(None),
            Some(_) => self.any_text(name).map(Some),
        }
    }

    /// Returns an optional path or symbol, relative to the top; `Some(None)` if it is absent.
    pub(super) fn place(&mut self, name: &'static str) -> Option<Option<String>> {
        let checkouts = self.checkouts;
        Some(self.filter(name)?.map(|it| checkouts.inside(&it).into_owned()))
    }

    /// Returns a text for people, within a bound.
    fn words(&mut self, name: &'static str, len_max: usize) -> Option<Box<str>> {
        let text = self.text(name)?;
        if text.len() > len_max {
            return self.wrong(name, format!("is longer than {len_max} bytes"));
        }
        Some(text.into())
    }

    /// Returns a name for people.
    pub(super) fn name(&mut self, name: &'static str) -> Option<Box<str>> {
        let text = self.words(name, ID_LEN_MAX)?;
        if text.chars().any(char::is_control) {
            return self.wrong(name, "contains a control character");
        }
        if let Err(unclear) = check_look(&text) {
            return self.wrong(name, unclear.to_string());
        }
        Some(text)
    }

    /// Returns the description of a change; it must not be empty, and has a bound.
    pub(super) fn description(&mut self, name: &'static str) -> Option<Box<str>> {
        self.words(name, DESCRIPTION_LEN_MAX)
    }

    /// Returns a reason; `Some(None)` if it is absent.
    pub(super) fn reason(&mut self, name: &'static str) -> Option<Option<Box<str>>> {
        match self.value(name) {
            None => Some(None),
            Some(_) => self.words(name, DESCRIPTION_LEN_MAX).map(Some),
        }
    }

    /// Returns the name of the calling session, which is an agent's name.
    pub(super) fn session(&mut self, name: &'static str) -> Option<AgentId> {
        let text = self.text(name)?;
        AgentId::parse(&text).map_err(|why| self.wrong::<()>(name, why.to_string())).ok()
    }

    /// Returns a symbol, in the file's one spelling and as it was written. An empty one has two faults, as with wit.
    pub(super) fn symbol(&mut self, name: &'static str) -> Option<(SymbolPath, Box<str>)> {
        let text = self.any_text(name)?;
        if text.is_empty() {
            self.empty::<()>(name);
        }
        if self.checkouts.has_with_backslash(&text) {
            return self.wrong(name, WITH_BACKSLASH);
        }
        let text = self.checkouts.inside(&text);
        match SymbolPath::parse(&text) {
            Ok(at) => Some((at, text.as_ref().into())),
            Err(why) => self.wrong(name, why.to_string()),
        }
    }

    /// Returns a required boolean.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.required(name)?;
        let flag = serde_json::from_str(value.get()).ok();
        flag.or_else(|| self.wrong(name, format!("must be true or false, not {}", kind(value))))
    }

    /// Returns an optional boolean.
    pub(super) fn switch(&mut self, name: &'static str) -> Option<bool> {
        if self.value(name).is_some() { self.flag(name) } else { Some(false) }
    }

    /// Returns a duration in milliseconds: any number above zero. Fractions are dropped; the longest is a week.
    pub(super) fn duration(&mut self, name: &'static str) -> Option<Option<Ttl>> {
        let Some(value) = self.value(name) else { return Some(None) };
        let Some(number) = number(value) else {
            return self.wrong(name, format!("must be a number, not {}", kind(value)));
        };
        if !number.is_finite() {
            return self.wrong(name, "must be finite");
        }
        let ms = number.floor();
        if ms < 1.0 {
            return self.wrong(name, "must be at least 1");
        }
        let ms = if ms > f64::from(TTL_MAX_MS) { u64::from(TTL_MAX_MS) } else { ms as u64 };
        Some(Ttl::from_millis(ms))
    }

    /// Returns how long to wait, in milliseconds; zero means not to wait.
    pub(super) fn wait(&mut self, name: &'static str) -> Option<Option<Ttl>> {
        match self.value(name).and_then(number) {
            Some(0.0) => Some(None),
            _ => self.duration(name),
        }
    }

    /// Returns an optional whole number.
    pub(super) fn integer(&mut self, name: &'static str) -> Option<Option<u64>> {
        let Some(value) = self.value(name) else { return Some(None) };
        match serde_json::from_str(value.get()) {
            Ok(number) => Some(Some(number)),
            Err(_) => self.wrong(name, format!("must be a whole number from 0 upwards, not {}", kind(value))),
        }
    }

    /// Returns a process of this user, with whose end something will end.
    pub(super) fn process(&mut self, name: &'static str) -> Option<Option<ProcessMark>> {
        let Some(number) = self.integer(name)? else { return Some(None) };
        let process = u32::try_from(number).ok().and_then(process_of_ours);
        match process {
            Some(process) => Some(Some(process)),
            None => self.wrong(name, "is not the number of a process of yours that runs"),
        }
    }

    /// Returns an optional list; `read` parses each element, and its error is the fault.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        most: usize,
        read: impl Fn(&'a RawValue) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let Some(value) = self.value(name) else { return Some(Vec::new()) };
        let Some(elements) = elements(value, most) else {
            return self.wrong(name, format!("must be an array, not {}", kind(value)));
        };
        if elements.len() > most {
            return self.wrong(name, format!("has more than {most} elements"));
        }
        let mut found = Vec::with_capacity(elements.len());
        for (at, element) in elements.into_iter().enumerate() {
            match read(element) {
                Ok(it) => found.push(it),
                // The first fault is enough; a thousand would not say more.
                Err(why) => return self.wrong(name, format!("[{at}] {why}")),
            }
        }
        Some(found)
    }

    /// Returns a required list in the same way.
    pub(super) fn full_list<T>(
        &mut self,
        name: &'static str,
        most: usize,
        read: impl Fn(&'a RawValue) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.required(name)?;
        self.list(name, most, read)
    }
}

/// Reads a path of the repository, with its original spelling.
pub(super) fn path(value: &RawValue, checkouts: &Checkouts) -> Result<(RepoPath, Box<str>), String> {
    let text = filled(value)?;
    if checkouts.has_with_backslash(&text) {
        return Err(WITH_BACKSLASH.into());
    }
    let text = checkouts.inside(&text);
    let path = RepoPath::parse(&text).map_err(|why| why.to_string())?;
    Ok((path, text.as_ref().into()))
}

/// Reads a string that is not empty.
fn filled(value: &RawValue) -> Result<String, String> {
    let text = string(value).ok_or_else(|| format!("must be a string, not {}", kind(value)))?;
    if text.is_empty() { Err("must not be empty".into()) } else { Ok(text) }
}

/// Returns the elements of an array; at most one more than `most`.
fn elements(value: &RawValue, most: usize) -> Option<Vec<&RawValue>> {
    let mut reader = serde_json::Deserializer::from_str(value.get());
    serde::Deserializer::deserialize_seq(&mut reader, wire::Elements(most)).ok()
}

/// Reads a number as JavaScript does: one that is too large is infinite.
fn number(value: &RawValue) -> Option<f64> {
    let text = value.get();
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns the kind of a value, for the caller that sent a wrong one.
pub(super) fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
