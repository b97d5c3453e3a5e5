//! Goose, which speaks ACP itself.

use super::{Access, BEARER, Form, Mode, Preset, Tried};
use provost_config::Reader;

pub(super) const PRESET: Preset = Preset {
    name: "goose",
    title: "Goose",
    needs_model: true,
    acp: Form {
        program: "goose",
        install: "install it as its documents say",
        tried: Tried::Real("1.37.0"),
        args: &["acp"],
        model_args: &[],
        model_in: Some("GOOSE_MODEL"),
        shell: None,
        stream: Reader::Acp,
        env: &[("GOOSE_DISABLE_KEYRING", "1"), ("GOOSE_PROVIDER", "openai"), ("GOOSE_TELEMETRY_OFF", "1")],
        sign_in: None,
    },
    one_shot: None,
    // Goose begins in the mode of the variable; the daemon watches the session's mode.
    works: Mode { id: Some("auto"), env: &[("GOOSE_MODE", "auto")], args: &[] },
    asks: Some(Mode { id: Some("approve"), env: &[("GOOSE_MODE", "approve")], args: &[] }),
    access: &[Access {
        secret: "goose-openai",
        title: "a key of OpenAI's API",
        variables: &["OPENAI_API_KEY"],
        login: None,
        // Goose itself adds the version to the address.
        upstream: "https://api.openai.com",
        header: "authorization",
        prefix: BEARER,
        base_url: &["OPENAI_HOST"],
        token: &["OPENAI_API_KEY"],
    }],
};
