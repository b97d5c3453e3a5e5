//! The sets of MCP tools that a host can be offered.

use toml::de::DeValue;

use super::value::{Context, Value, quoted, words};

words! {
    /// Sets of tools that hosts offer to models together.
    McpTools {
        /// About fifteen tools with which agents work side by side.
        Default = "default",
        /// All tools except those with DevIt's names.
        All = "all",
        /// Delegated work, its changes, reports and workers.
        Tasks = "tasks",
        /// Commands that wait for an approver.
        Approvals = "approvals",
        /// Work and its locks.
        Locks = "locks",
        /// Changes that agents announce in advance.
        Intents = "intents",
        /// Signatures that agents agree on.
        Contracts = "contracts",
        /// Whole files that agents claim.
        Claims = "claims",
        /// Work that is handed over.
        Handoffs = "handoffs",
        /// Branches that are merged.
        Merges = "merges",
        /// Messages and the inbox.
        Messages = "messages",
        /// Pictures of the screen, where `[screenshot]` enables them.
        Pictures = "pictures",
        /// The same tools under DevIt's names.
        Devit = "devit",
    }
}

impl McpTools {
    const ALL: [Self; 13] = [
        Self::Default,
        Self::All,
        Self::Tasks,
        Self::Approvals,
        Self::Locks,
        Self::Intents,
        Self::Contracts,
        Self::Claims,
        Self::Handoffs,
        Self::Merges,
        Self::Messages,
        Self::Pictures,
        Self::Devit,
    ];

    /// Returns the set of this name.
    ///
    /// # Errors
    /// A sentence with the names of all sets.
    pub fn parse(word: &str) -> Result<Self, String> {
        let all = Self::ALL.map(Self::as_str).join(", ");
        Self::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(|| format!("expected one of {all}"))
    }
}
