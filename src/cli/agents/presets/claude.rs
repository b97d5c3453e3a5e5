//! Claude Code, and its adapter for ACP.

use super::{Access, BEARER, Form, Login, Mode, Preset, Tried};
use provost_config::Reader;

const QUIET: &[(&str, &str)] = &[
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    // Ten retries of a refused key take five minutes; six take half a minute.
    ("CLAUDE_CODE_MAX_RETRIES", "6"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
];

pub(super) const PRESET: Preset = Preset {
    name: "claude",
    title: "Claude Code",
    needs_model: false,
    acp: Form {
        program: "claude-agent-acp",
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        tried: Tried::Real("0.101.0"),
        args: &[],
        model_args: &[],
        model_in: Some("ANTHROPIC_MODEL"),
        shell: None,
        stream: Reader::Acp,
        env: QUIET,
        sign_in: None,
    },
    one_shot: Some(Form {
        program: "claude",
        install: "npm install -g @anthropic-ai/claude-code",
        tried: Tried::Real("2.1.330"),
        // The jail is the boundary: no person is there to answer a question for permission.
        args: &[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
        ],
        model_args: &["--model", "{model}"],
        model_in: None,
        shell: None,
        stream: Reader::Claude,
        env: QUIET,
        sign_in: None,
    }),
    works: Mode::named("bypassPermissions"),
    asks: Some(Mode::named("default")),
    access: &[
        Access {
            secret: "anthropic",
            title: "a key of Anthropic's API",
            variables: &["ANTHROPIC_API_KEY"],
            login: None,
            upstream: "https://api.anthropic.com",
            header: "x-api-key",
            prefix: "",
            base_url: &["ANTHROPIC_BASE_URL"],
            token: &["ANTHROPIC_API_KEY"],
        },
        Access {
            secret: "claude-subscription",
            title: "a subscription's token, as `claude setup-token` prints it",
            variables: &["CLAUDE_CODE_OAUTH_TOKEN"],
            login: None,
            upstream: "https://api.anthropic.com",
            header: "authorization",
            prefix: BEARER,
            base_url: &["ANTHROPIC_BASE_URL"],
            token: &["CLAUDE_CODE_OAUTH_TOKEN"],
        },
        Access {
            secret: "claude-login",
            title: "the log-in of Claude Code itself",
            variables: &[],
            login: Some(Login {
                folder_in: "CLAUDE_CONFIG_DIR",
                folder: ".claude",
                file: ".credentials.json",
                token: "/claudeAiOauth/accessToken",
                expires: Some("/claudeAiOauth/expiresAt"),
                header: None,
                command: "claude /login",
                renewal: None,
            }),
            upstream: "https://api.anthropic.com",
            header: "authorization",
            prefix: BEARER,
            base_url: &["ANTHROPIC_BASE_URL"],
            token: &["CLAUDE_CODE_OAUTH_TOKEN"],
        },
    ],
};
