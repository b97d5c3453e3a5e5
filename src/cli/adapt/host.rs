//! Hosts: programs with an agent in them, and the file from which each reads its instructions.

use clap::ValueEnum;

/// A host.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AgentHost {
    /// Claude Code: CLAUDE.md
    Claude,
    /// Cursor: .cursor/rules/provost.mdc
    Cursor,
    /// Codex: AGENTS.md
    Codex,
    /// Any other program that reads AGENTS.md
    AgentsMd,
}

impl AgentHost {
    /// Returns the word on the command line, and in the markers.
    pub(super) fn word(self) -> &'static str {
        match self {
            AgentHost::Claude => "claude",
            AgentHost::Cursor => "cursor",
            AgentHost::Codex => "codex",
            AgentHost::AgentsMd => "agents-md",
        }
    }

    /// Returns its file, from the top of the work tree.
    pub(super) fn file(self) -> &'static str {
        match self {
            AgentHost::Claude => "CLAUDE.md",
            AgentHost::Cursor => ".cursor/rules/provost.mdc",
            AgentHost::Codex | AgentHost::AgentsMd => "AGENTS.md",
        }
    }

    /// Returns the default name of its agent; the published adapters use the first two.
    pub(super) fn agent(self) -> &'static str {
        match self {
            AgentHost::Claude => "claude-code-1",
            AgentHost::Cursor => "cursor-1",
            AgentHost::Codex => "codex-1",
            AgentHost::AgentsMd => "agent-1",
        }
    }

    /// Checks whether commands in its shells know their agent's name without being told.
    pub(super) fn names_shells(self) -> bool {
        matches!(self, AgentHost::Claude | AgentHost::Codex)
    }

    /// Returns the program's name for the announcement.
    pub(super) fn tool(self) -> &'static str {
        match self {
            AgentHost::Claude => "claude-code",
            AgentHost::Cursor => "cursor",
            AgentHost::Codex => "codex",
            AgentHost::AgentsMd => "agents-md",
        }
    }

    /// Returns the role that its agent asks for, as the published adapters do.
    pub(super) fn role(self) -> &'static str {
        match self {
            AgentHost::Claude => "lead",
            AgentHost::Cursor | AgentHost::Codex | AgentHost::AgentsMd => "worker",
        }
    }

    /// Returns the capabilities that its agent announces.
    pub(super) fn capabilities(self) -> &'static [&'static str] {
        match self {
            AgentHost::Claude => &["code", "review", "test", "refactor"],
            AgentHost::Cursor => &["code", "refactor", "review", "inline-edit"],
            AgentHost::Codex | AgentHost::AgentsMd => &["code"],
        }
    }

    /// Returns the first lines of a new file. Cursor reads a rule in every chat only if these lines demand it.
    pub(super) fn head(self) -> &'static str {
        match self {
            AgentHost::Cursor => {
                "---\ndescription: Other agents in this repository, and what they hold\nglobs:\nalwaysApply: true\n---\n"
            }
            AgentHost::Claude | AgentHost::Codex | AgentHost::AgentsMd => "",
        }
    }
}
