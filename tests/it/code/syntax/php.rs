//! PHP: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language, NoSignature, Trouble};

use super::{paths, reading_of};

const TEXT: &str = r#"<html>
<?php
declare(strict_types=1);
namespace App\Models;

use App\Base\{Thing, Other as O};

const MAX = 3;
define('OLD', 1);

/**
 * A store.
 */
#[Entity]
abstract class Store extends Thing implements \Countable, O
{
    use Counts, Logs { Counts::x insteadof Logs; }
    public const A = 1, B = 'x';

    // Another one.
    private ?Other $other = null;
    protected static int|string $n = 0, $m;

    /** Docs. */
    #[Pure]
    public function __construct(private readonly Repo $repo, int &$a = 1, ...$rest) {
        $this->other = new Other();
    }
    abstract protected function find(string $key): ?static;
    public static function make(): self {
        $x = <<<EOT
        function none() {}
        EOT;
        $made = new class extends Foo { public function inner() {} };
        return new class { public function hidden() {} };
    }
    public string $full { get => $this->a(); }
}

interface Shape extends A, B { const C = 1; public function area(): float; }
trait Counts { private int $c; abstract function z(); }
enum Suit: string implements Shape { case Hearts = 'H'; public static function first(): self { return self::Hearts; } }
function top(array $a, Store|null $s): void { function nested() {} }
$handler = new class { function h() {} };
$call = function (int $q) { return 1; };
if (!function_exists('late')) { function late() {} }
?>
<p><?= top([]) ?></p>
"#;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    ("MAX", Kind::Variable, "const", ";", ""),
    ("OLD", Kind::Variable, "define", ")", ""),
    (
        "Store",
        Kind::Class,
        "/**\n * A store.\n */\n#[Entity]",
        "}",
        "abstract class extends Thing implements \\Countable, O; (private readonly Repo $repo, int &$a = 1, ...$rest)",
    ),
    ("Store.A", Kind::Field, "public const A", "1", ""),
    ("Store.B", Kind::Field, "B", "'x';", ""),
    ("Store.other", Kind::Field, "// Another one.\n    private", ";", ": ?Other"),
    ("Store.n", Kind::Field, "protected static", "0", ": int|string"),
    ("Store.m", Kind::Field, "$m", "$m;", ": int|string"),
    (
        "Store.__construct",
        Kind::Constructor,
        "/** Docs. */\n    #[Pure]",
        "}",
        "(private readonly Repo $repo, int &$a = 1, ...$rest)",
    ),
    ("Store.repo", Kind::Field, "private readonly", "$repo", ": Repo"),
    ("Store.find", Kind::Method, "abstract", ";", "(string $key): ?static"),
    ("Store.make", Kind::Method, "public static", "}", "static (): self"),
    ("Store.make.made", Kind::Class, "$made = new class", "} }", ""),
    ("Store.make.made.inner", Kind::Method, "public function inner", "{}", "()"),
    ("Store.make.class", Kind::Class, "class {", "} }", ""),
    ("Store.make.class.hidden", Kind::Method, "public function hidden", "{}", "()"),
    ("Store.full", Kind::Getter, "public string $full", "}", ": string"),
    ("Shape", Kind::Interface, "interface", "}", "interface extends A, B"),
    ("Shape.C", Kind::Field, "const", ";", ""),
    ("Shape.area", Kind::Method, "public", ";", "(): float"),
    ("Counts", Kind::Class, "trait", "}", "trait"),
    ("Counts.c", Kind::Field, "private", ";", ": int"),
    ("Counts.z", Kind::Method, "abstract", ";", "()"),
    ("Suit", Kind::Enum, "enum", "}", "enum string implements Shape"),
    ("Suit.Hearts", Kind::Field, "case", ";", ""),
    ("Suit.first", Kind::Method, "public", "}", "static (): self"),
    ("top", Kind::Function, "function top", "}", "(array $a, Store|null $s): void"),
    ("top.nested", Kind::Function, "function nested", "{}", "()"),
    ("handler", Kind::Class, "$handler", "}", ""),
    ("handler.h", Kind::Method, "function h", "{}", "()"),
    ("call", Kind::Function, "$call", "}", "(int $q)"),
    ("late", Kind::Function, "function late", "{}", "()"),
];

#[test]
fn everything_in_a_php_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    for text in [TEXT.to_owned(), TEXT.replace('\n', "\r\n"), TEXT.replace("    ", "\t")] {
        let reading = reading_of(Language::Php, &text);
        assert!(reading.is_whole(), "{:?}", reading.trouble);
        let plain = |it: &str| it.replace("\r\n", "\n").replace('\t', "    ");
        for (path, kind, begins, ends, contract) in ROWS {
            let found = reading.find(path);
            let symbol = found.first().unwrap_or_else(|| panic!("no {path}"));
            assert_eq!((&*symbol.path, symbol.kind), (*path, *kind));
            let own = plain(&text[symbol.range.start as usize..symbol.range.end as usize]);
            assert!(own.starts_with(begins) && own.ends_with(ends), "{path} is {own:?}");
            let said = match reading.contract(path) {
                Ok(signature) => signature.text.to_string(),
                Err(NoSignature::Undeclared) => String::new(),
                Err(why) => panic!("{path}: {why:?}"),
            };
            assert_eq!(said, *contract, "{path}");
        }
        let mut more: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
        more.retain(|path| ROWS.iter().all(|row| row.0 != *path));
        assert_eq!(more, [""; 0]);
        assert_eq!(paths(&reading, "App.Models.Store"), ["Store"], "by its full name");
    }
}

#[test]
fn what_is_in_a_namespace_with_braces_has_its_name() {
    let text =
        "<?php\nnamespace A\\B {\n    class C { function f() {} }\n}\nnamespace {\n    class C {}\n}\n";
    let reading = reading_of(Language::Php, text);
    let all: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
    assert_eq!(all, ["A.B", "A.B.C", "A.B.C.f", "C"]);
    assert_eq!(reading.exports.len(), 2);
}

#[test]
fn a_contract_of_php_is_the_same_however_it_is_written() {
    let canon =
        |text: &str| reading_of(Language::Php, &format!("<?php\n{text}")).contract("f").unwrap().canon;
    let one = canon("function f(int $a, ?Store $b = 'x'): array { return []; }");
    for same in [
        "/** Docs. */\nfunction f(\n    int $a, // first\n    ?Store $b = \"x\",\n): array\n{\n}",
        "#[Pure]\nfunction  f ( int $a,?Store $b='x' ) : array {}",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in
        ["function f(int $a, Store $b = 'x'): array {}", "function f(int $a, ?Store $c = 'x'): array {}"]
    {
        assert_ne!(canon(other), one, "{other}");
    }
}

#[test]
fn what_programs_have_written_in_php_is_left_out() {
    for text in [
        "<?php\n\n// autoload_classmap.php @generated by Composer\n\nreturn [];\n",
        "<?php\n# Generated by the protocol buffer compiler.  DO NOT EDIT!\n# source: a.proto\n\nnamespace A;\n",
        "<?php\n/**\n * This file has been auto-generated\n * by the Symfony Routing Component.\n */\nreturn [];\n",
    ] {
        assert_eq!(reading_of(Language::Php, text).trouble, [Trouble::Generated], "{text}");
    }
    let text = "<?php\nnamespace A;\n// @generated\nclass B {}\n";
    assert!(reading_of(Language::Php, text).is_whole());
}
