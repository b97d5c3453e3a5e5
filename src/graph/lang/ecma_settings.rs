//! The paths of modules in `tsconfig.json`, `jsconfig.json` and `package.json`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::modules::{folder_of, joined};
use provost_base::jsonc;
use provost_base::limits::{SETTINGS_CHAIN_MAX, SETTINGS_ROWS_MAX};

/// The settings of a repository, by file.
#[derive(Default, Debug)]
pub(super) struct Settings {
    configs: BTreeMap<Box<str>, Config>,
    /// The `package.json` files, by their folders.
    packages: BTreeMap<Box<str>, Package>,
}

/// Names with at most one `*`, each with its replacements.
type Patterns = Vec<(Box<str>, Vec<Box<str>>)>;

/// The paths of modules in one `tsconfig.json`, as written.
#[derive(PartialEq, Default, Debug)]
struct Config {
    extends: Vec<Box<str>>,
    references: Vec<Box<str>>,
    base_url: Option<Box<str>>,
    paths: Option<Patterns>,
}

/// The name, entries, exports and imports of one `package.json`.
#[derive(PartialEq, Default, Debug)]
struct Package {
    name: Box<str>,
    /// The entry files, the most significant first.
    entries: Vec<Box<str>>,
    exports: Patterns,
    imports: Patterns,
}

/// Whether a file of this name has settings.
pub(super) fn is_settings(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_config = |start| name.starts_with(start) && name.ends_with(".json");
    name == "package.json" || is_config("tsconfig") || is_config("jsconfig")
}

/// The value of a file, if it is JSON with comments and trailing commas.
fn read(text: &str) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    jsonc::parse_with_trailing_commas(text).ok().map(|it| it.value.into())
}

impl Settings {
    /// Takes a file's text in, or notes that it is gone; says whether that makes a difference.
    pub(super) fn set(&mut self, path: &str, text: Option<&str>) -> bool {
        let value = text.and_then(read);
        if path.ends_with("package.json") {
            let package = value.as_ref().map(Package::of);
            let differs = self.packages.get(folder_of(path)) != package.as_ref();
            match package {
                Some(package) => self.packages.insert(folder_of(path).into(), package),
                None => self.packages.remove(folder_of(path)),
            };
            return differs;
        }
        let config = value.as_ref().map(Config::of);
        let differs = self.configs.get(path) != config.as_ref();
        match config {
            Some(config) => self.configs.insert(path.into(), config),
            None => self.configs.remove(path),
        };
        differs
    }

    /// Where a module without `./` before it may be, for a file in a folder.
    pub(super) fn places(&self, spec: &str, folder: &str) -> Vec<String> {
        let mut places = Vec::new();
        if spec.starts_with('#') {
            if let Some((at, package)) = self.above(folder, |at| self.packages.get_key_value(at)) {
                places.extend(matched(&package.imports, spec).iter().filter_map(|to| joined(at, to)));
            }
            return places;
        }
        if let Some(options) = self.options(folder) {
            let from = |text: &str| options.place(&options.paths_from, text);
            places.extend(matched(options.paths, spec).iter().filter_map(|to| from(to)));
            places.extend(options.base_url.as_ref().and_then(|base| joined(base, spec)));
        }
        self.in_packages(spec, &mut places);
        places
    }

    /// Packages of this repository are found by their names.
    fn in_packages(&self, spec: &str, places: &mut Vec<String>) {
        let of = |package: &Package| {
            let rest = spec.strip_prefix(&*package.name).filter(|_| !package.name.is_empty())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        for (folder, package) in &self.packages {
            let Some(rest) = of(package) else { continue };
            let asked = format!(".{rest}");
            places.extend(matched(&package.exports, &asked).iter().filter_map(|to| joined(folder, to)));
            if rest.is_empty() {
                places.extend(package.entries.iter().filter_map(|to| joined(folder, to)));
                places.extend(joined(folder, "src/index"));
            } else {
                places.extend(joined(folder, &format!("src{rest}")));
            }
            places.extend(joined(folder, &rest));
        }
    }

    /// The first that there is in a folder or above it.
    fn above<'a, T>(&self, folder: &'a str, find: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let mut around = folder;
        loop {
            match find(around) {
                None if around.is_empty() => return None,
                None => around = folder_of(around),
                found => return found,
            }
        }
    }

