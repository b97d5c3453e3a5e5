//! The rule files that ship with the program.

use super::judge::{Layer, RuleSet};

/// A rule file that ships with the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builtin {
    /// Confined work without network goes through; anything that reaches further needs approval.
    Default,
    /// Nearly everything needs approval; nothing unconfined runs.
    Strict,
    /// Everything that a jail confines is allowed; only dangerous requests need approval, or are denied.
    Open,
}

impl Builtin {
    /// Every shipped rule file.
    pub const ALL: [Builtin; 3] = [Builtin::Default, Builtin::Strict, Builtin::Open];

    /// Returns its name, as the configuration has it after `builtin:`.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Default => "default",
            Builtin::Strict => "strict",
            Builtin::Open => "open",
        }
    }

    /// Returns the shipped file of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the file's text, to print, or to start an own file from.
    pub fn text(self) -> &'static str {
        match self {
            Builtin::Default => include_str!("../../policy/default.toml"),
            Builtin::Strict => include_str!("../../policy/strict.toml"),
            Builtin::Open => include_str!("../../policy/open.toml"),
        }
    }

    /// Loads the rules of this file.
    ///
    /// # Panics
    /// Never in a program whose tests have passed: they load every one of these files.
    pub fn layer(self) -> Layer {
        let name = format!("builtin:{}", self.name());
        Layer::parse(self.text(), &name).expect("the shipped rules load, which a test checks")
    }
}

/// Loads the shipped rules of that name: `default`, `strict` or `open`.
pub fn builtin(name: &str) -> Option<RuleSet> {
    Builtin::named(name).map(|it| RuleSet::new(it.layer()))
}
