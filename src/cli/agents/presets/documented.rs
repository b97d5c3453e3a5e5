//! A program whose row follows its documents: it is distributed as a binary that no lock file can name, and was tried
//! with no version.

use super::{Access, BEARER, Form, Mode, Preset, Tried};
use provost_config::Reader;

pub(super) const CURSOR: Preset = Preset {
    name: "cursor",
    title: "Cursor CLI",
    needs_model: false,
    acp: Form {
        program: "cursor-agent",
        install: "install it as its documents say",
        tried: Tried::Documents,
        args: &[],
        model_args: &[],
        model_in: None,
        shell: Some("exec \"$@\" -e \"$CURSOR_ENDPOINT\" acp"),
        stream: Reader::Acp,
        env: &[],
        sign_in: None,
    },
    one_shot: None,
    works: Mode { id: None, env: &[], args: &[] },
    // Cursor keeps its lists of allowed actions in a file of its own.
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
