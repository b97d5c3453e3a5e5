//! The table of programs that `provost agent add` knows: a row each.
//!
//! A row was tried with the version that it names, against a stand-in for the model's service. Programs change weekly: a
//! row says what was seen, and `provost agent try` says what is missing on this machine.

use provost_config::Reader;

/// A program, and all that an entry for it needs.
#[derive(Debug)]
pub(super) struct Preset {
    /// What is typed, and the default name of the agent.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// The name of its executable.
    pub(super) program: &'static str,
    /// The command that installs it.
    pub(super) install: &'static str,
    /// The version that this row was tried with.
    pub(super) tried: &'static str,
    /// Its arguments for one task without questions.
    pub(super) args: &'static [&'static str],
    /// Arguments that name the model, where one is named.
    pub(super) model_args: &'static [&'static str],
    /// Whether it works only with a model that is named.
    pub(super) needs_model: bool,
    /// Lines of a shell that run before it, in the jail, where a variable alone does not do: `"$@"` is the command.
    pub(super) shell: Option<&'static str>,
    /// How its standard output is read.
    pub(super) stream: Reader,
    /// Variables that switch off telemetry, updates and its own sandbox.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// The ways in which it gets access to a model, the preferred one first.
    pub(super) access: &'static [Access],
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
    /// Where requests go.
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

const CLAUDE: Preset = Preset {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code",
    tried: "2.1.330",
    // The jail is the boundary: no person is there to answer a question for permission.
    args: &["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions"],
    model_args: &["--model", "{model}"],
    needs_model: false,
    shell: None,
    stream: Reader::Claude,
    env: &[
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // Ten retries of a refused key take five minutes; six take half a minute.
        ("CLAUDE_CODE_MAX_RETRIES", "6"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_TELEMETRY", "1"),
    ],
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

const CODEX: Preset = Preset {
    name: "codex",
    title: "Codex",
    program: "codex",
    install: "npm install -g @openai/codex",
    tried: "0.169.0",
    // Its own sandbox fails inside of a jail, where no further user namespace can be made.
    args: &["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
    model_args: &["--model", "{model}"],
    needs_model: false,
    // It reads its address from its configuration alone.
    shell: Some(
        "mkdir -p \"$HOME/.codex\" && exec \"$@\" -c check_for_update_on_startup=false -c analytics.enabled=false \
         -c 'model_provider=\"provost\"' -c 'model_providers.provost.name=\"provost\"' \
         -c \"model_providers.provost.base_url=\\\"$OPENAI_BASE_URL\\\"\" \
         -c 'model_providers.provost.env_key=\"OPENAI_API_KEY\"' -c 'model_providers.provost.wire_api=\"responses\"' -",
    ),
    stream: Reader::Codex,
    env: &[],
    access: &[
        Access {
            secret: "openai",
            title: "a key of OpenAI's API",
            variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
            login: None,
            upstream: OPENAI,
            header: "authorization",
            prefix: BEARER,
            base_url: &["OPENAI_BASE_URL"],
            token: &["OPENAI_API_KEY"],
        },
        Access {
            secret: "codex-login",
            title: "the log-in of Codex itself",
            variables: &[],
            login: Some(Login {
                folder_in: "CODEX_HOME",
                folder: ".codex",
                file: "auth.json",
                token: "/tokens/access_token",
                expires: None,
                header: Some(("chatgpt-account-id", "/tokens/account_id")),
                command: "codex login",
                renewal: Some(Renewed {
                    endpoint: "https://auth.openai.com/oauth/token",
                    client_id: "app_EMoamEEZ73f0CkXaXp7hrann",
                    tokens: "/tokens",
                    renewed_at: "/last_refresh",
                }),
            }),
            upstream: "https://chatgpt.com/backend-api/codex",
            header: "authorization",
            prefix: BEARER,
            base_url: &["OPENAI_BASE_URL"],
            token: &["OPENAI_API_KEY"],
        },
    ],
};

const GEMINI: Preset = Preset {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    install: "npm install -g @google/gemini-cli",
    tried: "0.61.0",
    args: &["-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"],
    model_args: &["--model", "{model}"],
    needs_model: false,
    // It takes no key without a setting that says so.
    shell: Some(
        "mkdir -p \"$HOME/.gemini\" && printf %s '{\"security\":{\"auth\":{\"selectedType\":\"gemini-api-key\"}},\
         \"privacy\":{\"usageStatisticsEnabled\":false},\"general\":{\"enableAutoUpdate\":false},\
         \"telemetry\":{\"enabled\":false}}' > \"$HOME/.gemini/settings.json\" && exec \"$@\"",
    ),
    stream: Reader::Gemini,
    env: &[],
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

/// One address and one model, in the place of OpenCode's list of providers.
const OPENCODE_CONFIG: &str = "{\"autoupdate\":false,\"share\":\"disabled\",\"model\":\"provost/{env:DEVIT_MODEL_USED}\",\
     \"provider\":{\"provost\":{\"npm\":\"@ai-sdk/openai-compatible\",\"name\":\"provost\",\"options\":\
     {\"baseURL\":\"{env:OPENAI_BASE_URL}\",\"apiKey\":\"{env:OPENAI_API_KEY}\"},\
     \"models\":{\"{env:DEVIT_MODEL_USED}\":{}}}}}";

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

const OPENCODE: Preset = Preset {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    install: "npm install -g opencode-ai",
    tried: "1.18.33",
    args: &["run", "--format", "json", "--auto"],
    model_args: &["--model", "provost/{model}"],
    needs_model: true,
    shell: None,
    stream: Reader::OpenCode,
    env: &[
        ("OPENCODE_CONFIG_CONTENT", OPENCODE_CONFIG),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        // A stand-in lies where the jail keeps a setting from being made, and stops it; one that is there could name another address.
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
        ("OPENCODE_DISABLE_SHARE", "1"),
    ],
    access: &OPENAI_COMPATIBLE,
};

const COPILOT: Preset = Preset {
    name: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    install: "npm install -g @github/copilot",
    tried: "1.0.102",
    args: &["-p", "{prompt}", "--output-format", "json", "--allow-all-tools", "--disable-client-telemetry"],
    model_args: &["--model", "{model}"],
    needs_model: true,
    shell: None,
    stream: Reader::Copilot,
    env: &[
        ("COPILOT_AUTO_UPDATE", "false"),
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_PROVIDER_TYPE", "openai"),
    ],
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

const QWEN: Preset = Preset {
    name: "qwen",
    title: "Qwen Code",
    program: "qwen",
    install: "npm install -g @qwen-code/qwen-code",
    tried: "0.24.4",
    args: &["-o", "stream-json", "--approval-mode", "yolo", "--auth-type", "openai"],
    model_args: &["--model", "{model}"],
    needs_model: true,
    shell: Some(
        "mkdir -p \"$HOME/.qwen\" && printf %s '{\"privacy\":{\"usageStatisticsEnabled\":false},\
         \"general\":{\"enableAutoUpdate\":false}}' > \"$HOME/.qwen/settings.json\" && exec \"$@\"",
    ),
    stream: Reader::Claude,
    env: &[],
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

/// Every program.
pub(super) const PRESETS: &[&Preset] = &[&CLAUDE, &CODEX, &GEMINI, &OPENCODE, &COPILOT, &QWEN];

/// The row of a name.
pub(super) fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name).copied()
}
