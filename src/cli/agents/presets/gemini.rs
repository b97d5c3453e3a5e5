//! Gemini CLI, which speaks ACP itself.

use super::{Access, Form, Mode, Preset, Tried};
use provost_config::Reader;

/// Gemini CLI accepts a key only if a setting selects that.
const SETTINGS: &str = "mkdir -p \"$HOME/.gemini\" && printf %s '{\"security\":{\"auth\":{\"selectedType\":\"gemini-api-key\"}},\
     \"privacy\":{\"usageStatisticsEnabled\":false},\"general\":{\"enableAutoUpdate\":false},\
     \"telemetry\":{\"enabled\":false}}' > \"$HOME/.gemini/settings.json\" && exec \"$@\"";

const INSTALL: &str = "npm install -g @google/gemini-cli";

pub(super) const PRESET: Preset = Preset {
    name: "gemini",
    title: "Gemini CLI",
    needs_model: false,
    acp: Form {
        program: "gemini",
        install: INSTALL,
        tried: Tried::Real("0.61.0"),
        args: &["--acp", "--skip-trust"],
        model_args: &["--model", "{model}"],
        model_in: None,
        shell: Some(SETTINGS),
        stream: Reader::Acp,
        env: &[],
        sign_in: Some("gemini-api-key"),
    },
    one_shot: Some(Form {
        program: "gemini",
        install: INSTALL,
        tried: Tried::Real("0.61.0"),
        args: &["-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"],
        model_args: &["--model", "{model}"],
        model_in: None,
        shell: Some(SETTINGS),
        stream: Reader::Gemini,
        env: &[],
        sign_in: None,
    }),
    works: Mode::named("yolo"),
    asks: Some(Mode::named("default")),
    access: &[Access {
        secret: "gemini",
        title: "a key of the Gemini API",
        variables: &["GEMINI_API_KEY"],
        login: None,
        upstream: "https://generativelanguage.googleapis.com",
        header: "x-goog-api-key",
        prefix: "",
        base_url: &["GOOGLE_GEMINI_BASE_URL"],
        token: &["GEMINI_API_KEY"],
    }],
};
