//! The mode in which an agent asks before it acts, and the model that it works with. ACP v1, "Session modes" and "Session
//! config options": an agent offers the first or the second, or both.

use serde_json::{Value, json};

use super::clip;

/// The name of the asking mode of the agents that have one (Claude Code, Gemini, Qwen Code).
const ASKING: &str = "default";
/// The most modes that an error names, and the longest name in bytes.
const NAMED: usize = 20;
const NAME_LEN: usize = 64;

/// The modes and options that an agent offers when its session has begun.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// The ids of the agent's `modes`.
    modes: Vec<String>,
    /// The config options, by category: id and values.
    options: Vec<ConfigOption>,
}

#[derive(Debug)]
struct ConfigOption {
    id: String,
    category: String,
    values: Vec<String>,
}

/// The mode that the daemon sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chosen {
    /// The mode's id, among `modes` or the values of the option.
    pub(super) id: String,
    /// The config option that sets the mode; `None` for one of `modes`.
    option: Option<String>,
}

impl Modes {
    /// Reads the answer to `session/new`.
    pub(super) fn of(made: &Value) -> Self {
        let modes = made.pointer("/modes/availableModes").and_then(Value::as_array);
        let modes = modes.into_iter().flatten().filter_map(|it| text(it, "id")).collect();
        let options = made["configOptions"].as_array();
        let option = |it: &Value| {
            let (id, category) = (text(it, "id")?, text(it, "category")?);
            Some(ConfigOption { id, category, values: values(it["options"].as_array()?) })
        };
        Self { modes, options: options.into_iter().flatten().filter_map(option).collect() }
    }

    /// Returns the mode to set: the entry's mode, or else the asking mode; `None` if the agent does not offer it.
    ///
    /// # Errors
    /// The modes that the agent offers, if the entry names another one.
    pub(super) fn asking(&self, named: Option<&str>) -> Result<Option<Chosen>, String> {
        let wanted = named.unwrap_or(ASKING);
        if self.modes.iter().any(|it| it == wanted) {
            return Ok(Some(Chosen { id: wanted.to_owned(), option: None }));
        }
        let of_modes = self.options.iter().filter(|it| it.category == "mode");
        if let Some(option) = of_modes.clone().find(|it| it.values.iter().any(|it| it == wanted)) {
            return Ok(Some(Chosen { id: wanted.to_owned(), option: Some(option.id.clone()) }));
        }
        let Some(named) = named else { return Ok(None) };
        let there = self.modes.iter().chain(of_modes.flat_map(|it| &it.values));
        let there: Vec<&str> = there.take(NAMED).map(|it| clip(it, NAME_LEN)).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        Err(format!(": it has no mode '{named}'; it has: {there}. Set `acp_mode` in its entry"))
    }

    /// Returns the config option for the model and its value, if the agent offers the wanted model.
    pub(super) fn model(&self, wanted: Option<&str>) -> Option<(&str, String)> {
        let wanted = wanted?;
        let option = self
            .options
            .iter()
            .find(|it| it.category == "model" && it.values.iter().any(|it| it == wanted))?;
        Some((&option.id, wanted.to_owned()))
    }
}

impl Chosen {
    /// Returns the method that sets the mode.
    pub(super) fn method(&self) -> &'static str {
        if self.option.is_some() { "session/set_config_option" } else { "session/set_mode" }
    }

    pub(super) fn params(&self, session: &str) -> Value {
        match &self.option {
            Some(option) => json!({ "sessionId": session, "configId": option, "value": self.id }),
            None => json!({ "sessionId": session, "modeId": self.id }),
        }
    }

    /// Returns the mode that an update reports, if it is not this mode.
    pub(super) fn left_for<'a>(&self, update: &'a Value) -> Option<&'a str> {
        let now = match (update["sessionUpdate"].as_str()?, &self.option) {
            ("current_mode_update", None) => update["currentModeId"].as_str(),
            ("config_option_update", _) => {
                let options = update["configOptions"].as_array()?;
                let is_it = |it: &&Value| match &self.option {
                    Some(option) => it["id"] == option.as_str(),
                    None => it["category"] == "mode",
                };
                options.iter().find(is_it).and_then(|it| it["currentValue"].as_str())
            }
            _ => None,
        };
        now.filter(|now| *now != self.id)
    }
}

/// Returns the mode that an update reports, for an agent whose mode the daemon has not set.
pub(super) fn told(update: &Value) -> Option<&str> {
    match update["sessionUpdate"].as_str()? {
        "current_mode_update" => update["currentModeId"].as_str(),
        "config_option_update" => {
            let options = update["configOptions"].as_array()?;
            options.iter().find(|it| it["category"] == "mode").and_then(|it| it["currentValue"].as_str())
        }
        _ => None,
    }
}

/// Returns the values of a selection, also if they are in groups.
fn values(options: &[Value]) -> Vec<String> {
    let of_group = |it: &Value| it["options"].as_array().cloned().unwrap_or_else(|| vec![it.clone()]);
    options.iter().flat_map(of_group).filter_map(|it| text(&it, "value")).collect()
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}
