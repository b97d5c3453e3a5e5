//! Calls across files: every kind of import that people write, with the edges that a reader would draw.

use crate::support::graphs::{assert_edges, callees, callers, graph_of, symbol, texts};
use provost::graph::LookupResult;

#[test]
fn the_documented_example_of_wit_comes_true() {
    let graph = graph_of(&[
        (
            "src/auth.ts",
            "export function validateToken(t: string) { return decode(t); }\nfunction decode(t: string) {}",
        ),
        (
            "src/routes.ts",
            "import { validateToken } from './auth';\nexport function handle(r: any) { return validateToken(r.token) && other(); }",
        ),
    ]);
    assert_eq!(callers(&graph, "src/auth.ts:validateToken"), ["src/routes.ts:handle"]);
    assert_eq!(callees(&graph, "src/routes.ts:handle"), ["src/auth.ts:validateToken", "?:other"]);
    assert_eq!(callers(&graph, "?:other"), ["src/routes.ts:handle"]);
}

pub(super) const TYPESCRIPT: &[(&str, &str)] = &[
    (
        "tsconfig.json",
        "{\n  // as people write it\n  \"compilerOptions\": { \"baseUrl\": \".\", \"paths\": { \"@lib/*\": [\"src/lib/*\"], \"@auth\": [\"src/auth/index.ts\"], }, },\n}",
    ),
    (
        "src/auth/index.ts",
        "export * from './token';\nexport { Session as UserSession } from './session';\nexport * as errors from './errors';\n",
    ),
    (
        "src/auth/token.ts",
        "export const verify = (t: string) => t;\nexport default function mint() { return verify('x'); }\n",
    ),
    (
        "src/auth/session.ts",
        "import { Base } from '../lib/base.js';\nexport class Session extends Base {\n  constructor() { super(); this.touch(); }\n  renew() { this.log(); }\n  static open() { return new Session(); }\n}\n",
    ),
    ("src/auth/errors.ts", "export function fail(): never { throw new Error(); }\n"),
    ("src/lib/base.ts", "export class Base {\n  touch() {}\n  log() {}\n}\n"),
    ("src/lib/deep/util.mts", "export function pad() {}\n"),
    (
        "src/app.ts",
        "import mint, { verify as check } from './auth/token';\nimport { UserSession, errors, verify } from '@auth';\nimport * as base from '@lib/base';\nimport { pad } from 'src/lib/deep/util.mjs';\nimport type { Session } from './auth/session';\nimport React from 'react';\n\nexport function main(s: Session) {\n  mint(); check('a'); verify('b'); pad();\n  errors.fail();\n  new base.Base();\n  UserSession.open();\n  s.renew();\n  React.useState();\n}\nexport async function lazily() {\n  const { pad } = await import('./lib/deep/util.mjs');\n  pad();\n}\n",
    ),
    (
        "src/ui/card.tsx",
        "export function Card(p: any) { return <div>{p.title}</div>; }\nexport default class Page { render() { return <Card title='x'/>; } }\n",
    ),
    (
        "src/ui/list.tsx",
        "import Page, { Card } from './card';\nimport * as ui from './card';\nexport const List = (p: any) => p.items.map((i: any) => <Card key={i}/>);\nexport function all() { return <><Page/><ui.Card/></>; }\n",
    ),
];

#[test]
fn typescript_is_followed_through_paths_index_files_and_what_is_passed_on() {
    assert_edges(
        &graph_of(TYPESCRIPT),
        &[
            "src/auth/token.ts:mint -> src/auth/token.ts:verify",
            "src/auth/session.ts:Session.constructor -> src/lib/base.ts:Base",
            "src/auth/session.ts:Session.constructor -> src/lib/base.ts:Base.touch",
            "src/auth/session.ts:Session.renew -> src/lib/base.ts:Base.log",
            "src/auth/session.ts:Session.open -> src/auth/session.ts:Session",
            "src/auth/errors.ts:fail -> ?:Error",
            "src/app.ts:main -> src/auth/token.ts:mint",
            "src/app.ts:main -> src/auth/token.ts:verify",
            "src/app.ts:main -> src/lib/deep/util.mts:pad",
            "src/app.ts:main -> src/auth/errors.ts:fail",
            "src/app.ts:main -> src/lib/base.ts:Base",
            "src/app.ts:main -> src/auth/session.ts:Session.open",
            "src/app.ts:main -> src/auth/session.ts:Session.renew",
            "src/app.ts:main -> ?:useState",
            "src/app.ts:lazily -> src/lib/deep/util.mts:pad",
            "src/ui/card.tsx:Page.render -> src/ui/card.tsx:Card",
            "src/ui/list.tsx:List -> src/ui/card.tsx:Card",
            "src/ui/list.tsx:List -> ?:map",
            "src/ui/list.tsx:all -> src/ui/card.tsx:Page",
            "src/ui/list.tsx:all -> src/ui/card.tsx:Card",
        ],
    );
}

