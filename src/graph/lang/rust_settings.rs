//! The crates in `Cargo.toml`: their names, and their first files.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::modules::{folder_of, joined};
use provost_base::limits::SETTINGS_ROWS_MAX;

/// The packages of a repository, by the folders of their `Cargo.toml`.
#[derive(Default, Debug)]
pub(super) struct Settings {
    packages: BTreeMap<Box<str>, Package>,
}

#[derive(PartialEq, Default, Debug)]
struct Package {
    /// The name of its library in code.
    name: Box<str>,
    /// The first file of the library.
    library: Box<str>,
    /// The first files of all other crates with a given path.
    others: Vec<Box<str>>,
    /// Renamed dependencies: the name in code, and that of the package.
    renamed: BTreeMap<Box<str>, Box<str>>,
}

pub(super) fn is_settings(path: &str) -> bool {
    path.rsplit('/').next() == Some("Cargo.toml")
}

fn in_code(name: &str) -> Box<str> {
    name.replace('-', "_").into()
}

fn text<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v str> {
    value?.get(name)?.as_str()
}

impl Package {
    /// None of a file that describes no package: that of a workspace alone.
    fn of(folder: &str, table: &Table) -> Option<Self> {
        let package = text(table.get("package"), "name")?;
        let library = table.get("lib");
        let at = |path: &str| joined(folder, path).unwrap_or_default().into();
        let mut others = Vec::new();
        for kind in ["bin", "test", "example", "bench"] {
            let all = table.get(kind).and_then(Value::as_array).into_iter().flatten();
            others.extend(all.take(SETTINGS_ROWS_MAX).filter_map(|it| text(Some(it), "path")).map(at));
        }
        let mut renamed = BTreeMap::new();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let all = table.get(kind).and_then(Value::as_table).into_iter().flatten();
            let other =
                |(name, it): (&String, &Value)| Some((in_code(name), in_code(text(Some(it), "package")?)));
            renamed.extend(all.take(SETTINGS_ROWS_MAX).filter_map(other));
        }
        Some(Self {
            name: in_code(text(library, "name").unwrap_or(package)),
            library: at(text(library, "path").unwrap_or("src/lib.rs")),
            others,
            renamed,
        })
    }
}

impl Settings {
    /// Takes a `Cargo.toml` in, or notes that it is gone; says whether that makes a difference.
    pub(super) fn set(&mut self, path: &str, text: Option<&str>) -> bool {
        let folder = folder_of(path);
        let table: Option<Table> = text.and_then(|text| toml::from_str(text).ok());
        let package = table.and_then(|table| Package::of(folder, &table));
        let differs = self.packages.get(folder) != package.as_ref();
        match package {
            Some(package) => self.packages.insert(folder.into(), package),
            None => self.packages.remove(folder),
        };
        differs
    }

    /// The first file of the library that code at a path calls by a name.
    pub(super) fn library(&self, name: &str, path: &str) -> Option<&str> {
        let name = self.around(path).and_then(|it| it.renamed.get(name)).map_or(name, |renamed| renamed);
        self.packages.values().find(|it| *it.name == *name).map(|it| &*it.library)
    }

    /// The package to which a file belongs.
    fn around(&self, path: &str) -> Option<&Package> {
        let mut folder = folder_of(path);
        loop {
            match self.packages.get(folder) {
                Some(package) => return Some(package),
                None if folder.is_empty() => return None,
                None => folder = folder_of(folder),
            }
        }
    }

    /// The first files of crates, beneath whose folders a file is: the nearest first.
    pub(super) fn roots(&self, path: &str) -> Vec<&str> {
        let Some(package) = self.around(path) else { return Vec::new() };
        let is_around = |root: &&str| {
            let folder = folder_of(root);
            folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let all = std::iter::once(&package.library).chain(&package.others).map(|it| &**it);
        let mut found: Vec<&str> = all.filter(is_around).collect();
        found.sort_by_key(|root| std::cmp::Reverse(folder_of(root).len()));
        found
    }
}
