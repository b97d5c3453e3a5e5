//! The rows of the table of settings that run later. Each row names the page on which its tool documents that it
//! reads the file. The files of tools without a row are not covered.

use super::Whose::{Agents, Editors, Hooks, Instructions, Interpreters, Shells, VersionControl};
use super::{Held, Row, Whose};

const fn kept(whose: Whose, pattern: &'static str, source: &'static str) -> Row {
    Row { pattern, spellings: &[], whose, held: Held::Kept, source }
}

/// Returns a row for files with more spellings than can be listed; it lists the usual ones.
const fn kept_as(
    whose: Whose,
    pattern: &'static str,
    spellings: &'static [&'static str],
    source: &'static str,
) -> Row {
    Row { pattern, spellings, whose, held: Held::Kept, source }
}

const fn found(whose: Whose, pattern: &'static str, source: &'static str) -> Row {
    Row { pattern, spellings: &[], whose, held: Held::Found, source }
}

const fn found_as(
    whose: Whose,
    pattern: &'static str,
    spellings: &'static [&'static str],
    source: &'static str,
) -> Row {
    Row { pattern, spellings, whose, held: Held::Found, source }
}

const fn reported(whose: Whose, pattern: &'static str, source: &'static str) -> Row {
    Row { pattern, spellings: &[], whose, held: Held::Reported, source }
}

const AGENTS_MD: &str = "https://agents.md/";
const CLAUDE: &str = "https://code.claude.com/docs/en/settings";
const CLAUDE_MEMORY: &str = "https://code.claude.com/docs/en/memory";
const CRUSH: &str = "https://github.com/charmbracelet/crush#configuration";
const CURSOR_RULES: &str = "https://cursor.com/docs/context/rules";
const EMACS: &str = "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html";
const LEFTHOOK: &str = "https://lefthook.dev/configuration";
const LINT_STAGED: &str = "https://github.com/lint-staged/lint-staged#configuration";
const MISE: &str = "https://mise.jdx.dev/configuration.html";
const NEOVIM: &str = "https://neovim.io/doc/user/options.html#'exrc'";
const OPENCODE: &str = "https://opencode.ai/docs/config";
const OVERCOMMIT: &str = "https://github.com/sds/overcommit#configuration";
const VIM: &str = "https://vimhelp.org/options.txt.html#'exrc'";

