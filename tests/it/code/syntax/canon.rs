//! Equality of signatures: a formatter changes nothing, and everything counts that a caller would notice.

use proptest::prelude::*;
use provost::syntax::{Language, Signature};

use super::reading_of;

fn contract(language: Language, text: &str, name: &str) -> Signature {
    reading_of(language, text).contract(name).unwrap_or_else(|why| panic!("{why:?}: {text}"))
}

/// A program as tokens, and where a formatter may put or leave a comma.
#[derive(Clone, Debug)]
enum Token {
    Word(String),
    /// A string's content, without quotes.
    Text(String),
    /// A comma before a closing bracket, which may be there or not.
    Trailing,
}

fn words(text: &str) -> Vec<Token> {
    text.split_whitespace()
        .map(|word| match word {
            "TRAILING" => Token::Trailing,
            _ => match word.strip_prefix('"').and_then(|word| word.strip_suffix('"')) {
                Some(text) => Token::Text(text.into()),
                // A line end between such two might make them two statements, and a comment confuses the grammar
                // between `?` and `:`.
                None => Token::Word(word.replace('~', " ")),
            },
        })
        .collect()
}

/// Writes tokens with what a formatter and a commentator make of them; the choices come from outside.
fn written(tokens: &[Token], language: Language, mut choose: impl FnMut(usize) -> usize) -> String {
    let gaps: &[&str] = match language {
        Language::Python => &[" ", "  ", "\n    ", " # note, (really\n  ", " \\\n "],
        _ => &[" ", "  ", "\n", "\t", " /* a, (b */ ", " // c )\n", "\r\n"],
    };
    let mut text = String::new();
    let mut brackets = 0_usize;
    for token in tokens {
        match token {
            Token::Trailing if choose(2) == 0 => continue,
            Token::Trailing => text.push(','),
            Token::Text(content) => {
                let quote = if choose(2) == 0 { '"' } else { '\'' };
                text.extend([quote, '\''].into_iter().take(1));
                text.push_str(&content.replace('\'', if quote == '\'' { "\\'" } else { "'" }));
                text.push(quote);
            }
            Token::Word(word) => {
                brackets += usize::from(word.ends_with(['(', '[']));
                brackets -= usize::from(matches!(word.as_str(), ")" | "]"));
                text.push_str(word);
            }
        }
        // Python ends a line outside brackets with the statement.
        let free = language != Language::Python || brackets > 0;
        text.push_str(if free { gaps[choose(gaps.len())] } else { " " });
    }
    text
}

const TYPESCRIPT: &[&str] = &[
    "function f ( a : number , b ?~: string = \"it's\" , ... rest : string [ ] ) : Promise < Map < string , number > > { }",
    "async~function f < T extends { id : string } , K = \"k\" TRAILING > ( this : Window , x : T , y : K TRAILING ) : asserts~x~is T { }",
    "const f = async~function * ( { a , b : { c = \"d\" } TRAILING } : { a : string ; b : { } } , [ d , , e TRAILING ] : any TRAILING ) { }",
    "const f = ( a : ( x : number TRAILING ) => void , b = [ 1 , 2 TRAILING ] TRAILING ) : a~is string => 1",
    "interface~f { a : string ; b~( x : number TRAILING ) : void ; c ?~: \"x\" | \"y\" }",
    "type~f < T > = { [ K in keyof T ] : T~[ K ] }",
    "class~f { constructor~( private readonly a : string , b = 1e5 TRAILING ) { } }",
    "enum~f { A = \"a\" , B TRAILING }",
];

const PYTHON: &[&str] = &[
    "async~def f ( a : int , b : str = \"it's\" , * , c : dict [ str , int TRAILING ] = { } , ** k TRAILING ) -> tuple [ int , str TRAILING ] : pass",
    "def f [ T : ( int , str TRAILING ) ] ( x : T , / , y = ( 1 , 2 TRAILING ) , z = [ 1 TRAILING ] TRAILING ) -> \"T\" : pass",
    "class~f ( Base , metaclass = Meta TRAILING ) : pass",
    "f = lambda x , y = 1 : x",
];

fn same_however_it_is_written(
    language: Language,
    program: &str,
    choices: &[usize],
) -> Result<(), TestCaseError> {
    let tokens = words(program);
    let plain = written(&tokens, language, |_| 0);
    let mut choices = choices.iter().cycle();
    let other = written(&tokens, language, |many| choices.next().map_or(0, |choice| choice % many));
    let (one, two) = (contract(language, &plain, "f"), contract(language, &other, "f"));
    prop_assert_eq!(&one.canon, &two.canon, "{}\n{}", plain, other);
    prop_assert!(one.same(&two) && one.digest() == two.digest());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formatters_and_commentators_change_no_contract(
        which in 0..TYPESCRIPT.len() + PYTHON.len(),
        choices in proptest::collection::vec(0..1000_usize, 40..80),
    ) {
        match TYPESCRIPT.get(which) {
            Some(program) => same_however_it_is_written(Language::TypeScript, program, &choices)?,
            None => same_however_it_is_written(Language::Python, PYTHON[which - TYPESCRIPT.len()], &choices)?,
        }
    }
}

