//! The ties between JavaScript and TypeScript files: `import`, `export`, `require`, `module.exports`.

use tree_sitter::Node;

use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Export, Exported, Import, ImportForm, Imported, ImportedName};
use super::ecma::{Field, Kind};
use super::ecma_names::{bound_names, dotted, property_name, string_content, unwrapped};

fn imported(name: &str) -> Imported {
    Imported::Name(name.into())
}

fn literal(walk: &Walk<'_>, node: Option<Node<'_>>) -> Option<Box<str>> {
    let node = node.filter(|node| Kind::at(walk, *node) == Some(Kind::String))?;
    string_content(walk, node).map(Into::into)
}

/// A name in an import or export clause; it may be in quotes.
fn clause_name(walk: &Walk<'_>, node: Option<Node<'_>>) -> Option<Box<str>> {
    node.and_then(|node| property_name(walk, node)).map(Into::into)
}

fn says_type(walk: &Walk<'_>, node: Node<'_>) -> bool {
    node.child(1).is_some_and(|word| walk.is_token(word, "type") || walk.is_token(word, "typeof"))
}

/// `import …`; there is nothing more to find in it.
pub(super) fn import(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let mut names = Vec::new();
    let mut from = literal(walk, walk.field(node, Field::Source as u8));
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        match Kind::at(walk, child) {
            Some(Kind::ImportClause) => clause(walk, child, &mut names),
            Some(Kind::ImportRequire) => {
                from = literal(walk, walk.field(child, Field::Source as u8));
                let local = child.named_child(0).map(|name| walk.text(name).into());
                names.push(ImportedName { imported: Imported::Module, local });
            }
            _ => {}
        }
    }
    if let Some(from) = from {
        let types_only = says_type(walk, node);
        let at = offset(node.start_byte());
        walk.import(Import {
            from,
            form: ImportForm::Static,
            names,
            types_only,
            within: None,
            either: false,
            at,
        });
    }
    false
}

fn clause(walk: &Walk<'_>, clause: Node<'_>, names: &mut Vec<ImportedName>) {
    let mut cursor = clause.walk();
    for child in clause.named_children(&mut cursor) {
        match Kind::at(walk, child) {
            Some(Kind::Identifier) => {
                names.push(ImportedName {
                    imported: imported("default"),
                    local: Some(walk.text(child).into()),
                });
            }
            Some(Kind::NamespaceImport) => {
                let local = child.named_child(0).map(|name| walk.text(name).into());
                names.push(ImportedName { imported: Imported::Module, local });
            }
            Some(Kind::NamedImports) => {
                let mut cursor = child.walk();
                names.extend(child.named_children(&mut cursor).filter_map(|specifier| {
                    let name = clause_name(walk, walk.field(specifier, Field::Name as u8))?;
                    let alias = clause_name(walk, walk.field(specifier, Field::Alias as u8));
                    Some(ImportedName {
                        local: Some(alias.unwrap_or_else(|| name.clone())),
                        imported: Imported::Name(name),
                    })
                }));
            }
            _ => {}
        }
    }
}

/// `export …`: what is declared in it is found when it is entered.
pub(super) fn export(walk: &mut Walk<'_>, node: Node<'_>) {
    // Of a namespace or a declared module: not of this file.
    if walk.scope.owner.is_some() {
        return;
    }
    if let Some(from) = literal(walk, walk.field(node, Field::Source as u8)) {
        passed_on(walk, node, from);
    } else if let Some(declaration) = walk.field(node, Field::Declaration as u8) {
        let is_default = says(walk, node, "default");
        for local in declared_names(walk, declaration) {
            let name = if is_default { "default".into() } else { local.clone() };
            walk.export(node, Export { name, what: Exported::Local(local) });
        }
    } else if let Some(value) = walk.field(node, Field::Value as u8) {
        default_value(walk, node, value);
    } else if says(walk, node, "=") {
        let local =
            node.named_child(0).map(|value| unwrapped(walk, value)).and_then(|value| dotted(walk, value));
        if let Some(local) = local {
            walk.export(node, Export { name: "export=".into(), what: Exported::Local(local.into()) });
        }
    } else {
        for (name, alias) in specifiers(walk, node) {
            let exported = alias.unwrap_or_else(|| name.clone());
            walk.export(node, Export { name: exported, what: Exported::Local(name) });
        }
    }
}

fn says(walk: &Walk<'_>, node: Node<'_>, word: &str) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|child| walk.is_token(child, word))
}

