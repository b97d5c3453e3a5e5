//! The rule files that come with the program.

use super::judge::{Layer, RuleSet};

/// A rule file that is part of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builtin {
    /// Confined work without network goes through; what reaches further is asked about.
    Default,
    /// Nearly everything is asked about; nothing unconfined runs.
    Strict,
    /// Everything that a jail confines is allowed; approvers are asked about dangerous requests alone,
    /// or these are denied.
    Open,
}

impl Builtin {
    /// Every set of shipped rules.
    pub const ALL: [Builtin; 3] = [Builtin::Default, Builtin::Strict, Builtin::Open];

    /// As written in the configuration, after `builtin:`.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Default => "default",
            Builtin::Strict => "strict",
            Builtin::Open => "open",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The text of the file, to print, or to start a file of one's own from.
    pub fn text(self) -> &'static str {
        match self {
            Builtin::Default => include_str!("../../policy/default.toml"),
            Builtin::Strict => include_str!("../../policy/strict.toml"),
            Builtin::Open => include_str!("../../policy/open.toml"),
        }
    }

    /// The rules of this set, loaded.
    ///
    /// # Panics
    /// Never in a program whose tests have passed: they load every one of these files.
    pub fn layer(self) -> Layer {
        let name = format!("builtin:{}", self.name());
        Layer::parse(self.text(), &name).expect("the shipped rules load, which a test checks")
    }
}

/// The shipped rules of that name: `default`, `strict` or `open`.
pub fn builtin(name: &str) -> Option<RuleSet> {
    Builtin::named(name).map(|it| RuleSet::new(it.layer()))
}