#[test]
fn what_callers_notice_changes_the_contract() {
    for (language, name, forms) in [
        (
            Language::TypeScript,
            "f",
            &[
                "function f(a: number): number {}",
                "async function f(a: number): number {}",
                "function* f(a: number): number {}",
                "async function* f(a: number): number {}",
                "function f<T>(a: number): number {}",
                "function f<T, U>(a: number): number {}",
                "function f(a: string): number {}",
                "function f(b: number): number {}",
                "function f(a?: number): number {}",
                "function f(...a: number): number {}",
                "function f(a: number, b: number): number {}",
                "function f(a: number, b = \"1\"): number {}",
                "function f(a: number, b = \"1 \"): number {}",
                "function f(a: number): string {}",
                "function f(a: number) {}",
                "function f(a: number): a is 1 {}",
                "function f(a: number): asserts a is 1 {}",
                "function f(a: number): asserts a {}",
                "function f(a: number): number; function f(a: string): string; function f(a: any): any {}",
                "function f(a: string): string; function f(a: number): number; function f(a: any): any {}",
                "function f([a]: number): number {}",
                "function f([a, ,]: number): number {}",
                "function f(a = `x y`) {}",
                "function f(a = `x  y`) {}",
                "const o = { get f() {} }",
                "const o = { set f() {} }",
                "const o = { f() {} }",
                "interface I { f?(): void }",
                "interface I { f(): void }",
            ][..],
        ),
        (
            Language::Python,
            "f",
            &[
                "def f(a): pass",
                "async~def f(a): pass",
                "def f[T](a): pass",
                "def f(a) -> int: pass",
                "def f(a) -> str: pass",
                "def f(a, /): pass",
                "def f(*, a): pass",
                "def f(*a): pass",
                "def f(a=1): pass",
                "def f(a=(1)): pass",
                "def f(a=(1,)): pass",
                "def f(a='x'): pass",
                "def f(a=b'x'): pass",
                "def f(a=r'\\x'): pass",
                "def f(a='\\x'): pass",
                "def f(a: tuple[int]): pass",
                "def f(a: tuple[int,]): pass",
                "@property\ndef f(a): pass",
                "class f: pass",
                "class f(A): pass",
                "class f(A, B): pass",
                "if a:\n  def f(a): pass\nelse:\n  def f(a): pass\n",
            ][..],
        ),
    ] {
        for (number, one) in forms.iter().enumerate() {
            for other in &forms[number + 1..] {
                let (a, b) = (contract(language, one, name), contract(language, other, name));
                assert!(!a.same(&b), "{one}\n{other}\n{}", a.canon);
                assert_ne!(a.digest(), b.digest());
            }
        }
    }
}

#[test]
fn what_callers_cannot_notice_does_not() {
    for (language, one, other) in [
        (Language::TypeScript, "function f(a: number) {}", "export const f = (a: number) => 1"),
        (Language::TypeScript, "function f(a: 1): 1 {}", "function f(a: 1): 1; function f(a: any) {}"),
        (Language::TypeScript, "const f = a => 1", "const f = (a) => 2"),
        (Language::TypeScript, "function f(a = x => 1) {}", "function f(a = (x) => 1) {}"),
        (Language::TypeScript, "type~f = | 'a' | 'b'", "type~f =\n  'a'\n  | \"b\""),
        (Language::TypeScript, "interface~f { a: 1, b: 2 }", "interface~f {\n  a: 1\n  b: 2;\n}"),
        (Language::TypeScript, "interface~f { 'a': 1 }", "interface~f { a: 1 }"),
        (Language::TypeScript, "function f(a = 0XFF, b = 1E3) {}", "function f(a = 0xff, b = 1e3) {}"),
        (Language::TypeScript, "class~f { private m() {} }", "class~f { m() {} n() {} }"),
        (Language::Python, "def f(a='x'): pass", "def f(a=\"\"\"x\"\"\"): return 1"),
        (Language::Python, "def f(a='\"'): pass", "def f(a=\"\\\"\"): pass"),
        (Language::Python, "class f(): pass", "class f:\n  x = 1"),
    ] {
        let (a, b) = (contract(language, one, "f"), contract(language, other, "f"));
        assert!(a.same(&b), "{one}\n{other}\n{}\n{}", a.canon, b.canon);
    }
}

#[test]
fn the_text_is_that_of_the_source_without_its_layout() {
    for (text, shown) in [
        ("function f(a:number,b : string):void {}", "(a:number,b : string):void"),
        (
            "function f(\n  a: number, // one\n  b: string, /* two */\n): void {}",
            "(a: number, b: string): void",
        ),
        ("function f(a/* x */: number /* y */, b) {}", "(a: number, b)"),
        (
            "function f({\n  a,\n  b,\n}: {\n  a: string;\n  b: number;\n}) {}",
            "({ a, b }: { a: string; b: number })",
        ),
        ("interface~f {\n  a: string\n  b: number\n}", "{ a: string; b: number }"),
        ("type~f = {\n  a: string,\n  b: number,\n}", "{ a: string, b: number }"),
        ("function f(a = 'x  y') {}", "(a = 'x  y')"),
        ("function f(a = `x\n${ b }`) {}", "(a = `x\n${ b }`)"),
        ("const f = async <T,>(v: T) => v", "async <T>(v: T)"),
    ] {
        assert_eq!(&*contract(Language::TypeScript, text, "f").text, shown, "{text}");
    }
}

#[test]
fn a_signature_of_any_length_is_compared_and_shown_in_part() {
    let long = |last: &str| {
        let members: String = (0..3_000).map(|number| format!("  member{number}: string;\n")).collect();
        contract(Language::TypeScript, &format!("interface~f {{\n{members}  {last}: string }}"), "f")
    };
    let (one, two) = (long("last"), long("end"));
    assert!(one.text.len() < 20_000 && one.text.ends_with('…'), "{}", one.text.len());
    assert_eq!(one.text, two.text);
    assert!(!one.same(&two) && one.same(&long("last")));
}
