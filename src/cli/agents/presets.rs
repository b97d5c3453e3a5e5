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

/// A program, and everything that an entry for it needs.
#[derive(Debug)]
pub(super) struct Preset {
    /// The name to type, and the default name of the agent.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// Whether it works only if the entry names a model.
    pub(super) needs_model: bool,
    /// The way in which it speaks the Agent Client Protocol; the preferred form.
    pub(super) acp: Form,
    /// The way in which it does one task and ends.
    pub(super) one_shot: Option<Form>,
    /// The settings with which it works in a copy and asks nothing.
    pub(super) works: Mode,
    /// The settings with which it asks before it writes and runs; `None` if it cannot ask.
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
    /// Arguments that name the model, if the entry names one.
    pub(super) model_args: &'static [&'static str],
    /// The variable that names the model, if the entry names one.
    pub(super) model_in: Option<&'static str>,
    /// Lines of a shell that run before it, in the jail, if variables are not enough: `"$@"` is the command.
    pub(super) shell: Option<&'static str>,
    /// The reader of its standard output.
    pub(super) stream: Reader,
    /// Variables that switch off telemetry, updates and its own sandbox.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// The method by which it signs in, if it demands that in spite of its key.
    pub(super) sign_in: Option<&'static str>,
}

/// The program with which a form was tried.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tried {
    /// The real program of this version, against a stand-in for the model's service.
    Real(&'static str),
    /// No version: the form follows the program's own documents.
    Documents,
}

impl Tried {
    /// Describes it for people, after the words "it was ".
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
    /// The variables that select it.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// The arguments that select it.
    pub(super) args: &'static [&'static str],
}

impl Mode {
    const fn named(id: &'static str) -> Self {
        Self { id: Some(id), env: &[], args: &[] }
    }
}

/// A credential for a model's service, and the way in which the program uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The name of the secret in the vault.
    pub(super) secret: &'static str,
    /// The credential's name, for people.
    pub(super) title: &'static str,
    /// Variables in which people keep the credential.
    pub(super) variables: &'static [&'static str],
    /// The log-in of the program itself, if the credential comes from there.
    pub(super) login: Option<Login>,
    /// The address to which requests go.
    pub(super) upstream: &'static str,
    /// The header that carries the credential.
    pub(super) header: &'static str,
    /// The text before the credential in the header.
    pub(super) prefix: &'static str,
    /// Variables in which the program looks for the address.
    pub(super) base_url: &'static [&'static str],
    /// Variables in which the program looks for the key, and finds the token of its run.
    pub(super) token: &'static [&'static str],
}

/// A file with a log-in that its program renews.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login {
    /// The variable that names the file's folder.
    pub(super) folder_in: &'static str,
    /// The file's folder below the home, if that variable is not set.
    pub(super) folder: &'static str,
    /// The file's name.
    pub(super) file: &'static str,
    /// The member with the token, as a JSON pointer.
    pub(super) token: &'static str,
    /// The member with the time at which the token ends, in milliseconds; `None` if the token itself states it.
    pub(super) expires: Option<&'static str>,
    /// A further header of each request, and the member with its value.
    pub(super) header: Option<(&'static str, &'static str)>,
    /// The command that logs in.
    pub(super) command: &'static str,
    /// The request with which the daemon renews the log-in; `None` if the program's own request is not known.
    pub(super) renewal: Option<Renewed>,
}

/// The request that renews a log-in, and its place in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewed {
    /// The address of the request.
    pub(super) endpoint: &'static str,
    /// The program's own name at its service.
    pub(super) client_id: &'static str,
    /// The member that holds the tokens, as a JSON pointer.
    pub(super) tokens: &'static str,
    /// The member with the time of the last renewal.
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

/// All known programs.
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

/// Returns the row of a name.
pub(super) fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name).copied()
}
