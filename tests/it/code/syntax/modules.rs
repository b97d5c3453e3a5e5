//! Imports and exports, which tie files to each other, as they are written.

use provost::syntax::{Exported, ImportForm, Imported, Language, Reading};

use super::reading_of;

/// Imports as `form module: what as local`; what has no name is in brackets.
fn imports(reading: &Reading) -> Vec<String> {
    let what = |imported: &Imported| match imported {
        Imported::Name(name) => name.to_string(),
        Imported::Module => "[module]".into(),
        Imported::Root => "[root]".into(),
        Imported::Everything => "[everything]".into(),
    };
    let all = reading.imports.iter().map(|import| {
        let names: Vec<String> = import
            .names
            .iter()
            .map(|name| match &name.local {
                Some(local) => format!("{} as {local}", what(&name.imported)),
                None => what(&name.imported),
            })
            .collect();
        let types = if import.types_only { " types" } else { "" };
        format!("{:?}{types} {}: {}", import.form, import.from, names.join(", "))
    });
    all.map(|line| line.trim_end().into()).collect()
}

/// Exports as `name = local`, or `name = what of module`.
fn exports(reading: &Reading) -> Vec<String> {
    let all = reading.exports.iter().map(|export| match &export.what {
        Exported::Local(local) => format!("{} = {local}", export.name),
        Exported::Passed { import, imported } => {
            let from = &reading.imports[*import as usize];
            assert!(from.form != ImportForm::Static);
            format!("{} = {imported:?} of {}", export.name, from.from)
        }
    });
    all.collect()
}

#[test]
fn typescript_imports_of_every_form_are_found() {
    let reading = reading_of(
        Language::TypeScript,
        "import def, * as ns from './x';
         import d2, { a as b, type C, 'odd name' as odd } from 'y';
         import 'side';
         import type { T } from \"t\";
         import z = require('zz');
         const { h, i: { j }, ...k } = await import('./dyn');
         const whole = require('cjs'), one = require('cjs2').one;
         async function lazy() { const m = await import('./later'); import(name); require(name); }
         require('run');",
    );
    assert_eq!(
        imports(&reading),
        [
            "Static ./x: default as def, [module] as ns",
            "Static y: default as d2, a as b, C as C, odd name as odd",
            "Static side:",
            "Static types t: T as T",
            "Static zz: [module] as z",
            "Dynamic ./dyn: h as h, i as j, k as k",
            "Require cjs: [module] as whole",
            "Require cjs2: one as one",
            "Dynamic ./later: [module] as m",
            "Require run:",
        ]
    );
    let lazy = reading.numbers_of("lazy")[0];
    let within: Vec<_> = reading.imports.iter().map(|import| import.within).collect();
    assert_eq!(within[8], Some(lazy));
    assert_eq!(within[0], None);
}

#[test]
fn typescript_exports_of_every_form_are_found() {
    let reading = reading_of(
        Language::TypeScript,
        "export * from './a'; export * as q from './b'; export { c as default, d } from './c'; export type { T } from './t';
         export const x = 1, { y, z: [w] } = o; export function f(); export function f() {} export class K {}
         export interface I {} export type A = 1; export enum E { a } export namespace N { export const inner = 1; }
         export declare function amb(): void; export abstract class B {}
         const local = 1; export { local, local as other }; export { local as 'odd name' };
         export default local;",
    );
    assert_eq!(
        exports(&reading),
        [
            "* = Everything of ./a",
            "q = Module of ./b",
            "default = Name(\"c\") of ./c",
            "d = Name(\"d\") of ./c",
            "T = Name(\"T\") of ./t",
            "x = x",
            "y = y",
            "w = w",
            "f = f",
            "f = f",
            "K = K",
            "I = I",
            "A = A",
            "E = E",
            "N = N",
            "amb = amb",
            "B = B",
            "local = local",
            "other = local",
            "odd name = local",
            "default = local",
        ]
    );
    let types: Vec<bool> = reading.imports.iter().map(|import| import.types_only).collect();
    assert_eq!(types, [false, false, false, true]);
}

