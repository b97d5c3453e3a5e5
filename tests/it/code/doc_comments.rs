//! Types that the doc comments of JavaScript write, where values of the code have none.

use crate::support::graphs::{assert_edges, graph_of};

const STORE: &str = "class Store { find() {} read() {} }\nmodule.exports = Store;\nmodule.exports.Entry = class Entry { read() {} };\n";
const SHOP: &str = "export class Shop { go() {} read() {} }\n";

/// The imports of the files below.
const HEAD: &str = "/** @typedef {import(\"./store\")} Store */\n/**\n * @import { Shop, Shop as Market } from './shop.js'\n */\n";

fn assert_in(name: &str, main: &str, edges: &[&str]) {
    let main = format!("{HEAD}{main}");
    let found = graph_of(&[("store.js", STORE), ("shop.js", SHOP), (name, &main)]);
    let edges: Vec<String> = edges.iter().map(|it| it.replace("main", name)).collect();
    let edges: Vec<&str> = edges.iter().map(|it| &**it).filter(|it| it.starts_with(name)).collect();
    assert_edges(&found, &edges);
}

#[test]
fn a_parameter_has_the_type_of_its_doc_comment() {
    let main = "/**\n * Says it.\n * @param {Store} store the store\n * @param {?Shop} [shop=null] the shop\n * @returns {void} nothing\n */\n\
                export function said(store, shop = null) { store.find(); shop.go(); }\n\
                /** @param {Readonly<Shop> | undefined} it */\nconst arrow = it => it.go();\n\
                /** @param {import('./store').Entry} entry */\nexports.inline = function (entry) { entry.read(); };\n\
                class Keeper {\n  /** @param {Market} market */\n  keep(market) { market.read(); }\n}\n\
                run(/** @param {Store} store */ (store) => { store.read(); });\n\
                function given() { run(/** @param {Store} store */ (store) => { store.read(); }); }\n\
                /** @param {Store} store */\nexport const later = async (store) => { store.find(); };\n";
    assert_in(
        "main.js",
        main,
        &[
            "main:Keeper.keep -> shop.js:Shop.read",
            "main:arrow -> shop.js:Shop.go",
            "main:given -> ?:run",
            "main:given -> store.js:Store.read",
            "main:inline -> store.js:Entry.read",
            "main:later -> store.js:Store.find",
            "main:said -> shop.js:Shop.go",
            "main:said -> store.js:Store.find",
        ],
    );
}

#[test]
fn a_variable_a_field_and_a_value_in_brackets_have_the_type_of_their_comment() {
    let main = "function local(any) {\n  /** @type {Store} */\n  const store = any(); store.find(); }\n\
                function cast(any) { (/** @type {Shop} */ (any)).go(); const it = /** @type {Shop} */ (any); it.read(); }\n\
                function two(any) { /** @type {Shop} */ let a = any, b = any; a.go(); b.go(); }\n\
                class Keeper {\n  /** @type {Store | null} */\n  store = null;\n  constructor(any) {\n    /** @type {Shop} */\n    this.shop = any;\n  }\n\
                  /** @returns {Store} it */\n  get kept() { return this.any; }\n\
                  keep() { this.store.read(); this.shop.read(); this.kept.find(); }\n}\n";
    assert_in(
        "main.js",
        main,
        &[
            "main:Keeper.keep -> shop.js:Shop.read",
            "main:Keeper.keep -> store.js:Store.find",
            "main:Keeper.keep -> store.js:Store.read",
            "main:cast -> shop.js:Shop.go",
            "main:cast -> shop.js:Shop.read",
            "main:local -> ?:any",
            "main:local -> store.js:Store.find",
            "main:two -> shop.js:Shop.go",
        ],
    );
}

#[test]
fn a_comment_that_says_no_one_class_or_belongs_to_other_code_says_nothing() {
    let main = "/** @param {Store | Shop} it */\nfunction both(it) { it.read(); }\n\
                /** @param {Store[]} it */\nfunction list(it) { it.read(); }\n\
                /** @param {(it: Store) => void} it */\nfunction callback(it) { it.read(); }\n\
                /**\n * @template Store\n * @param {Store} it\n */\nfunction chosen(it) { it.read(); }\n\
                /** @param {Store} it */\nconst count = 1;\nfunction behind(it) { it.read(); }\n\
                /* @param {Store} it */\nfunction plain(it) { it.read(); }\n\
                // @param {Store} it\nfunction line(it) { it.read(); }\n\
                /** @param {Store it */\nfunction open(it) { it.read(); }\n\
                /** @param {Store */\nfunction cut(it) { it.read(); }\n\
                function pattern(any) { /** @type {Store} */ const a = 1; /b*/\n const it = any; it.read(); }\n";
    assert_in(
        "main.js",
        main,
        &[
            "main:behind -> ?:read",
            "main:both -> ?:read",
            "main:callback -> ?:read",
            "main:chosen -> ?:read",
            "main:cut -> ?:read",
            "main:line -> ?:read",
            "main:list -> ?:read",
            "main:open -> ?:read",
            "main:pattern -> ?:read",
            "main:plain -> ?:read",
        ],
    );
}

