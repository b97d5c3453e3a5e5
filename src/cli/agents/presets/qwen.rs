//! Qwen Code, which speaks ACP itself.

use super::{Access, BEARER, Form, Mode, OPENAI_COMPATIBLE, Preset, Tried};
use provost_config::Reader;

const SETTINGS: &str = "mkdir -p \"$HOME/.qwen\" && printf %s '{\"privacy\":{\"usageStatisticsEnabled\":false},\
     \"general\":{\"enableAutoUpdate\":false}}' > \"$HOME/.qwen/settings.json\" && exec \"$@\"";

const INSTALL: &str = "npm install -g @qwen-code/qwen-code";

pub(super) const PRESET: Preset = Preset {
    name: "qwen",
    title: "Qwen Code",
    needs_model: true,
    acp: Form {
        program: "qwen",
        install: INSTALL,
        tried: Tried::Real("0.24.4"),
        args: &["--acp", "--auth-type", "openai"],
        model_args: &["--model", "{model}"],
        model_in: Some("OPENAI_MODEL"),
        shell: Some(SETTINGS),
        stream: Reader::Acp,
        env: &[],
        sign_in: Some("openai"),
    },
    one_shot: Some(Form {
        program: "qwen",
        install: INSTALL,
        tried: Tried::Real("0.24.4"),
        args: &["-o", "stream-json", "--approval-mode", "yolo", "--auth-type", "openai"],
        model_args: &["--model", "{model}"],
        model_in: None,
        shell: Some(SETTINGS),
        stream: Reader::Claude,
        env: &[],
        sign_in: None,
    }),
    works: Mode::named("yolo"),
    asks: Some(Mode::named("default")),
    access: &[
        Access {
            secret: "dashscope",
            title: "a key of Alibaba's Model Studio",
            variables: &["DASHSCOPE_API_KEY"],
            login: None,
            upstream: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            header: "authorization",
            prefix: BEARER,
            base_url: &["OPENAI_BASE_URL"],
            token: &["OPENAI_API_KEY"],
        },
        OPENAI_COMPATIBLE[0],
        OPENAI_COMPATIBLE[1],
    ],
};
