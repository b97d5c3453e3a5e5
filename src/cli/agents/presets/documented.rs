//! Programs whose rows are what their documents say: they come as binaries from nowhere that a lock file can name, and were
//! tried with no version.

use super::{Access, BEARER, Form, Mode, Preset, Tried};
use provost_config::Reader;

const FORM: Form = Form {
    program: "",
    install: "install it as its documents say",
    tried: Tried::Documents,
    args: &["acp"],
    model_args: &[],
    model_in: None,
    shell: None,
    stream: Reader::Acp,
    env: &[],
    sign_in: None,
};

pub(super) const GOOSE: Preset = Preset {
    name: "goose",
    title: "Goose",
    needs_model: true,
    acp: Form {
        program: "goose",
        model_in: Some("GOOSE_MODEL"),
        env: &[("GOOSE_DISABLE_KEYRING", "1"), ("GOOSE_PROVIDER", "openai")],
        ..FORM
    },
    one_shot: None,
    works: Mode { id: None, env: &[("GOOSE_MODE", "auto")], args: &[] },
    asks: Some(Mode { id: None, env: &[("GOOSE_MODE", "approve")], args: &[] }),
    access: &[Access {
        secret: "goose-openai",
        title: "a key of OpenAI's API",
        variables: &["OPENAI_API_KEY"],
        login: None,
        // It adds the version to the address itself.
        upstream: "https://api.openai.com",
        header: "authorization",
        prefix: BEARER,
        base_url: &["OPENAI_HOST"],
        token: &["OPENAI_API_KEY"],
    }],
};

pub(super) const CURSOR: Preset = Preset {
    name: "cursor",
    title: "Cursor CLI",
    needs_model: false,
    acp: Form {
        program: "cursor-agent",
        args: &[],
        shell: Some("exec \"$@\" -e \"$CURSOR_ENDPOINT\" acp"),
        ..FORM
    },
    one_shot: None,
    works: Mode { id: None, env: &[], args: &[] },
    // Its lists of what is allowed are a file of its own.
    asks: None,
    access: &[Access {
        secret: "cursor",
        title: "a key of Cursor's API",
        variables: &["CURSOR_API_KEY"],
        login: None,
        upstream: "https://api2.cursor.sh",
        header: "authorization",
        prefix: BEARER,
        base_url: &["CURSOR_ENDPOINT"],
        token: &["CURSOR_API_KEY"],
    }],
};