/// Names and other names in the clause of an export.
fn specifiers(walk: &Walk<'_>, node: Node<'_>) -> Vec<(Box<str>, Option<Box<str>>)> {
    let mut found = Vec::new();
    let mut cursor = node.walk();
    for clause in
        node.named_children(&mut cursor).filter(|child| Kind::at(walk, *child) == Some(Kind::ExportClause))
    {
        let mut cursor = clause.walk();
        for specifier in clause.named_children(&mut cursor) {
            if let Some(name) = clause_name(walk, walk.field(specifier, Field::Name as u8)) {
                found.push((name, clause_name(walk, walk.field(specifier, Field::Alias as u8))));
            }
        }
    }
    found
}

/// `export … from "…"`.
fn passed_on(walk: &mut Walk<'_>, node: Node<'_>, from: Box<str>) {
    let mut names: Vec<ImportedName> = specifiers(walk, node)
        .into_iter()
        .map(|(name, alias)| ImportedName {
            local: Some(alias.unwrap_or_else(|| name.clone())),
            imported: Imported::Name(name),
        })
        .collect();
    let mut cursor = node.walk();
    let namespace =
        node.named_children(&mut cursor).find(|child| Kind::at(walk, *child) == Some(Kind::NamespaceExport));
    if let Some(namespace) = namespace {
        names.push(ImportedName {
            imported: Imported::Module,
            local: clause_name(walk, namespace.named_child(0)),
        });
    } else if says(walk, node, "*") {
        names.push(ImportedName { imported: Imported::Everything, local: None });
    }
    let import = Import {
        from,
        form: ImportForm::ReExport,
        names: names.clone(),
        types_only: says_type(walk, node),
        within: None,
        either: false,
        at: offset(node.start_byte()),
    };
    let Some(import) = walk.import(import) else { return };
    for name in names {
        let what = Exported::Passed { import, imported: name.imported };
        walk.export(node, Export { name: name.local.unwrap_or_else(|| "*".into()), what });
    }
}

/// The names that a declaration makes at the top of a file.
fn declared_names(walk: &Walk<'_>, declaration: Node<'_>) -> Vec<Box<str>> {
    let mut cursor = declaration.walk();
    match Kind::at(walk, declaration) {
        Some(Kind::Lexical | Kind::Variable) => declaration
            .named_children(&mut cursor)
            .filter_map(|declarator| walk.field(declarator, Field::Name as u8))
            .flat_map(|pattern| bound_names(walk, pattern))
            .map(|name| walk.text(name).into())
            .collect(),
        Some(Kind::Ambient) => {
            let inner: Vec<Node<'_>> = declaration.named_children(&mut cursor).collect();
            // One level down, no further: nothing ambient is in something ambient.
            let plain = inner.into_iter().filter(|inner| Kind::at(walk, *inner) != Some(Kind::Ambient));
            plain.flat_map(|inner| declared_names(walk, inner)).collect()
        }
        _ => {
            let name = walk.field(declaration, Field::Name as u8);
            vec![name.map_or("default".into(), |name| walk.text(name).into())]
        }
    }
}

/// `export default …`: a name is what it names, a value gets the name `default`.
fn default_value(walk: &mut Walk<'_>, node: Node<'_>, value: Node<'_>) {
    let inner = unwrapped(walk, value);
    let local = if Kind::at(walk, inner) == Some(Kind::Identifier) {
        walk.text(inner).into()
    } else {
        super::ecma::default_export(walk, value);
        "default".into()
    };
    walk.export(node, Export { name: "default".into(), what: Exported::Local(local) });
}

// CommonJS and imports at run time.

/// The module that a call takes in: `require("…")`, `import("…")`.
fn module_of(walk: &Walk<'_>, call: Node<'_>, function: Node<'_>) -> Option<(Box<str>, ImportForm)> {
    let form = match Kind::at(walk, function)? {
        Kind::ImportWord => ImportForm::Dynamic,
        Kind::Identifier if walk.text(function) == "require" => ImportForm::Require,
        _ => return None,
    };
    let from = walk.field(call, Field::Arguments as u8).and_then(|arguments| arguments.named_child(0));
    literal(walk, from).map(|from| (from, form))
}

