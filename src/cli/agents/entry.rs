//! Chooses the form in which the daemon starts a program and speaks with it, and makes the entry for it.

use provost_config::Reader;

use super::access::Chosen;
use super::find::{self, Found};
use super::presets::{Form, Mode, Preset};
use super::{Add, file};
use crate::cli_error::USAGE;
use crate::{CliError, RepoContext};
use provost_base::AgentId;

/// The form in which the daemon starts a program and speaks with it.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) preset: &'static Preset,
    pub(super) form: &'static Form,
    /// The mode that sets how much the program asks, in the Agent Client Protocol.
    pub(super) mode: Option<&'static Mode>,
    /// The reason why the daemon does not use that protocol; `None` if it does.
    pub(super) why: Option<String>,
}

impl Choice {
    /// Chooses the Agent Client Protocol, or a start for each task if the person asks for that or the adapter is missing.
    ///
    /// # Errors
    /// When this program cannot do what the person asks for.
    pub(super) fn make(here: &RepoContext, preset: &'static Preset, asked: &Add) -> Result<Self, CliError> {
        match (why_one_shot(here, preset, asked), &preset.one_shot) {
            (Some(why), Some(form)) if !asked.asks => Ok(Self { preset, form, mode: None, why: Some(why) }),
            (Some(why), Some(_)) => {
                Err(CliError::of(format!("{} can be had to ask only through its adapter", preset.title))
                    .because(why)
                    .next(format!("{}; then: provost agent add {} --asks", preset.acp.install, preset.name)))
            }
            (Some(_), None) => Err(CliError::of(format!("{} has no form for one task here", preset.title))
                .next(format!("provost agent add {}", preset.name))
                .with_code(USAGE)),
            (None, _) => Ok(Self { preset, form: &preset.acp, mode: Some(mode(preset, asked)?), why: None }),
        }
    }

    /// Checks whether the daemon speaks the Agent Client Protocol with the program.
    pub(super) fn is_acp(&self) -> bool {
        self.form.stream == Reader::Acp
    }

    /// Returns the name of the started program, to which its version belongs: the program, or its adapter, which has versions of its own.
    pub(super) fn started(&self) -> String {
        let title = self.preset.title;
        let is_program = self.preset.one_shot.as_ref().is_none_or(|it| it.program == self.form.program);
        if is_program {
            title.to_owned()
        } else {
            format!("{title} through its adapter {}", self.form.program)
        }
    }

    /// Describes the choice for people.
    pub(super) fn in_words(&self) -> String {
        match &self.why {
            Some(why) => format!("for one task at a time, since {why}"),
            None => "in the Agent Client Protocol (ACP)".into(),
        }
    }
}

/// Returns the reason why the daemon starts the program for each task; `None` if it speaks the protocol.
fn why_one_shot(here: &RepoContext, preset: &Preset, asked: &Add) -> Option<String> {
    if asked.one_shot {
        return Some("--one-shot says so".into());
    }
    let acp = &preset.acp;
    let needs_adapter = preset.one_shot.as_ref().is_some_and(|it| it.program != acp.program);
    match &asked.at {
        _ if !needs_adapter => None,
        Some(path) if find::is_of(here, path, acp) => None,
        Some(_) => Some(format!("--program names the program and not its adapter `{}`", acp.program)),
        None if find::is_there(here, acp.program) => None,
        None => Some(format!(
            "no folder of PATH has its adapter `{}` ({}; then provost agent remove, and add it again)",
            acp.program, acp.install
        )),
    }
}

fn mode(preset: &'static Preset, asked: &Add) -> Result<&'static Mode, CliError> {
    if !asked.asks {
        return Ok(&preset.works);
    }
    preset.asks.as_ref().ok_or_else(|| {
        CliError::of(format!("{} cannot be had to ask", preset.title))
            .because("what it asks about is in a file of its own settings")
            .next(format!("provost agent add {}: it works in a copy, and you apply its changes", preset.name))
            .with_code(USAGE)
    })
}

/// Returns a text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list(texts: impl IntoIterator<Item = String>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|it| quoted(&it)).collect();
    format!("[{}]", texts.join(", "))
}

fn command(choice: &Choice, found: &Found, model: Option<&str>) -> Vec<String> {
    let Choice { preset, form, mode, .. } = choice;
    let shell = form.shell.map(|script| ["/bin/sh", "-c", script, preset.name]);
    let mut command: Vec<String> = shell.into_iter().flatten().map(str::to_owned).collect();
    command.extend(found.command.iter().cloned());
    let of_mode = mode.map_or(&[][..], |it| it.args);
    let of_model = if model.is_some() { form.model_args } else { &[] };
    command.extend(form.args.iter().chain(of_mode).chain(of_model).map(|it| (*it).to_owned()));
    command
}

fn variables(choice: &Choice, model: Option<&str>) -> Vec<String> {
    let of_mode = choice.mode.map_or(&[][..], |it| it.env);
    let of_model = choice.form.model_in.zip(model);
    let all = choice.form.env.iter().chain(of_mode).copied().chain(of_model);
    all.map(|(name, value)| format!("{name} = {}", quoted(value))).collect()
}

/// Returns the whole entry.
pub(super) fn text(
    id: &AgentId,
    choice: &Choice,
    found: &Found,
    chosen: &Chosen,
    model: Option<&str>,
) -> String {
    let Choice { preset, form, mode, .. } = choice;
    let stream = match form.stream {
        Reader::Lines => "lines",
        Reader::Claude => "claude-json",
        Reader::Codex => "codex-jsonl",
        Reader::Gemini => "gemini-json",
        Reader::OpenCode => "opencode-json",
        Reader::Copilot => "copilot-json",
        Reader::Acp => "acp",
    };
    let version = found.version.as_deref().unwrap_or("unknown");
    let mut lines = vec![
        format!(
            "{}, for {} {version}; `provost agent remove {id}` takes it out.",
            file::OURS,
            choice.started()
        ),
        "[[agent]]".into(),
        format!("id = {}", quoted(id.as_str())),
        format!("name = {}", quoted(preset.title)),
        format!("command = {}", list(command(choice, found, model))),
        format!("stream = {}", quoted(stream)),
    ];
    let mut add = |key: &str, value: Option<String>| lines.extend(value.map(|it| format!("{key} = {it}")));
    add("acp_mode", mode.and_then(|it| it.id).map(quoted));
    add("acp_sign_in", form.sign_in.map(quoted));
    add("network", Some(quoted("hosts")));
    add("hosts", Some(list([chosen.delivery.upstream.authority().to_string()])));
    add("secrets", Some(list([chosen.secret.clone()])));
    add("read_only", (!found.read_only.is_empty()).then(|| list(found.read_only.iter().cloned())));
    add("default_model", model.map(quoted));
    let pairs = variables(choice, model);
    add("env", (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", "))));
    lines.join("\n") + "\n"
}