/// All rows. `later` looks paths up in them, and `docs/settings-that-run-later.md` prints them.
pub const ROWS: &[Row] = &[
    kept(Agents, ".agents", "https://agentskills.io/"),
    kept(Agents, ".aider.conf.yml", "https://aider.chat/docs/config/aider_conf.html"),
    kept(
        Agents,
        ".amazonq",
        "https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-custom-agents-overview.html",
    ),
    kept(Agents, ".augment", "https://docs.augmentcode.com/cli/hooks"),
    kept(Agents, ".claude", CLAUDE),
    kept(Agents, ".cline", "https://docs.cline.bot/customization/skills"),
    kept(Agents, ".clinerules", "https://docs.cline.bot/customization/hooks"),
    kept(Agents, ".codex", "https://developers.openai.com/codex/config-reference"),
    kept(Agents, ".continue", "https://docs.continue.dev/reference"),
    kept(Agents, ".crush", CRUSH),
    kept(Agents, ".crush.json", CRUSH),
    kept(Agents, "crush.json", CRUSH),
    kept(Agents, ".cursor", "https://cursor.com/docs/context/mcp"),
    kept(Agents, ".factory", "https://docs.factory.ai/harness/hooks"),
    kept(Agents, ".gemini", "https://geminicli.com/docs/reference/configuration/"),
    kept(Agents, ".goose", "https://goose-docs.ai/docs/guides/context-engineering/using-skills"),
    kept(Agents, ".junie", "https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html"),
    kept(Agents, ".kilocode", "https://kilo.ai/docs/features/mcp/using-mcp-in-kilo-code"),
    kept(Agents, ".kiro", "https://kiro.dev/docs/hooks/"),
    kept(Agents, ".mcp.json", "https://code.claude.com/docs/en/mcp"),
    kept(Agents, ".opencode", OPENCODE),
    kept(Agents, "opencode.json", OPENCODE),
    kept(Agents, "opencode.jsonc", OPENCODE),
    found(Agents, ".openhands", "https://docs.openhands.dev/openhands/usage/customization/repository"),
    kept(Agents, ".qwen", "https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings/"),
    kept(Agents, ".roo", "https://docs.roocode.com/features/mcp/using-mcp-in-roo"),
    kept(Agents, ".trae", "https://docs.trae.ai/ide/model-context-protocol"),
    kept(Agents, ".windsurf", "https://docs.windsurf.com/windsurf/cascade/workflows"),
    reported(Instructions, "AGENT.md", AGENTS_MD),
    reported(Instructions, "AGENTS.md", AGENTS_MD),
    reported(Instructions, "AGENTS.override.md", "https://developers.openai.com/codex/guides/agents-md"),
    reported(Instructions, "AmazonQ.md", "https://aws.github.io/amazon-q-developer-cli/agent-format.html"),
    reported(Instructions, "CLAUDE.md", CLAUDE_MEMORY),
    reported(Instructions, "CLAUDE.local.md", CLAUDE_MEMORY),
    reported(Instructions, "CRUSH.md", CRUSH),
    reported(Instructions, "CRUSH.local.md", CRUSH),
    reported(Instructions, "GEMINI.md", "https://geminicli.com/docs/cli/gemini-md/"),
    reported(
        Instructions,
        "QWEN.md",
        "https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings/",
    ),
    reported(Instructions, "WARP.md", "https://docs.warp.dev/agents/capabilities/rules"),
    reported(Instructions, ".augment-guidelines", "https://docs.augmentcode.com/cli/rules"),
    reported(Instructions, ".cursorrules", CURSOR_RULES),
    reported(
        Instructions,
        ".goosehints",
        "https://goose-docs.ai/docs/guides/context-engineering/using-goosehints",
    ),
    Row {
        spellings: &[".roorules", ".roorules-code"],
        ..reported(Instructions, ".roorules*", "https://docs.roocode.com/features/custom-instructions")
    },
    reported(Instructions, ".rules", "https://zed.dev/docs/ai/rules"),
    reported(Instructions, ".windsurfrules", "https://docs.windsurf.com/windsurf/cascade/memories"),
    reported(
        Instructions,
        ".github/copilot-instructions.md",
        "https://code.visualstudio.com/docs/copilot/customization/custom-instructions",
    ),
    reported(
        Instructions,
        ".github/instructions",
        "https://code.visualstudio.com/docs/copilot/customization/custom-instructions",
    ),
    kept(Editors, ".devcontainer", "https://containers.dev/implementors/spec/#devcontainerjson"),
    kept(Editors, ".devcontainer.json", "https://containers.dev/implementors/spec/#devcontainerjson"),
    kept(Editors, ".dir-locals.el", EMACS),
    kept(Editors, ".dir-locals-2.el", EMACS),
    kept(Editors, ".exrc", VIM),
    kept(Editors, ".fleet", "https://www.jetbrains.com/help/fleet/run-configurations.html"),
    kept(Editors, ".gvimrc", VIM),
    kept(Editors, ".helix", "https://docs.helix-editor.com/languages.html"),
    kept(Editors, ".idea", "https://www.jetbrains.com/help/idea/project-security.html"),
    kept(Editors, ".lazy.lua", "https://lazy.folke.io/configuration"),
    kept(Editors, ".lvimrc", "https://github.com/embear/vim-localvimrc"),
    kept(Editors, ".nvim", NEOVIM),
    kept(Editors, ".nvim.lua", NEOVIM),
    kept(Editors, ".nvimrc", NEOVIM),
    kept(Editors, ".vim", VIM),
    kept(Editors, ".vimrc", VIM),
    kept(
        Editors,
        ".vs",
        "https://learn.microsoft.com/visualstudio/ide/customize-build-and-debug-tasks-in-visual-studio",
    ),
    kept(Editors, ".vscode", "https://code.visualstudio.com/docs/debugtest/tasks"),
    kept(Editors, ".zed", "https://zed.dev/docs/tasks"),
    found_as(
        Editors,
        "*.code-workspace",
        &["all.code-workspace"],
        "https://code.visualstudio.com/docs/editing/workspaces/multi-root-workspaces",
    ),
    found_as(
        Editors,
        "*.sublime-project",
        &["all.sublime-project"],
        "https://www.sublimetext.com/docs/projects.html",
    ),
    found_as(
        Editors,
        "*.sublime-workspace",
        &["all.sublime-workspace"],
        "https://www.sublimetext.com/docs/projects.html",
    ),
    kept(Shells, ".autoenv.zsh", "https://github.com/Tarrasch/zsh-autoenv"),
    reported(Shells, ".env", "https://direnv.net/man/direnv.toml.1.html"),
    reported(Shells, ".env.local", "https://vite.dev/guide/env-and-mode"),
    kept(Shells, ".envrc", "https://direnv.net/"),
    kept(Shells, ".mise", MISE),
    kept(Shells, ".config/mise", MISE),
    kept_as(Shells, "mise/config*.toml", &["mise/config.toml", "mise/config.local.toml"], MISE),
    found(Shells, "mise/conf.d", MISE),
    kept_as(Shells, "mise*.toml", &["mise.toml", "mise.local.toml"], MISE),
    kept_as(Shells, ".mise*.toml", &[".mise.toml", ".mise.local.toml"], MISE),
    kept(Shells, ".miserc.toml", MISE),
    kept_as(
        Hooks,
        "lefthook.*",
        &[
            "lefthook.yml",
            "lefthook.yaml",
            "lefthook.toml",
            "lefthook.json",
            "lefthook.jsonc",
            ".config/lefthook.yml",
            ".config/lefthook.yaml",
            ".config/lefthook.toml",
            ".config/lefthook.json",
            ".config/lefthook.jsonc",
        ],
        LEFTHOOK,
    ),
    kept_as(
        Hooks,
        ".lefthook.*",
        &[".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", ".lefthook.jsonc"],
        LEFTHOOK,
    ),
    kept_as(
        Hooks,
        "lefthook-local.*",
        &[
            "lefthook-local.yml",
            "lefthook-local.yaml",
            "lefthook-local.toml",
            "lefthook-local.json",
            "lefthook-local.jsonc",
            ".config/lefthook-local.yml",
            ".config/lefthook-local.yaml",
            ".config/lefthook-local.toml",
            ".config/lefthook-local.json",
            ".config/lefthook-local.jsonc",
        ],
        LEFTHOOK,
    ),
    kept_as(
        Hooks,
        ".lefthook-local.*",
        &[
            ".lefthook-local.yml",
            ".lefthook-local.yaml",
            ".lefthook-local.toml",
            ".lefthook-local.json",
            ".lefthook-local.jsonc",
        ],
        LEFTHOOK,
    ),
    kept(Hooks, ".lefthook", LEFTHOOK),
    kept(Hooks, ".lefthook-local", LEFTHOOK),
    kept(Hooks, ".husky", "https://typicode.github.io/husky/"),
    found_as(
        Hooks,
        ".huskyrc*",
        &[".huskyrc", ".huskyrc.json"],
        "https://github.com/typicode/husky/tree/v4.3.8",
    ),
    kept_as(
        Hooks,
        ".lintstagedrc*",
        &[
            ".lintstagedrc",
            ".lintstagedrc.json",
            ".lintstagedrc.yaml",
            ".lintstagedrc.yml",
            ".lintstagedrc.mjs",
            ".lintstagedrc.cjs",
            ".lintstagedrc.js",
        ],
        LINT_STAGED,
    ),
    found_as(Hooks, "lint-staged.config.*", &["lint-staged.config.js", "lint-staged.config.ts"], LINT_STAGED),
    kept(Hooks, ".overcommit.yml", OVERCOMMIT),
    kept(Hooks, ".local-overcommit.yml", OVERCOMMIT),
    kept(Hooks, ".git-hooks", OVERCOMMIT),
    kept_as(
        Hooks,
        ".pre-commit-config.*",
        &[".pre-commit-config.yaml", ".pre-commit-config.yml"],
        "https://pre-commit.com/#adding-pre-commit-plugins-to-your-project",
    ),
    found(Hooks, "prek.toml", "https://prek.j178.dev/configuration/"),
    found_as(
        Hooks,
        "*simple-git-hooks.*",
        &["simple-git-hooks.js", ".simple-git-hooks.json"],
        "https://github.com/toplenboren/simple-git-hooks#configuration",
    ),
    found(Hooks, ".rusty-hook.toml", "https://github.com/swellaby/rusty-hook#configure"),
    found(Hooks, "captainhook.json", "https://captainhookphp.github.io/captainhook/configure.html"),
    found_as(
        Hooks,
        "grumphp.*",
        &["grumphp.yml", "grumphp.yml.dist"],
        "https://github.com/phpro/grumphp/blob/v2.x/doc/parameters.md",
    ),
    found(Hooks, "hk.pkl", "https://hk.jdx.dev/configuration.html"),
    kept(VersionControl, ".hg", "https://www.mercurial-scm.org/doc/hgrc.5.html"),
    kept(VersionControl, ".jj", "https://docs.jj-vcs.dev/latest/config/"),
    kept(VersionControl, ".sl", "https://sapling-scm.com/docs/introduction/differences-hg"),
    found(VersionControl, ".pijul", "https://pijul.org/manual/configuration.html"),
    found(VersionControl, "_darcs", "https://darcs.net/Using/Configuration"),
    kept(
        Interpreters,
        ".gdbinit",
        "https://sourceware.org/gdb/current/onlinedocs/gdb.html/Init-File-in-the-Current-Directory.html",
    ),
    kept(Interpreters, ".lldbinit", "https://lldb.llvm.org/man/lldb.html#configuration-files"),
    found(Interpreters, ".erlang", "https://www.erlang.org/doc/apps/erts/erl_cmd.html#configuration"),
    found(
        Interpreters,
        ".ghci",
        "https://downloads.haskell.org/ghc/latest/docs/users_guide/ghci.html#the-ghci-files",
    ),
    found(Interpreters, ".iex.exs", "https://hexdocs.pm/iex/IEx.html#module-the-iex-exs-file"),
    found(Interpreters, ".irbrc", "https://docs.ruby-lang.org/en/master/IRB.html"),
    found(Interpreters, ".ocamlinit", "https://ocaml.org/manual/toplevel.html"),
    found(Interpreters, ".octaverc", "https://docs.octave.org/latest/Startup-Files.html"),
    found(Interpreters, ".pdbrc", "https://docs.python.org/3/library/pdb.html#debugger-commands"),
    found(Interpreters, ".pryrc", "https://github.com/pry/pry/wiki/Pry-rc"),
    found(Interpreters, ".Rprofile", "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html"),
    found(Interpreters, ".Renviron", "https://stat.ethz.ch/R-manual/R-devel/library/base/html/Startup.html"),
];