/// Records what a call takes in, if it does; true if it is no call of anything.
pub(super) fn taken(walk: &mut Walk<'_>, call: Node<'_>, function: Node<'_>) -> bool {
    match module_of(walk, call, function) {
        Some((from, form)) => {
            let at = offset(call.start_byte());
            walk.import(Import {
                from,
                form,
                names: Vec::new(),
                types_only: false,
                within: None,
                either: false,
                at,
            });
            true
        }
        None => Kind::at(walk, function) == Some(Kind::ImportWord),
    }
}

/// A call that imports a module, with the module and the part of it that is meant: `await import("…")`,
/// `require("…").b`.
struct Taken<'t> {
    call: Node<'t>,
    from: Box<str>,
    form: ImportForm,
    imported: Imported,
}

impl<'t> Taken<'t> {
    fn of(walk: &Walk<'_>, value: Node<'t>) -> Option<Self> {
        let mut what = Imported::Module;
        let mut call = unwrapped(walk, value);
        if Kind::at(walk, call) == Some(Kind::Member) {
            what = imported(&walk.text(walk.field(call, Field::Property as u8)?));
            call = unwrapped(walk, walk.field(call, Field::Object as u8)?);
        }
        if Kind::at(walk, call) == Some(Kind::Await) {
            call = unwrapped(walk, call.named_child(0)?);
        }
        if Kind::at(walk, call) != Some(Kind::Call) {
            return None;
        }
        let (from, form) = module_of(walk, call, walk.field(call, Field::Function as u8)?)?;
        Some(Self { call, from, form, imported: what })
    }

    fn record(self, walk: &mut Walk<'_>, names: Vec<ImportedName>) -> Option<u32> {
        walk.claim(self.call);
        let at = offset(self.call.start_byte());
        walk.import(Import {
            from: self.from,
            form: self.form,
            names,
            types_only: false,
            within: None,
            either: false,
            at,
        })
    }

    /// Records it as what is exported under a name.
    fn pass_on(self, walk: &mut Walk<'_>, node: Node<'_>, name: Box<str>) {
        let imported = self.imported.clone();
        let names = vec![ImportedName { imported: imported.clone(), local: None }];
        if let Some(import) = self.record(walk, names) {
            walk.export(node, Export { name, what: Exported::Passed { import, imported } });
        }
    }
}

/// `const x = require("…")`, `const { a, b: c } = await import("…")`, `const a = require("…").b`: whether
/// names are those of another module, which makes them no symbols of this one.
pub(super) fn taken_by(walk: &mut Walk<'_>, pattern: Node<'_>, value: Node<'_>) -> bool {
    let Some(taken) = Taken::of(walk, value) else { return false };
    let names = match (Kind::at(walk, pattern), &taken.imported) {
        (Some(Kind::Identifier), imported) => {
            vec![ImportedName { imported: imported.clone(), local: Some(walk.text(pattern).into()) }]
        }
        (_, Imported::Module) => pattern_names(walk, pattern),
        (_, imported) => vec![ImportedName { imported: imported.clone(), local: None }],
    };
    taken.record(walk, names);
    true
}

/// `{ a, b: c }` as names taken.
fn pattern_names(walk: &Walk<'_>, pattern: Node<'_>) -> Vec<ImportedName> {
    let mut cursor = pattern.walk();
    let mut found = Vec::new();
    for part in pattern.named_children(&mut cursor) {
        let key = walk.field(part, Field::Key as u8).and_then(|key| property_name(walk, key));
        for bound in bound_names(walk, part) {
            let local: Box<str> = walk.text(bound).into();
            let name = key.as_deref().unwrap_or(&local);
            found.push(ImportedName { imported: imported(name), local: Some(local) });
        }
    }
    found
}

/// Whether names are those of all that a CommonJS module exports.
pub(super) fn is_exports(names: &[&str]) -> bool {
    matches!(names, ["module", "exports"])
}

/// `module.exports = …`: the properties of an object are exports by name, anything else is the export.
pub(super) fn set_exports(walk: &mut Walk<'_>, node: Node<'_>, right: Node<'_>) {
    if let Some(taken) = Taken::of(walk, right) {
        return taken.pass_on(walk, node, "export=".into());
    }
    let value = unwrapped(walk, right);
    match Kind::at(walk, value) {
        Some(Kind::Object) => {
            let mut cursor = value.walk();
            for part in value.named_children(&mut cursor) {
                export_property(walk, node, part);
            }
            walk.open_object(value);
        }
        Some(Kind::Identifier) => {
            let local = walk.text(value).into();
            walk.export(node, Export { name: "export=".into(), what: Exported::Local(local) });
        }
        _ => {
            super::ecma::default_export(walk, right);
            walk.export(node, Export { name: "export=".into(), what: Exported::Local("default".into()) });
        }
    }
}

