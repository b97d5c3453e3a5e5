//! Codex, and its adapter for ACP.

use super::{Access, BEARER, Form, Login, Mode, OPENAI, Preset, Renewed, Tried};
use provost_config::Reader;

pub(super) const PRESET: Preset = Preset {
    name: "codex",
    title: "Codex",
    needs_model: false,
    acp: Form {
        program: "codex-acp",
        install: "npm install -g @agentclientprotocol/codex-acp",
        tried: Tried::Real("2.6.0"),
        args: &[],
        model_args: &[],
        model_in: None,
        // Codex reads its address only from its configuration. Its own sandbox fails inside of a jail, where no further
        // user namespace can be made.
        shell: Some(
            "mkdir -p \"$HOME/.codex\" && { [ -z \"$DEVIT_MODEL_USED\" ] || printf 'model = \"%s\"\\n' \"$DEVIT_MODEL_USED\"; \
             printf '%s\\n' 'model_provider = \"provost\"' 'sandbox_mode = \"danger-full-access\"' \
             'check_for_update_on_startup = false' '[analytics]' 'enabled = false' '[model_providers.provost]' \
             'name = \"provost\"' 'env_key = \"OPENAI_API_KEY\"' 'wire_api = \"responses\"' \
             \"base_url = \\\"$OPENAI_BASE_URL\\\"\"; } > \"$HOME/.codex/config.toml\" && exec \"$@\"",
        ),
        stream: Reader::Acp,
        env: &[],
        sign_in: None,
    },
    one_shot: Some(Form {
        program: "codex",
        install: "npm install -g @openai/codex",
        tried: Tried::Real("0.169.0"),
        args: &["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
        model_args: &["--model", "{model}"],
        model_in: None,
        shell: Some(
            "mkdir -p \"$HOME/.codex\" && exec \"$@\" -c check_for_update_on_startup=false -c analytics.enabled=false \
             -c 'model_provider=\"provost\"' -c 'model_providers.provost.name=\"provost\"' \
             -c \"model_providers.provost.base_url=\\\"$OPENAI_BASE_URL\\\"\" \
             -c 'model_providers.provost.env_key=\"OPENAI_API_KEY\"' -c 'model_providers.provost.wire_api=\"responses\"' -",
        ),
        stream: Reader::Codex,
        env: &[],
        sign_in: None,
    }),
    works: Mode::named("agent-full-access"),
    // Codex asks about every action that would leave its sandbox; in a jail, where that sandbox cannot be made, it asks about all.
    asks: Some(Mode::named("read-only")),
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