pub(super) const JAVASCRIPT: &[(&str, &str)] = &[
    ("package.json", r##"{ "name": "root", "imports": { "#deep/*": "./lib/deep/*.js" } }"##),
    ("packages/kit/package.json", r#"{ "name": "@acme/kit", "main": "dist/index.js" }"#),
    ("packages/kit/src/index.js", "export function kit() {}\n"),
    ("packages/kit/src/extra.js", "export function extra() {}\n"),
    (
        "lib/math.js",
        "function add(a, b) { return a + b; }\nmodule.exports = { add, twice: (a) => add(a, a) };\n",
    ),
    ("lib/log.cjs", "exports.info = function () {};\nexports.warn = () => exports.info();\n"),
    ("lib/make.js", "class Maker { make() {} }\nmodule.exports = Maker;\n"),
    ("lib/whole.js", "module.exports = require('./math');\n"),
    ("lib/deep/x.js", "export default () => 1;\n"),
    (
        "main.js",
        "const math = require('./lib/math');\nconst { info, warn: alarm } = require('./lib/log.cjs');\nconst Maker = require('./lib/make');\nconst whole = require('./lib/whole');\nconst x = require('#deep/x');\nimport { kit } from '@acme/kit';\nimport { extra } from '@acme/kit/extra';\nfunction run() {\n  math.add(1, 2); info(); alarm();\n  const m = new Maker(); m.make();\n  whole.add(1, 2); x(); kit(); extra();\n}\n",
    ),
];

#[test]
fn commonjs_and_packages_of_the_repository_are_followed() {
    let graph = graph_of(JAVASCRIPT);
    assert_eq!(
        callees(&graph, "main.js:run"),
        [
            "lib/math.js:add",
            "lib/log.cjs:info",
            "lib/log.cjs:warn",
            "lib/make.js:Maker",
            "lib/make.js:Maker.make",
            "lib/deep/x.js:default",
            "packages/kit/src/index.js:kit",
            "packages/kit/src/extra.js:extra",
        ]
    );
}

pub(super) const PYTHON: &[(&str, &str)] = &[
    ("src/shop/__init__.py", "from .models import Cart as Basket\nfrom .price import *\n"),
    (
        "src/shop/models.py",
        "from . import price\nfrom .base import Model\nimport shop.tools.text as t\n\nclass Cart(Model):\n    def __init__(self):\n        super().__init__()\n        self.save()\n    def total(self):\n        return price.total_of(self) + self.tax()\n    @classmethod\n    def empty(cls):\n        return cls()\n    def name(self):\n        return t.title('x')\n",
    ),
    (
        "src/shop/base.py",
        "class Model:\n    def __init__(self): pass\n    def save(self): pass\n    def tax(self): return 1\n",
    ),
    ("src/shop/price.py", "def total_of(cart):\n    return _inner(cart)\ndef _inner(cart): return 0\n"),
    ("src/shop/tools/text.py", "from ..price import total_of as tot\ndef title(s): return tot(s)\n"),
    (
        "src/shop/tools/deep/x.py",
        "from ...shop_missing import nothing\nfrom ... import price\ndef f(): return price.total_of(nothing())\n",
    ),
    (
        "app.py",
        "import shop.price\nimport shop.tools.text\nimport os.path\nfrom shop import Basket, total_of, models\n\ndef main():\n    b = Basket()\n    shop.price.total_of(b)\n    total_of(b)\n    models.Cart.empty()\n    shop.tools.text.title('x')\n    os.path.join('a')\n    b.total()\n\ndef late():\n    from shop.base import Model\n    Model().save()\n",
    ),
    ("src/shop/json.py", "def loads(s): pass\n"),
    ("src/shop/late.py", "import shop\ndef g(): return shop.price.total_of(1)\n"),
    ("src/shop/user.py", "import json\ndef parse(): return json.loads('x')\n"),
];

#[test]
fn python_is_followed_through_packages_dots_and_init_files() {
    assert_edges(
        &graph_of(PYTHON),
        &[
            "src/shop/models.py:Cart.__init__ -> src/shop/base.py:Model.__init__",
            "src/shop/models.py:Cart.__init__ -> src/shop/base.py:Model.save",
            "src/shop/models.py:Cart.__init__ -> ?:super",
            "src/shop/models.py:Cart.total -> src/shop/price.py:total_of",
            "src/shop/models.py:Cart.total -> src/shop/base.py:Model.tax",
            "src/shop/models.py:Cart.empty -> ?:cls",
            "src/shop/models.py:Cart.empty -> ?:classmethod",
            "src/shop/models.py:Cart.name -> src/shop/tools/text.py:title",
            "src/shop/price.py:total_of -> src/shop/price.py:_inner",
            "src/shop/tools/text.py:title -> src/shop/price.py:total_of",
            "src/shop/tools/deep/x.py:f -> src/shop/price.py:total_of",
            "src/shop/tools/deep/x.py:f -> ?:nothing",
            "app.py:main -> src/shop/models.py:Cart",
            "app.py:main -> src/shop/price.py:total_of",
            "app.py:main -> src/shop/models.py:Cart.empty",
            "app.py:main -> src/shop/tools/text.py:title",
            "app.py:main -> ?:join",
            "app.py:main -> src/shop/models.py:Cart.total",
            "app.py:late -> src/shop/base.py:Model",
            "app.py:late -> src/shop/base.py:Model.save",
            "src/shop/late.py:g -> src/shop/price.py:total_of",
            "src/shop/user.py:parse -> ?:loads",
        ],
    );
}

#[test]
fn callers_of_a_class_or_file_are_those_of_everything_in_it_from_outside() {
    let graph = graph_of(TYPESCRIPT);
    let session = ["src/app.ts:main"];
    assert_eq!(callers(&graph, "src/auth/session.ts:Session"), session);
    assert_eq!(
        callers(&graph, "src/auth/session.ts:Session.constructor"),
        ["src/auth/session.ts:Session.open"]
    );
    assert_eq!(callers(&graph, "src/auth/session.ts:"), session);
    assert_eq!(callers(&graph, "src/auth/session.ts:renew"), session, "by the end of its path");
    assert_eq!(callers(&graph, "src/auth/token.ts:default"), session, "by the name that others import");
    assert_eq!(callers(&graph, "src/none.ts:f"), [""; 0]);
}

#[test]
fn a_name_that_is_not_there_brings_up_others_that_may_be_meant() {
    let graph = graph_of(TYPESCRIPT);
    assert_eq!(graph.asked(&symbol("src/none.ts:f")), LookupResult::NoSuchFile);
    assert_eq!(
        graph.asked(&symbol("src/auth/session.ts:renews")),
        LookupResult::NoSuchSymbol(vec![symbol("src/auth/session.ts:Session.renew")])
    );
    assert_eq!(texts(&graph.named("renew")), ["src/auth/session.ts:Session.renew"]);
    assert_eq!(texts(&graph.named("Card")), ["src/ui/card.tsx:Card"]);
}

#[test]
fn modules_that_pass_on_each_others_names_in_circles_come_to_an_end() {
    let mut files: Vec<(String, String)> = Vec::new();
    for at in 0..40 {
        let all: String =
            (0..40).filter(|to| *to != at).map(|to| format!("export * from './m{to}';\n")).collect();
        files.push((format!("m{at}.ts"), all));
    }
    files.push(("use.ts".into(), "import { nowhere } from './m0';\nfunction f() { nowhere(); }\n".into()));
    files.push((
        "a.ts".into(),
        "import { B } from './b';\nexport class A extends B { f() { this.g(); super.h(); } }\n".into(),
    ));
    files.push(("b.ts".into(), "import { A } from './a';\nexport class B extends A {}\n".into()));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let graph = graph_of(&files);
    assert_edges(&graph, &["use.ts:f -> ?:nowhere", "a.ts:A.f -> ?:g", "a.ts:A.f -> ?:h"]);
}

#[test]
fn a_name_that_two_stars_pass_on_is_passed_on_by_none() {
    let graph = graph_of(&[
        ("a.ts", "export function both() {}\nexport function one() {}\n"),
        ("b.ts", "export function both() {}\nexport * from './a';\n"),
        ("c.ts", "export * from './a';\nexport * from './d';\n"),
        ("d.ts", "export function both() {}\nexport * from './c';\n"),
        ("own.ts", "export * from './a';\nexport * from './d';\nexport function both() {}\n"),
        ("e.ts", "import { both, one } from './c';\nexport function run() { both(); one() }\n"),
        ("f.ts", "import { both, one } from './b';\nexport function run() { both(); one() }\n"),
        ("g.ts", "import { both } from './own';\nexport function run() { both() }\n"),
    ]);
    assert_edges(
        &graph,
        &[
            // Which of the two it is, the language does not say either; it is an error there.
            "e.ts:run -> ?:both",
            "e.ts:run -> a.ts:one",
            "f.ts:run -> b.ts:both",
            "f.ts:run -> a.ts:one",
            "g.ts:run -> own.ts:both",
        ],
    );
}

#[test]
fn of_imports_of_which_one_counts_each_is_a_guess() {
    let graph = graph_of(&[
        ("fast.py", "def load(): pass\ndef dump(): pass\n"),
        ("slow.py", "def load(): pass\n"),
        (
            "a.py",
            "try:\n    from fast import load\nexcept ImportError:\n    from slow import load\n\ndef run():\n    load()\n",
        ),
        (
            "b.py",
            "try:\n    import fast as it\nexcept ImportError:\n    import slow as it\n\ndef run():\n    it.load()\n",
        ),
        ("c.py", "from a import load\n\ndef run():\n    load()\n"),
        (
            "d.py",
            "import sys\nif sys.version_info > (3,):\n    from fast import load\nelse:\n    from slow import load\n\ndef run():\n    load()\n",
        ),
        // What is imported again for certain counts alone.
        (
            "e.py",
            "try:\n    from fast import load\nexcept ImportError:\n    pass\nfrom slow import load\n\ndef run():\n    load()\n",
        ),
        // Only one of them is of the repository.
        (
            "f.py",
            "try:\n    from ujson import load\nexcept ImportError:\n    from slow import load\n\ndef run():\n    load()\n",
        ),
        (
            "g.py",
            "def run():\n    try:\n        from fast import load\n    except ImportError:\n        from slow import load\n    load()\n",
        ),
    ]);
    assert_edges(
        &graph,
        &[
            "a.py:run -> fast.py:load",
            "a.py:run -> slow.py:load",
            "b.py:run -> fast.py:load",
            "b.py:run -> slow.py:load",
            "c.py:run -> fast.py:load",
            "c.py:run -> slow.py:load",
            "d.py:run -> fast.py:load",
            "d.py:run -> slow.py:load",
            "e.py:run -> slow.py:load",
            "f.py:run -> slow.py:load",
            "g.py:run -> fast.py:load",
            "g.py:run -> slow.py:load",
        ],
    );
}

#[test]
fn the_parameters_of_a_class_of_kotlin_and_its_delegates_are_code_of_the_class() {
    let known = "package p\nfun num(): Int = 1\nopen class Base(n: Int)\nclass Impl(n: Int) : Runnable\n";
    let main = "package p\nclass A(val x: Int = num())\nclass B(x: Int = num()) : Base(num())\n\
                class D : Runnable by Impl(num())\ndata class F(val f: () -> Int = { num() })\n\
                object O : Runnable by Impl(1)\nenum class E(val i: Int = num()) { P(1) }\n";
    assert_edges(
        &graph_of(&[("p/Known.kt", known), ("p/Main.kt", main)]),
        &[
            "p/Main.kt:A -> p/Known.kt:num",
            "p/Main.kt:B -> p/Known.kt:num",
            "p/Main.kt:B -> p/Known.kt:Base",
            "p/Main.kt:D -> p/Known.kt:Impl",
            "p/Main.kt:D -> p/Known.kt:num",
            "p/Main.kt:F -> p/Known.kt:num",
            "p/Main.kt:O -> p/Known.kt:Impl",
            "p/Main.kt:E -> p/Known.kt:num",
        ],
    );
}

#[test]
fn a_constant_or_a_field_calls_what_its_value_calls() {
    let graph = graph_of(&[
        ("h.ts", "export function helper() {} export class Shop {}"),
        (
            "a.ts",
            "import { helper, Shop } from './h';\n\
             export const a = helper();\n\
             const c = { x: helper(), y: { z: new Shop() } };\n\
             class K { static s = helper(); t = new Shop(); u = () => helper(); static { helper(); } @dec m() {} }\n\
             const { d, e } = helper();\n\
             const mixed = mixin(class { @dec m() {} f = helper() });\n\
             function fn() { class L { t = helper(); } const z = new Shop(); }\n\
             helper();",
        ),
        ("b.js", "class Z { b = own() }\nfunction own() {}\nmodule.exports = { c: own() };"),
        ("c.tsx", "const Box = () => null;\nconst element = <Box/>;"),
    ]);
    let expected = [
        "a.ts:a -> h.ts:helper",
        "a.ts:c.x -> h.ts:helper",
        "a.ts:c.y.z -> h.ts:Shop",
        "a.ts:K.s -> h.ts:helper",
        "a.ts:K.t -> h.ts:Shop",
        "a.ts:K.u -> h.ts:helper",
        "a.ts:K -> h.ts:helper",
        "a.ts:K.m -> ?:dec",
        "a.ts:d -> h.ts:helper",
        "a.ts:mixed -> ?:mixin",
        "a.ts:mixed.m -> ?:dec",
        "a.ts:mixed.f -> h.ts:helper",
        "a.ts:fn -> h.ts:helper",
        "a.ts:fn -> h.ts:Shop",
        "b.js:Z.b -> b.js:own",
        "b.js:c -> b.js:own",
        "c.tsx:element -> c.tsx:Box",
    ];
    assert_edges(&graph, &expected);
    let main = "from h import helper, Item\n\
                A = helper()\nB, C = helper(), 1\nD = E = helper()\nF = lambda: helper()\nhelper()\n\
                class K:\n s = helper()\n t: Item = Item()\n @dec(helper())\n def m(self): pass\n";
    let graph = graph_of(&[("h.py", "def helper(): pass\nclass Item: pass\n"), ("a.py", main)]);
    let expected = [
        "a.py:A -> h.py:helper",
        "a.py:B -> h.py:helper",
        "a.py:E -> h.py:helper",
        "a.py:F -> h.py:helper",
        "a.py:K.s -> h.py:helper",
        "a.py:K.t -> h.py:Item",
        "a.py:K.m -> ?:dec",
        "a.py:K.m -> h.py:helper",
    ];
    assert_edges(&graph, &expected);
    let ruby = "def run; end\nAll = run\nclass K\n  def self.make; end\n  Made = make\nend\nrun\n";
    let php = "<?php\nfunction run() {}\nclass Shop {}\nconst SHOP = new Shop();\n$a = run();\n";
    assert_edges(
        &graph_of(&[("a.rb", ruby), ("a.php", php)]),
        &["a.rb:All -> a.rb:run", "a.rb:K.Made -> a.rb:K.make", "a.php:SHOP -> a.php:Shop"],
    );
}

#[test]
fn a_module_of_ruby_around_a_class_has_constants_for_it_and_no_methods() {
    let shop = "module Shop\n  def self.name; end\n  def helper; end\n  class Made; end\n  class Base; def above; end; end\n\
                class User < Base\n    def label; name.upcase; helper; end\n    def all; above; own; top; Made.new; end\n\
                def own; end\n  end\n  def self.other; name; helper; end\nend\ndef top; end\n";
    let more = "require_relative 'shop'\nclass Shop::User\n  def more; name; own; top; above; end\nend\n\
                module Shop\n  class Last\n    include Shop\n    def run; helper; end\n  end\nend\n";
    assert_edges(
        &graph_of(&[("lib/shop.rb", shop), ("lib/more.rb", more)]),
        &[
            "lib/shop.rb:Shop.User.label -> ?:name",
            "lib/shop.rb:Shop.User.label -> ?:upcase",
            "lib/shop.rb:Shop.User.label -> ?:helper",
            "lib/shop.rb:Shop.User.all -> lib/shop.rb:Shop.Base.above",
            "lib/shop.rb:Shop.User.all -> lib/shop.rb:Shop.User.own",
            "lib/shop.rb:Shop.User.all -> lib/shop.rb:top",
            "lib/shop.rb:Shop.User.all -> lib/shop.rb:Shop.Made",
            "lib/shop.rb:Shop.other -> lib/shop.rb:Shop.name",
            "lib/shop.rb:Shop.other -> lib/shop.rb:Shop.helper",
            "lib/more.rb:Shop.User.more -> ?:name",
            "lib/more.rb:Shop.User.more -> lib/shop.rb:Shop.User.own",
            "lib/more.rb:Shop.User.more -> lib/shop.rb:top",
            "lib/more.rb:Shop.User.more -> lib/shop.rb:Shop.Base.above",
            "lib/more.rb:Shop.Last.run -> lib/shop.rb:Shop.helper",
        ],
    );
}

#[test]
fn a_parameter_of_a_template_is_not_the_class_of_its_name() {
    let known = "class A { public: A(); void foo(); };\nclass B { public: void foo(); };\n";
    let main = "#include \"a.hpp\"\n\
                template <class A> void given(A a) { a.foo(); }\n\
                template <typename A> struct Box { A held; void run() { held.foo(); } };\n\
                template <class A> struct Above : A { void run() { foo(); } };\n\
                template <class T> void beside(T t, A a) { a.foo(); }\n";
    assert_edges(
        &graph_of(&[("a.hpp", known), ("main.cpp", main)]),
        &[
            "main.cpp:given -> ?:foo",
            "main.cpp:Box.run -> ?:foo",
            "main.cpp:Above.run -> ?:foo",
            "main.cpp:beside -> a.hpp:A.foo",
        ],
    );
}

#[test]
fn a_constructor_of_cpp_calls_those_of_its_bases_that_it_names() {
    let base = "int num();\nclass Base { public: Base(int); };\nclass Plain { public: int x; };\n\
                template <class T> class Box { public: Box(T); };\nnamespace ns { class Other { public: Other(int); }; }\n";
    let head = "#include \"base.hpp\"\n#include \"gone.hpp\"\n\
                class D : public Base, private ns::Other, Plain, Box<int>, Gone {\n\
                public: D(); D(int a); int b; Base held; };\n";
    let code = "#include \"d.hpp\"\n\
                D::D() : Base(num()), ns::Other(2), Plain(), Box<int>(3), Gone(1), b(2), held(3) {}\n\
                class In : Base { In() : Base(1), f(1) {} int f; };\n\
                template <class A> struct Mixed : A { Mixed() : A(1) {} };\n";
    assert_edges(
        &graph_of(&[("base.hpp", base), ("d.hpp", head), ("d.cpp", code)]),
        &[
            "d.cpp:D.D -> d.hpp:D.D",
            "d.cpp:D.D -> base.hpp:num",
            "d.cpp:D.D -> base.hpp:Base.Base",
            "d.cpp:D.D -> base.hpp:ns.Other.Other",
            "d.cpp:D.D -> base.hpp:Plain",
            "d.cpp:D.D -> base.hpp:Box.Box",
            // A field is none of them.
            "d.cpp:D.D -> ?:Gone",
            "d.cpp:In.In -> base.hpp:Base.Base",
        ],
    );
}

#[test]
fn in_the_body_of_a_class_of_python_its_own_names_come_first() {
    let main = "def helper(): pass\ndef late(): pass\n\
                class Item:\n def go(self): pass\n\
                class K:\n\
                \x20def helper(): pass\n\
                \x20item = Item()\n\
                \x20own = helper()\n\
                \x20gone = item.go()\n\
                \x20outer = late()\n\
                \x20later = map(lambda x: helper(), [])\n\
                \x20def late(): pass\n\
                \x20def m(self): helper()\n";
    assert_edges(
        &graph_of(&[("a.py", main)]),
        &[
            "a.py:K.item -> a.py:Item",
            "a.py:K.own -> a.py:K.helper",
            "a.py:K.gone -> a.py:Item.go",
            "a.py:K.outer -> a.py:late",
            "a.py:K.later -> ?:map",
            "a.py:K.later -> a.py:helper",
            "a.py:K.m -> a.py:helper",
        ],
    );
}