/// Returns the value of `Store = module.exports = class { … }`, and records the constant as the export, so that the class gets no second
/// name.
pub(super) fn exported_too<'t>(walk: &mut Walk<'_>, name: Node<'_>, value: Node<'t>) -> Node<'t> {
    /// The most assignments in a row that are followed.
    const CHAIN_MAX: usize = 8;
    let local: Box<str> = walk.text(name).into();
    let mut value = value;
    for _ in 0..CHAIN_MAX {
        let parts = [Field::Left, Field::Right].map(|field| walk.field(value, field as u8));
        let ([Some(left), Some(right)], Some(Kind::Assignment)) = (parts, Kind::at(walk, value)) else {
            break;
        };
        let Some(path) = dotted(walk, left) else { break };
        let names: Vec<&str> = path.split('.').collect();
        let exported = match names[..] {
            ["exports"] => None,
            ["module", "exports"] => Some("export="),
            ["module", "exports", name] | ["exports", name] => Some(name),
            _ => break,
        };
        if let Some(exported) = exported {
            let what = Exported::Local(local.clone());
            walk.export(value, Export { name: exported.into(), what });
        }
        walk.claim(value);
        if exported == Some("export=") && Kind::at(walk, right) == Some(Kind::Object) {
            export_members(walk, right, &local);
        }
        value = right;
    }
    value
}

/// Records the members of the object that is both a module's exports and a constant's value: each is an export by its own name.
fn export_members(walk: &mut Walk<'_>, object: Node<'_>, of: &str) {
    let mut cursor = object.walk();
    for part in object.named_children(&mut cursor) {
        let key = walk.field(part, Field::Key as u8).or_else(|| walk.field(part, Field::Name as u8));
        let name: Option<Box<str>> = match Kind::at(walk, part) {
            Some(Kind::Shorthand) => Some(walk.text(part).into()),
            Some(Kind::Pair | Kind::MethodDefinition) => clause_name(walk, key),
            _ => None,
        };
        let Some(name) = name.filter(|name| !name.starts_with('[')) else { continue };
        let value = walk.field(part, Field::Value as u8).map(|value| unwrapped(walk, value));
        let local: Box<str> = match value.filter(|it| Kind::at(walk, *it) == Some(Kind::Identifier)) {
            Some(value) => walk.text(value).into(),
            None if Kind::at(walk, part) == Some(Kind::Shorthand) => name.clone(),
            None => format!("{of}.{name}").into(),
        };
        walk.export(part, Export { name, what: Exported::Local(local) });
    }
}

fn export_property(walk: &mut Walk<'_>, node: Node<'_>, part: Node<'_>) {
    let key = walk.field(part, Field::Key as u8).or_else(|| walk.field(part, Field::Name as u8));
    let name: Option<Box<str>> = match Kind::at(walk, part) {
        Some(Kind::Shorthand) => Some(walk.text(part).into()),
        Some(Kind::Pair | Kind::MethodDefinition) => clause_name(walk, key),
        _ => None,
    };
    // The name of a computed member is not known before the program runs.
    let Some(name) = name.filter(|name| !name.starts_with('[')) else { return };
    match walk.field(part, Field::Value as u8) {
        Some(value) => export_value(walk, node, &name, value),
        None => walk.export(node, Export { name: name.clone(), what: Exported::Local(name) }),
    }
}

/// `exports.name = …`.
pub(super) fn export_value(walk: &mut Walk<'_>, node: Node<'_>, name: &str, right: Node<'_>) {
    if let Some(taken) = Taken::of(walk, right) {
        return taken.pass_on(walk, node, name.into());
    }
    let value = unwrapped(walk, right);
    let local = (Kind::at(walk, value) == Some(Kind::Identifier)).then(|| walk.text(value).into());
    let what = Exported::Local(local.unwrap_or_else(|| name.into()));
    walk.export(node, Export { name: name.into(), what });
}

/// Marks what others can import, once all is known.
pub(super) fn finish(walk: &mut Walk<'_>) {
    super::ecma_doc_imports::finish(walk);
    walk.adopt();
    let locals = walk.exported_names();
    walk.mark_exported(|symbol| locals.contains(&symbol.path));
}
