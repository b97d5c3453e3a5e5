//! The name of a repository in a shared database.

use std::str::FromStr;

use toml::de::DeValue;

use super::value::{Context, Value, quoted, text};
use provost_base::limits::REPOSITORY_NAME_LEN_MAX;

/// The name of a repository in a shared database. It stands in files of the state folder, which are read up to a bound.
#[derive(Clone, PartialEq, Eq, PartialOrd, Debug)]
pub struct RepositoryName(String);

impl RepositoryName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RepositoryName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match () {
            () if text.trim().is_empty() => Err("must not be blank".into()),
            // The database takes no zero byte, and a line break would split the lines in which people read the name.
            () if text.contains(char::is_control) => Err("must not have control characters".into()),
            () if text.len() > REPOSITORY_NAME_LEN_MAX => {
                Err(format!("has more than {REPOSITORY_NAME_LEN_MAX} bytes"))
            }
            () => Ok(Self(text.to_owned())),
        }
    }
}

impl Value for RepositoryName {
    const NAME: &'static str = "text";
    fn read(value: &DeValue<'_>, _: &Context) -> Result<Self, String> {
        text(value)?.parse()
    }
    fn print(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}
