//! Copilot CLI, which speaks ACP itself.

use super::{Access, BEARER, Form, Mode, OPENAI, Preset, Tried};
use provost_config::Reader;

const QUIET: &[(&str, &str)] =
    &[("COPILOT_AUTO_UPDATE", "false"), ("COPILOT_OFFLINE", "true"), ("COPILOT_PROVIDER_TYPE", "openai")];

const INSTALL: &str = "npm install -g @github/copilot";

pub(super) const PRESET: Preset = Preset {
    name: "copilot",
    title: "Copilot CLI",
    needs_model: true,
    acp: Form {
        program: "copilot",
        install: INSTALL,
        tried: Tried::Real("1.0.102"),
        args: &["--acp", "--disable-client-telemetry"],
        model_args: &["--model", "{model}"],
        model_in: Some("COPILOT_MODEL"),
        shell: None,
        stream: Reader::Acp,
        env: QUIET,
        sign_in: None,
    },
    one_shot: Some(Form {
        program: "copilot",
        install: INSTALL,
        tried: Tried::Real("1.0.102"),
        args: &[
            "-p",
            "{prompt}",
            "--output-format",
            "json",
            "--allow-all-tools",
            "--disable-client-telemetry",
        ],
        model_args: &["--model", "{model}"],
        model_in: None,
        shell: None,
        stream: Reader::Copilot,
        env: QUIET,
        sign_in: None,
    }),
    works: Mode { id: Some(AGENT), env: &[], args: &["--allow-all-tools"] },
    asks: Some(Mode::named(AGENT)),
    access: &[Access {
        secret: "copilot-provider",
        title: "a key of a service that speaks OpenAI's protocol (a GitHub log-in cannot be kept out of the jail)",
        variables: &["COPILOT_PROVIDER_API_KEY", "OPENAI_API_KEY"],
        login: None,
        upstream: OPENAI,
        header: "authorization",
        prefix: BEARER,
        base_url: &["COPILOT_PROVIDER_BASE_URL"],
        token: &["COPILOT_PROVIDER_API_KEY"],
    }],
};

/// The agent mode. Copilot names its modes by whole addresses.
const AGENT: &str = "https://agentclientprotocol.com/protocol/session-modes#agent";
