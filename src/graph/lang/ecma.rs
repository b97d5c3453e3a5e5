//! Modules of TypeScript and JavaScript: relative paths, extensions, index files, settings, CommonJS and
//! `export *`.

use super::{PLAIN, Rules, Settings, ecma_settings, rules_at, through_any_star};
use crate::Files;
use crate::modules::{Tries, folder_of, joined};
use crate::outline::Outline;
use crate::resolve::{Resolver, Value};

pub(super) const RULES: Rules = Rules {
    ends: &[".d.ts", ".d.mts", ".d.cts", ".ts", ".tsx", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs"],
    folder_file: "index",
    is_settings: ecma_settings::is_settings,
    tries,
    package_of: |_, _| None,
    or_module: |_, _| None,
    export,
    through_stars: through_any_star,
    is_in_star: |_, _| true,
    stars_bind: false,
    folder_is_module: false,
    names_itself: false,
    added: None,
    keys: None,
    around: None,
    by_path: None,
    extension: None,
    of_library: None,
    only_one: None,
    whole: Some(WHOLE),
    default: Some(DEFAULT),
    // A call of `super` runs a constructor that a class without one of its own has nevertheless.
    implied: Some("constructor"),
    declaration_counts: true,
    ..PLAIN
};

/// The name for the value that `module.exports =` and `export =` set.
const WHOLE: &str = "export=";

const DEFAULT: &str = "default";

/// The extensions, in TypeScript's order, followed by those that only bundlers try.
const ENDS: [&str; 9] = [".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs"];

/// The suffixes of source files that an import with `.js` or a similar suffix may mean.
const COMPILED: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts", ".js", ".jsx"]),
    (".jsx", &[".tsx", ".d.ts", ".jsx"]),
    (".mjs", &[".mts", ".d.mts", ".mjs"]),
    (".cjs", &[".cts", ".d.cts", ".cjs"]),
];

fn tries(spec: &str, path: &str, _: &Files, settings: &Settings) -> Tries {
    let mut tries = Tries::default();
    let folder = folder_of(path);
    if spec == "." || spec == ".." || spec.starts_with("./") || spec.starts_with("../") {
        if let Some(at) = joined(folder, spec) {
            add(&mut tries, &at);
        }
        return tries;
    }
    for at in settings.ecma.places(spec, folder) {
        add(&mut tries, &at);
    }
    tries
}

/// Adds the files and folders that a path without its end may mean.
fn add(tries: &mut Tries, at: &str) {
    let compiled = COMPILED.iter().find_map(|(end, sources)| Some((at.strip_suffix(end)?, sources)));
    if let Some((stem, sources)) = compiled {
        tries.paths.extend(sources.iter().map(|source| format!("{stem}{source}")));
    }
    tries.paths.push(at.to_owned());
    tries.paths.extend(ENDS.iter().map(|end| format!("{at}{end}")));
    let index = if at.is_empty() { "index".to_owned() } else { format!("{at}/index") };
    tries.paths.extend(ENDS.iter().map(|end| format!("{index}{end}")));
    tries.keys.push(at.to_owned());
    // An import may name a file of any language by its whole name.
    tries.keys.push(rules_at(at).map_or(at, |rules| rules.stem(at)).to_owned());
}

fn export<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    if let Some(offer) = outline.exports.iter().rfind(|offer| outline.word(offer.name) == name) {
        return resolver.offered(file, outline, offer.what, depth);
    }
    // The value that CommonJS exports as a whole is the default export for files that import it as a module.
    let whole = outline.exports.iter().rfind(|offer| outline.word(offer.name) == WHOLE);
    if let Some(whole) = whole.filter(|_| name != WHOLE) {
        let value = resolver.offered(file, outline, whole.what, depth)?;
        return if name == DEFAULT { Some(value) } else { resolver.member(value, name, depth) };
    }
    if matches!(name, DEFAULT | WHOLE) {
        None
    } else {
        through_any_star(resolver, file, outline, name, depth)
    }
}
