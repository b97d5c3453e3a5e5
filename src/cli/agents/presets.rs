//! The table of programs that `provost agent add` knows: a row each, in a file each.
//!
//! A row has up to two forms: the way in which the program speaks ACP, itself or through an adapter, and the way in
//! which it does one task and ends. Programs change weekly: a form names the version that it was tried with, and
//! `provost agent try` reports what is missing on this machine.

mod claude;
mod codex;
mod copilot;
mod documented;
mod gemini;
mod goose;
mod opencode;
mod qwen;

use provost_config::Reader;

/// A program, and all that an entry for it needs.
#[derive(Debug)]
pub(super) struct Preset {
    /// The name to type, and the default name of the agent.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// Whether it works only with a model that is named.
    pub(super) needs_model: bool,
    /// The way in which it speaks the Agent Client Protocol; the preferred form.
    pub(super) acp: Form,
    /// The way in which it does one task and ends.
    pub(super) one_shot: Option<Form>,
    /// The settings with which it works in a copy and asks nothing.
    pub(super) works: Mode,
    /// The settings with which it asks before it writes and runs; `None` where it cannot ask.
    pub(super) asks: Option<Mode>,
    /// The ways in which it gets access to a model, the preferred one first.
    pub(super) access: &'static [Access],
}

/// A way to start a program.
#[derive(Debug)]
pub(super) struct Form {
    /// The name of the executable: the program's, or its adapter's.
    pub(super) program: &'static str,
    /// The command that installs it.
    pub(super) install: &'static str,
    /// The version that it was tried with.
    pub(super) tried: Tried,
    /// Its arguments.
    pub(super) args: &'static [&'static str],
    /// Arguments that name the model, where one is named.
    pub(super) model_args: &'static [&'static str],
    /// The variable that names the model, where one is named.
    pub(super) model_in: Option<&'static str>,
    /// Lines of a shell that run before it, in the jail, where a variable alone does not do: `"$@"` is the command.
    pub(super) shell: Option<&'static str>,
    /// How its standard output is read.
    pub(super) stream: Reader,
    /// Variables that switch off telemetry, updates and its own sandbox.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// The way by which it signs in, where it demands that in spite of its key.
    pub(super) sign_in: Option<&'static str>,
}

/// What a form was tried with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tried {
    /// The real program of this version, against a stand-in for the model's service.
    Real(&'static str),
    /// No version: the form follows the program's own documents.
    Documents,
}

impl Tried {
    /// For people, after "it was ".
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Real(version) => format!("tried with {version}"),
            Self::Documents => "written from its documents and tried with no version".into(),
        }
    }

    /// The version that it was tried with.
    pub(super) fn version(self) -> Option<&'static str> {
        match self {
            Self::Real(version) => Some(version),
            Self::Documents => None,
        }
    }
}

/// The settings for how much a program asks, in the Agent Client Protocol.
#[derive(Debug)]
pub(super) struct Mode {
    /// The session mode.
    pub(super) id: Option<&'static str>,
    /// Variables.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Arguments.
    pub(super) args: &'static [&'static str],
}

impl Mode {
    const fn named(id: &'static str) -> Self {
        Self { id: Some(id), env: &[], args: &[] }
    }
}

/// A way to a model's service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The name of the secret in the vault.
    pub(super) secret: &'static str,
    /// What it is, for people.
    pub(super) title: &'static str,
    /// Variables in which people keep it.
    pub(super) variables: &'static [&'static str],
    /// The log-in of the program itself, if that has it.
    pub(super) login: Option<Login>,
    /// The address to which requests go.
    pub(super) upstream: &'static str,
    /// The header that carries it.
    pub(super) header: &'static str,
    /// The text before it in the header.
    pub(super) prefix: &'static str,
    /// Variables in which the program looks for the address.
    pub(super) base_url: &'static [&'static str],
    /// Variables in which the program looks for the key, and finds the token of its run.
    pub(super) token: &'static [&'static str],
}

/// A file with a log-in that its program renews.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login {
    /// The variable that names its folder.
    pub(super) folder_in: &'static str,
    /// Its folder below the home, without that variable.
    pub(super) folder: &'static str,
    /// Its name.
    pub(super) file: &'static str,
    /// The member with the token, as a JSON pointer.
    pub(super) token: &'static str,
    /// The member with the time at which the token ends, in milliseconds; without one the token itself says it.
    pub(super) expires: Option<&'static str>,
    /// A header that goes along, and the member with its value.
    pub(super) header: Option<(&'static str, &'static str)>,
    /// The command that logs in.
    pub(super) command: &'static str,
    /// How the daemon renews it, where that was seen.
    pub(super) renewal: Option<Renewed>,
}

/// How a log-in is renewed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewed {
    /// Where the request goes.
    pub(super) endpoint: &'static str,
    /// The program's own name at its service.
    pub(super) client_id: &'static str,
    /// The folder of its tokens, as a JSON pointer.
    pub(super) tokens: &'static str,
    /// The member that says when it was renewed.
    pub(super) renewed_at: &'static str,
}

const BEARER: &str = "Bearer ";
const OPENAI: &str = "https://api.openai.com/v1";

/// Services that speak OpenAI's protocol.
const OPENAI_COMPATIBLE: [Access; 2] = [
    Access {
        secret: "openai",
        title: "a key of OpenAI's API",
        variables: &["OPENAI_API_KEY"],
        login: None,
        upstream: OPENAI,
        header: "authorization",
        prefix: BEARER,
        base_url: &["OPENAI_BASE_URL"],
        token: &["OPENAI_API_KEY"],
    },
    Access {
        secret: "openrouter",
        title: "a key of OpenRouter",
        variables: &["OPENROUTER_API_KEY"],
        login: None,
        upstream: "https://openrouter.ai/api/v1",
        header: "authorization",
        prefix: BEARER,
        base_url: &["OPENAI_BASE_URL"],
        token: &["OPENAI_API_KEY"],
    },
];

/// Every program.
pub(super) const PRESETS: &[&Preset] = &[
    &claude::PRESET,
    &codex::PRESET,
    &gemini::PRESET,
    &opencode::PRESET,
    &copilot::PRESET,
    &qwen::PRESET,
    &goose::PRESET,
    &documented::CURSOR,
];

/// The row of a name.
pub(super) fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name).copied()
}
