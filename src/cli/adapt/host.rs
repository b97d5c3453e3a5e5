//! Hosts: programs with an agent in them, and the file from which each reads its instructions.

use clap::ValueEnum;

/// A host.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Host {
    /// Claude Code: CLAUDE.md
    Claude,
    /// Cursor: .cursor/rules/provost.mdc
    Cursor,
    /// Codex: AGENTS.md
    Codex,
    /// Any other program that reads AGENTS.md
    AgentsMd,
}

impl Host {
    /// Returns the word on the command line, and in the markers.
    pub(super) fn word(self) -> &'static str {
        match self {
            Host::Claude => "claude",
            Host::Cursor => "cursor",
            Host::Codex => "codex",
            Host::AgentsMd => "agents-md",
        }
    }

    /// Returns its file, from the top of the work tree.
    pub(super) fn file(self) -> &'static str {
        match self {
            Host::Claude => "CLAUDE.md",
            Host::Cursor => ".cursor/rules/provost.mdc",
            Host::Codex | Host::AgentsMd => "AGENTS.md",
        }
    }

    /// Returns the default name of its agent; the published adapters use the first two.
    pub(super) fn agent(self) -> &'static str {
        match self {
            Host::Claude => "claude-code-1",
            Host::Cursor => "cursor-1",
            Host::Codex => "codex-1",
            Host::AgentsMd => "agent-1",
        }
    }

    /// Checks whether commands in its shells know their agent's name without being told.
    pub(super) fn names_shells(self) -> bool {
        matches!(self, Host::Claude | Host::Codex)
    }

    /// Returns the program's name for the announcement.
    pub(super) fn tool(self) -> &'static str {
        match self {
            Host::Claude => "claude-code",
            Host::Cursor => "cursor",
            Host::Codex => "codex",
            Host::AgentsMd => "agents-md",
        }
    }

    /// Returns the role that its agent asks for, as the published adapters do.
    pub(super) fn role(self) -> &'static str {
        match self {
            Host::Claude => "lead",
            Host::Cursor | Host::Codex | Host::AgentsMd => "worker",
        }
    }

    /// Returns the capabilities that its agent announces.
    pub(super) fn capabilities(self) -> &'static [&'static str] {
        match self {
            Host::Claude => &["code", "review", "test", "refactor"],
            Host::Cursor => &["code", "refactor", "review", "inline-edit"],
            Host::Codex | Host::AgentsMd => &["code"],
        }
    }

    /// Returns the first lines of a new file. Cursor reads a rule in every chat only if these lines demand it.
    pub(super) fn head(self) -> &'static str {
        match self {
            Host::Cursor => {
                "---\ndescription: Other agents in this repository, and what they hold\nglobs:\nalwaysApply: true\n---\n"
            }
            Host::Claude | Host::Codex | Host::AgentsMd => "",
        }
    }
}