#[test]
fn a_name_of_a_type_is_none_of_a_value() {
    let types = "export class User { find() {} static all() {} }\n";
    let main = "/** @typedef {import('./types').User} User */\n\
                const User = model('User');\nmodule.exports = { User };\n\
                function value() { User.all(); new User(); }\n\
                /** @param {User} user */\nfunction typed(user) { user.find(); }\n";
    let other = "const { User } = require('./main');\nfunction f() { User.all(); }\n";
    let graph = graph_of(&[("types.js", types), ("main.js", main), ("other.js", other)]);
    let edges = graph.edges();
    let to_types = edges.iter().filter(|(_, to)| to.starts_with("types.js"));
    let to_types: Vec<_> = to_types.map(|(from, to)| format!("{from} -> {to}")).collect();
    assert_eq!(to_types, ["main.js:typed -> types.js:User.find"]);
}

#[test]
fn a_type_counts_where_its_comment_is_and_nowhere_if_two_differ() {
    let main = "function a(any) {\n  /** @typedef {import('./store')} S */\n  /** @type {S} */\n  const s = any; s.read();\n}\n\
                function b(any) {\n  /** @typedef {import('./shop').Shop} S */\n  /** @type {S} */\n  const s = any; s.read();\n}\n\
                /** @typedef {import('./store')} Two */\n/** @typedef {import('./shop').Shop} Two */\n\
                /** @param {Two} it */\nfunction two(it) { it.read(); }\n\
                /** @typedef {object} Store */\n/** @param {Store} it */\nfunction composed(it) { it.read(); }\n";
    assert_in(
        "main.js",
        main,
        &[
            "main:a -> store.js:Store.read",
            "main:b -> shop.js:Shop.read",
            "main:composed -> ?:read",
            "main:two -> ?:read",
        ],
    );
}

#[test]
fn what_stands_behind_a_name_and_other_tags_are_looked_at() {
    let main = "/** @param {import('./shop').Shop[]} it */\nfunction list(it) { it.read(); }\n\
                /** @param {import('./shop').Shop & import('./store')} it */\nfunction both(it) { it.read(); }\n\
                /** @param {import('./shop').Shop<Store>} it */\nfunction made(it) { it.read(); }\n\
                /**\n * @callback Visitor\n * @param {Shop} it\n */\nfunction visitor(it) { it.read(); }\n\
                const a = 1; /** @type {Shop} */\nlet line = any;\nfunction uses() { line.read(); }\n\
                /** @type {Shop} */\nconst object = { go() {} };\nfunction own() { object.go(); }\n";
    assert_in(
        "main.js",
        main,
        &[
            "main:both -> ?:read",
            "main:list -> ?:read",
            "main:made -> shop.js:Shop.read",
            "main:own -> main:object.go",
            "main:uses -> ?:read",
            "main:visitor -> ?:read",
        ],
    );
}

#[test]
fn what_the_code_says_counts_where_the_comment_says_nothing() {
    let main = "const Store = require('./store');\n\
                function f() {\n /** @type {any} */\n const it = new Store(); it.find(); }\n\
                function g() {\n /** @type {Shop} */\n const it = new Store(); it.read(); }\n";
    assert_in(
        "main.js",
        main,
        &[
            "main:f -> store.js:Store",
            "main:f -> store.js:Store.find",
            "main:g -> shop.js:Shop.read",
            "main:g -> store.js:Store",
        ],
    );
}

#[test]
fn typescript_goes_by_its_own_types_alone() {
    let main = "import { Shop } from './shop.js'; import Store from './store.js';\n\
                /** @param {Shop} it */\nfunction f(it: any) { it.read(); }\n\
                /** @param {Shop} it */\nfunction g(it) { it.read(); }\n";
    assert_in("main.ts", main, &["main:f -> ?:read", "main:g -> ?:read"]);
}