    /// The options for files in a folder.
    fn options(&self, folder: &str) -> Option<Options<'_>> {
        let path = self.above(folder, |at| {
            let named = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
            ["tsconfig.json", "jsconfig.json"]
                .iter()
                .map(|name| named(name))
                .find(|it| self.configs.contains_key(&**it))
        })?;
        let mut options = self.options_of(&path, SETTINGS_CHAIN_MAX)?;
        if options.paths.is_empty() && options.base_url.is_none() {
            // One that only refers to others, as some generators make it.
            let config = self.configs.get(&*path)?;
            let says = |options: &Options<'_>| !options.paths.is_empty() || options.base_url.is_some();
            let referred = config.references.iter().filter_map(|to| {
                let at = joined(folder_of(&path), to)?;
                let at = if at.ends_with(".json") { at } else { format!("{at}/tsconfig.json") };
                self.options_of(&at, SETTINGS_CHAIN_MAX).filter(says)
            });
            options = referred.into_iter().next().unwrap_or(options);
        }
        if let Some(base) = &options.base_url {
            options.paths_from.clone_from(base);
        }
        Some(options)
    }

    /// The options of a file, on top of those that it extends.
    fn options_of(&self, path: &str, chain: u32) -> Option<Options<'_>> {
        let config = self.configs.get(path)?;
        let folder = folder_of(path);
        let mut options = Options { folder: folder.to_owned(), ..Options::default() };
        let left = chain.checked_sub(1)?;
        for extended in &config.extends {
            let Some(below) = self.extended(extended, folder).and_then(|at| self.options_of(&at, left))
            else {
                continue;
            };
            if below.base_url.is_some() {
                options.base_url = below.base_url;
            }
            if !below.paths.is_empty() {
                (options.paths, options.paths_from) = (below.paths, below.paths_from);
            }
        }
        if let Some(base) = &config.base_url {
            options.base_url = options.place(folder, base);
        }
        if let Some(paths) = &config.paths {
            (options.paths, options.paths_from) = (paths, folder.to_owned());
        }
        Some(options)
    }

    /// The file that `extends` means.
    fn extended(&self, spec: &str, folder: &str) -> Option<String> {
        let at = if spec.starts_with('.') {
            joined(folder, spec)?
        } else {
            let of =
                |package: &Package| spec.strip_prefix(&*package.name).filter(|_| !package.name.is_empty());
            let (at, rest) = self.packages.iter().find_map(|(at, package)| Some((at, of(package)?)))?;
            joined(at, if rest.is_empty() { "tsconfig.json" } else { rest })?
        };
        [at.clone(), format!("{at}.json"), format!("{at}/tsconfig.json")]
            .into_iter()
            .find(|at| self.configs.contains_key(&**at))
    }
}

/// The options, with those of all extended files.
#[derive(Default)]
struct Options<'a> {
    /// The folder of the requested file.
    folder: String,
    base_url: Option<String>,
    paths: &'a [(Box<str>, Vec<Box<str>>)],
    paths_from: String,
}

impl Options<'_> {
    fn place(&self, from: &str, text: &str) -> Option<String> {
        match text.strip_prefix("${configDir}") {
            Some(rest) => joined(&self.folder, rest),
            None => joined(from, text),
        }
    }
}

/// The targets of a name: those of an exact entry, or of the one with the longest beginning before its `*`.
fn matched(patterns: &[(Box<str>, Vec<Box<str>>)], spec: &str) -> Vec<String> {
    let mut best: Option<(usize, &str, &Vec<Box<str>>)> = None;
    for (pattern, to) in patterns {
        let Some((start, end)) = pattern.split_once('*') else {
            if **pattern == *spec {
                return to.iter().map(ToString::to_string).collect();
            }
            continue;
        };
        let middle = spec.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        if let Some(middle) = middle
            && best.is_none_or(|(longest, ..)| start.len() > longest)
        {
            best = Some((start.len(), middle, to));
        }
    }
    best.map_or(Vec::new(), |(_, middle, to)| to.iter().map(|to| to.replacen('*', middle, 1)).collect())
}

fn text(value: Option<&Value>) -> Option<Box<str>> {
    value.and_then(Value::as_str).map(Into::into)
}

fn texts(value: &Value) -> Vec<Box<str>> {
    match value {
        Value::String(text) => vec![text.as_str().into()],
        Value::Array(all) => all.iter().filter_map(|it| text(Some(it))).collect(),
        _ => Vec::new(),
    }
}

impl Config {
    fn of(value: &Value) -> Self {
        let options = &value["compilerOptions"];
        let references = value["references"].as_array().into_iter().flatten();
        let paths = options["paths"].as_object().map(|paths| {
            let rows = paths.iter().take(SETTINGS_ROWS_MAX);
            rows.map(|(pattern, to)| (pattern.as_str().into(), texts(to))).collect()
        });
        Self {
            extends: texts(&value["extends"]),
            references: references.take(SETTINGS_ROWS_MAX).filter_map(|it| text(it.get("path"))).collect(),
            base_url: text(options.get("baseUrl")),
            paths,
        }
    }
}

impl Package {
    fn of(value: &Value) -> Self {
        let entries = ["source", "types", "typings", "module", "main"];
        Self {
            name: text(value.get("name")).unwrap_or_default(),
            entries: entries.iter().filter_map(|entry| text(value.get(entry))).collect(),
            exports: match &value["exports"] {
                Value::Object(all) if all.keys().any(|key| key.starts_with('.')) => rows(&value["exports"]),
                Value::Null => Vec::new(),
                whole => vec![(".".into(), conditions(whole, 4))],
            },
            imports: rows(&value["imports"]),
        }
    }
}

fn rows(value: &Value) -> Patterns {
    let rows = value.as_object().into_iter().flatten().take(SETTINGS_ROWS_MAX);
    rows.map(|(name, to)| (name.as_str().into(), conditions(to, 4))).collect()
}

/// Every path that some condition leads to, in order, so many levels down.
fn conditions(value: &Value, levels: u32) -> Vec<Box<str>> {
    match (value, levels.checked_sub(1)) {
        (Value::String(text), _) => vec![text.as_str().into()],
        (Value::Array(all), Some(left)) => {
            all.iter().take(SETTINGS_ROWS_MAX).flat_map(|it| conditions(it, left)).collect()
        }
        (Value::Object(all), Some(left)) => {
            all.values().take(SETTINGS_ROWS_MAX).flat_map(|it| conditions(it, left)).collect()
        }
        _ => Vec::new(),
    }
}