#[test]
fn what_is_exported_without_a_name_is_called_default() {
    for (text, kind) in [
        ("export default class extends X { m() {} }", "Class"),
        ("export default function (a) {}", "Function"),
        ("export default (a) => a;", "Function"),
        ("export default { m() {}, n: { m2: () => 1 } };", "Variable"),
        ("export default defineComponent({ m() {} });", "Variable"),
        ("module.exports = function (a) {};", "Function"),
    ] {
        let reading = reading_of(Language::JavaScript, text);
        let symbol = reading.find("default")[0];
        assert_eq!((&*symbol.path, format!("{:?}", symbol.kind).as_str()), ("default", kind), "{text}");
        assert!(symbol.exported, "{text}");
    }
    let reading = reading_of(Language::JavaScript, "export default { m() {}, n: { m2: () => 1 } };");
    assert_eq!(reading.find("m2")[0].path, "default.n.m2".into());
}

#[test]
fn commonjs_exports_are_found() {
    let reading = reading_of(
        Language::JavaScript,
        "function a() {} module.exports = { a, b: a, c() {}, d: () => 1, [e]: 2, ...f };
         exports.g = (x) => x; module.exports.h = a; exports.i = 1;",
    );
    assert_eq!(exports(&reading), ["a = a", "b = a", "c = c", "d = d", "g = g", "h = a", "i = i"]);
    assert!(reading.find("d")[0].exported);
    let whole = reading_of(Language::JavaScript, "class K {} module.exports = K;");
    assert_eq!(exports(&whole), ["export= = K"]);
    let passed = reading_of(Language::JavaScript, "module.exports = require('./lib');");
    assert_eq!(exports(&passed), ["export= = Module of ./lib"]);
    let barrel = reading_of(
        Language::JavaScript,
        "exports.a = require('./a'); exports.b = require('./b').c; module.exports = { d: require('./d'), e: require('./e') };",
    );
    let passed = ["a = Module of ./a", "b = Name(\"c\") of ./b", "d = Module of ./d", "e = Module of ./e"];
    assert_eq!(exports(&barrel), passed);
    assert_eq!(barrel.imports.len(), 4, "each once");
    let old = reading_of(Language::TypeScript, "class K {} export = K;");
    assert_eq!(exports(&old), ["export= = K"]);
}

#[test]
fn what_comes_from_elsewhere_is_no_symbol_of_this_file() {
    let reading = reading_of(
        Language::JavaScript,
        "const x = require('x'), { y } = require('y'); exports.a = exports.b = void 0; exports.f = f;
         function f() { x(); y(); (0, x.z)(); }",
    );
    let paths: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
    assert_eq!(paths, ["f"]);
    let callees: Vec<&str> = reading.calls.iter().map(|call| &*call.callee.name).collect();
    assert_eq!(callees, ["x", "y", "z"]);
}

#[test]
fn python_imports_of_every_form_are_found() {
    let reading = reading_of(
        Language::Python,
        "from __future__ import annotations
from . import x as y, z
from ..a.b import *
from ...  import q
import a.b as c, d.e, f
if TYPE_CHECKING:
    from foo import (bar, baz,)
def g():
    import late
",
    );
    assert_eq!(
        imports(&reading),
        [
            "Static __future__: annotations as annotations",
            "Static .: x as y, z as z",
            "Static ..a.b: [everything]",
            "Static ...: q as q",
            "Static a.b: [module] as c",
            "Static d.e: [root] as d",
            "Static f: [module] as f",
            "Static foo: bar as bar, baz as baz",
            "Static late: [module] as late",
        ]
    );
}

#[test]
fn python_exports_what_all_says_or_else_what_has_no_underscore() {
    let reading = reading_of(
        Language::Python,
        "__all__ = ['a', \"b\"]\n__all__ += ['c']\ndef a(): pass\ndef d(): pass\n",
    );
    assert_eq!(exports(&reading), ["a = a", "b = b", "c = c"]);
    assert!(reading.find("a")[0].exported && !reading.find("d")[0].exported);
    let reading =
        reading_of(Language::Python, "def a(): pass\ndef _b(): pass\nclass C:\n    def _d(self): pass\n");
    let exported: Vec<bool> = reading.symbols.iter().map(|symbol| symbol.exported).collect();
    assert_eq!(exported, [true, false, true, true]);
    assert_eq!(exports(&reading), [""; 0], "nothing is said");
}
