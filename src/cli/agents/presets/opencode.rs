//! OpenCode, which speaks ACP itself.

use super::{Form, Mode, OPENAI_COMPATIBLE, Preset, Tried};
use provost_config::Reader;

/// One address and one model, in the place of OpenCode's list of providers.
const CONFIG: &str = "{\"autoupdate\":false,\"share\":\"disabled\",\"model\":\"provost/{env:DEVIT_MODEL_USED}\",\
     \"provider\":{\"provost\":{\"npm\":\"@ai-sdk/openai-compatible\",\"name\":\"provost\",\"options\":\
     {\"baseURL\":\"{env:OPENAI_BASE_URL}\",\"apiKey\":\"{env:OPENAI_API_KEY}\"},\
     \"models\":{\"{env:DEVIT_MODEL_USED}\":{}}}}}";

const QUIET: &[(&str, &str)] = &[
    ("OPENCODE_CONFIG_CONTENT", CONFIG),
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    // The jail's stand-in for the missing setting would stop OpenCode, and an existing setting could name another address.
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
    ("OPENCODE_DISABLE_SHARE", "1"),
];

const INSTALL: &str = "npm install -g opencode-ai";

pub(super) const PRESET: Preset = Preset {
    name: "opencode",
    title: "OpenCode",
    needs_model: true,
    acp: Form {
        program: "opencode",
        install: INSTALL,
        tried: Tried::Real("1.18.33"),
        args: &["acp"],
        model_args: &[],
        model_in: None,
        shell: None,
        stream: Reader::Acp,
        env: QUIET,
        sign_in: None,
    },
    one_shot: Some(Form {
        program: "opencode",
        install: INSTALL,
        tried: Tried::Real("1.18.33"),
        args: &["run", "--format", "json", "--auto"],
        model_args: &["--model", "provost/{model}"],
        model_in: None,
        shell: None,
        stream: Reader::OpenCode,
        env: QUIET,
        sign_in: None,
    }),
    // OpenCode allows everything in each of its modes, unless this variable forbids it.
    works: Mode { id: Some("build"), env: &[("OPENCODE_PERMISSION", "{\"*\":\"allow\"}")], args: &[] },
    asks: Some(Mode {
        id: Some("build"),
        env: &[("OPENCODE_PERMISSION", "{\"edit\":\"ask\",\"bash\":\"ask\",\"webfetch\":\"ask\"}")],
        args: &[],
    }),
    access: &OPENAI_COMPATIBLE,
};
