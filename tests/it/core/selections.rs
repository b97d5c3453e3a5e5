//! Selections: their place in a file, what an answer becomes there, where tests are kept, and that none is lost.

use std::collections::BTreeSet;

use provost::agents::{
    MergedTests, NoPlace, WorkspaceProbe, code_in, code_of_json, further_tests_of, keep_tests, lost_tests,
    named_after, place, tests_of,
};

const FILE: &str =
    "class Sum:\n    def add(self, a, b):\n        return a + b\n\n    def zero(self):\n        return 0\n";

fn spliced(file: &str, code: &str, new: &str) -> String {
    place(file, code).unwrap_or_else(|why| panic!("{code:?}: {why:?}")).with(new)
}

#[test]
fn new_text_takes_the_place_of_the_selection_and_nothing_else_changes() {
    // As an editor sends it: the first line has lost its indentation.
    let code = "def add(self, a, b):\n        return a + b";
    let expected = FILE.replace("return a + b", "return sum((a, b))");
    for new in [
        "def add(self, a, b):\n        return sum((a, b))",
        "    def add(self, a, b):\n        return sum((a, b))\n",
        "def add(self, a, b):\n    return sum((a, b))\n\n",
        "\n\ndef add(self, a, b):\r\n    return sum((a, b))",
    ] {
        assert_eq!(spliced(FILE, code, new), expected, "{new:?}");
    }
    // One that has kept the blanks at its ends gets them back.
    let wide = "    def add(self, a, b):\n        return a + b\n\n";
    assert_eq!(spliced(FILE, wide, "def add(self, a, b):\n        return sum((a, b))"), expected);
    assert_eq!(spliced(FILE, "a + b", "b + a"), FILE.replace("a + b", "b + a"));
    assert_eq!(spliced(FILE, FILE.trim(), "pass"), "pass\n");
}

#[test]
fn braces_and_tabs_are_indented_as_far_as_they_were() {
    let file = "impl A {\n\tfn f() {\n\t\told();\n\t}\n}\n";
    let expected = "impl A {\n\tfn f() {\n\t\tnew();\n\n\t\tmore();\n\t}\n}\n";
    let code = "fn f() {\n\t\told();\n\t}";
    for new in ["fn f() {\n\t\tnew();\n\n\t\tmore();\n\t}", "fn f() {\n\tnew();\n\n\tmore();\n}"] {
        assert_eq!(spliced(file, code, new), expected, "{new:?}");
    }
    let one = "def f():\n    return 1\n";
    assert_eq!(
        spliced(one, "return 1", "if x:\n    return 2\nreturn 1"),
        "def f():\n    if x:\n        return 2\n    return 1\n"
    );
    assert_eq!(
        spliced(one, "return 1", "if x:\n        return 2\n    return 1"),
        "def f():\n    if x:\n        return 2\n    return 1\n"
    );
}

#[test]
fn what_is_selected_is_told_with_the_indentation_of_its_first_line() {
    let placed = place(FILE, "def zero(self):\n        return 0").unwrap();
    assert_eq!(placed.whole(), "    def zero(self):\n        return 0");
    assert_eq!(place(FILE, "return 0").unwrap().whole(), "        return 0");
    assert_eq!(place(FILE, "a + b").unwrap().whole(), "a + b", "something else stands before it");
}

#[test]
fn blanks_at_the_ends_of_lines_make_no_difference_and_stay_outside() {
    let file = "a = 1  \r\nb = 2\t\r\nc = 3 \r\nd = 4\r\n";
    assert_eq!(spliced(file, "b = 2\nc = 3", "b = 5\nc = 6"), "a = 1  \r\nb = 5\r\nc = 6 \r\nd = 4\r\n");
    assert_eq!(spliced("x  \ny\n", "x\ny  ", "z"), "z\n");
    assert_eq!(spliced("é  \nü  \n", "é\nü", "ö"), "ö  \n");
}

#[test]
fn a_selection_that_has_no_place_or_several_is_refused() {
    let file = "x = 1\ny = 2\nx = 1\n";
    assert_eq!(place(file, "x = 1"), Err(NoPlace::Several(2)));
    assert_eq!(place("aaa", "aa"), Err(NoPlace::Several(2)), "they overlap");
    assert_eq!(place("x  \nx\t\n", "x\nx"), place("x  \nx\t\n", "x\nx"));
    assert_eq!(place("q  \nr\nq\t\nr", "q\nr"), Err(NoPlace::Several(2)), "blanks are no difference");
    for code in ["z = 3", "", " \n", "x = 1\n\ny = 2", "X = 1"] {
        assert_eq!(place(file, code), Err(NoPlace::Nowhere), "{code:?}");
    }
    assert_eq!(
        NoPlace::Several(3).says("a.py"),
        "The selection occurs 3 times in a.py; select more of the text around it"
    );
    assert_eq!(NoPlace::Nowhere.says("a.py"), "The selection is not in a.py on disk; save the buffer first");
    // However often something is there, it is told at once.
    let many = "a".repeat(4 << 20);
    assert!(matches!(place(&many, &many[..1 << 20]), Err(NoPlace::Several(_))));
}

#[test]
fn code_is_found_in_an_answer_or_said_not_to_be() {
    let found = |answer: &'static str, language: &str| code_in(answer, language, "x = 1");
    assert_eq!(found("  x = 2\n", "python"), Ok("  x = 2\n"));
    assert_eq!(found("```python\n  x = 2\n```\n", "python"), Ok("  x = 2\n"));
    assert_eq!(found("Here it is:\n\n```python\nx = 2\n```\nShorter now.", "python"), Ok("x = 2\n"));
    assert_eq!(
        found("def f():\n    \"\"\"\n    ```\n    f()\n    ```\n    \"\"\"", "python")
            .unwrap()
            .lines()
            .count(),
        6
    );
    let two = found("```\na\n```\nor\n```\nb\n```", "python");
    assert_eq!(two, Err("the answer has 2 blocks of code with words between them".into()));
    assert_eq!(found("Here:\n```\na\nb", "python"), Err("the answer ends within a block of code".into()));
    assert_eq!(found("text\n```sh\nls\n```\n", "markdown"), Ok("text\n```sh\nls\n```\n"));
    assert_eq!(code_in("new\n```\nx\n```\nend", "rst", "old\n```\ny\n```\nend"), Ok("new\n```\nx\n```\nend"));
    let json = |answer: &str| code_of_json(answer, "python", "x = 1");
    assert_eq!(json(r#"{"code":"x = 2\n","explanation":"two"}"#), Ok("x = 2\n".into()));
    assert_eq!(json("Sure.\n```json\n{\"code\":\"x = 2\"}\n```"), Ok("x = 2".into()));
    assert_eq!(json("x = 2"), Ok("x = 2".into()), "no JSON at all");
    assert!(json(r#"{"text":"x = 2"}"#).unwrap_err().starts_with("the answer is not in the asked form: "));
}

/// Files of a workspace; folders are those that they are in.
struct Files(BTreeSet<&'static str>);

impl WorkspaceProbe for Files {
    fn is_file(&self, path: &str) -> bool {
        self.0.contains(path)
    }
    fn is_folder(&self, path: &str) -> bool {
        self.0.iter().any(|it| it.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }
}

#[test]
fn tests_are_where_people_look_for_them() {
    let tests = |path: &str, there: &[&'static str]| tests_of(path, &Files(there.iter().copied().collect()));
    for (path, there, expected) in [
        ("calc.py", &[][..], "test_calc.py"),
        ("src/calc.py", &["tests/conftest.py"], "tests/test_calc.py"),
        ("src/pkg/calc.py", &["tests/pkg/test_other.py"], "tests/pkg/test_calc.py"),
        ("pkg/calc.py", &["pkg/calc_test.py", "tests/x.py"], "pkg/calc_test.py"),
        ("pkg/__init__.py", &[], "pkg/test_pkg.py"),
        ("pkg/x.go", &["tests/a.go"], "pkg/x_test.go"),
        ("src/x.ts", &[], "src/x.test.ts"),
        ("src/x.tsx", &["src/__tests__/y.test.tsx"], "src/__tests__/x.test.tsx"),
        ("src/x.js", &["src/x.spec.js"], "src/x.spec.js"),
        ("src/x.js", &["test/x.test.js"], "test/x.test.js"),
        ("src/App.vue", &[], "src/App.test.ts"),
        ("src/x.rs", &["Cargo.toml"], "tests/x.rs"),
        ("crates/a/src/deep/x.rs", &["Cargo.toml", "crates/a/Cargo.toml"], "crates/a/tests/x.rs"),
        ("src/deep/mod.rs", &["Cargo.toml"], "tests/deep.rs"),
        ("src/main/java/a/Sum.java", &[], "src/test/java/a/SumTest.java"),
        ("Sum.java", &[], "SumTest.java"),
        ("lib/a/sum.rb", &["spec/b_spec.rb"], "spec/a/sum_spec.rb"),
        ("lib/sum.rb", &[], "test/sum_test.rb"),
        ("src/Sum.php", &["tests/Unit/OtherTest.php"], "tests/Unit/SumTest.php"),
        ("App/Sum.cs", &[], "App/SumTests.cs"),
        ("Sources/Core/Sum.swift", &["Tests/CoreTests/OtherTests.swift"], "Tests/CoreTests/SumTests.swift"),
        ("lib/a/sum.ex", &[], "test/a/sum_test.exs"),
        ("sum.c", &["tests/a.c"], "tests/test_sum.c"),
        ("lisp/sum.el", &[], "lisp/sum-tests.el"),
        ("sum.unknown", &[], "test_sum.unknown"),
        ("Makefile", &[], "test_Makefile"),
        ("tests/test_calc.py", &[], "tests/test_calc.py"),
        ("pkg/x_test.go", &[], "pkg/x_test.go"),
    ] {
        assert_eq!(tests(path, there), expected, "{path} {there:?}");
    }
    let further = |path: &str| further_tests_of(path, 2, &Files(BTreeSet::new()));
    for (path, expected) in [
        ("pkg/x.go", Some("pkg/x_2_test.go")),
        ("x.py", Some("test_x_2.py")),
        ("a/x.test.ts", Some("a/x_2.test.ts")),
        ("tests/x.rs", Some("tests/x_2.rs")),
        ("src/Sum.java", None),
    ] {
        assert_eq!(further(path).as_deref(), expected, "{path}");
    }
}

#[test]
fn a_buffer_without_a_file_is_called_what_its_language_calls_files() {
    for (buffer, language, expected) in [
        ("*scratch*", "emacs-lisp", "scratch.el"),
        ("untitled", "python", "untitled.py"),
        ("", "go", "untitled.go"),
        ("", "", "untitled"),
        ("/elsewhere/x.py", "python", "x.py"),
        ("..", "rust", "untitled.rs"),
        ("notes", "plaintext", "notes"),
    ] {
        assert_eq!(named_after(buffer, language), expected, "{buffer} {language}");
    }
}

#[test]
fn no_test_that_is_there_is_lost() {
    let old = "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n";
    let whole = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 2) == 4\n\n\ndef test_zero():\n    assert calc.zero() == 0";
    assert_eq!(keep_tests(old, whole), MergedTests::Whole(format!("{whole}\n")), "the agent has kept it");
    let alone = "import calc\n\n\ndef test_zero():\n    assert calc.zero() == 0\n";
    let both = format!("{old}\n\ndef test_zero():\n    assert calc.zero() == 0\n");
    assert_eq!(keep_tests(old, alone).clone(), MergedTests::Whole(both));
    let brings_more = alone.replace("import calc\n", "import calc\nimport os\n");
    assert_eq!(keep_tests(old, &brings_more), MergedTests::Lost(vec!["test_add".into()]));
    let same_name = "class T:\n    def test_a(self): pass\n    def test_b(self): pass\n";
    assert_eq!(
        keep_tests(same_name, "class T:\n    def test_c(self): pass\n"),
        MergedTests::Lost(vec!["test_a".into(), "test_b".into()])
    );
    let js = "import { add } from './x';\n\ndescribe('add', () => {\n  it.only('adds', () => {});\n});\n";
    assert_eq!(lost_tests(js, "describe('add', () => {});"), ["adds"]);
    assert_eq!(lost_tests(js, &format!("{js}test(\"more\", () => {{}});")), Vec::<String>::new());
    let go = "package x\n\nimport \"testing\"\n\nfunc (s *S) TestA() {}\nfunc TestB(t *testing.T) {}\n";
    assert_eq!(lost_tests(go, "package x\nfunc TestC(t *testing.T) {}\n"), ["TestA", "TestB"]);
    let new = "package x\n\nimport \"testing\"\n\nfunc TestC(t *testing.T) {}\n";
    assert_eq!(
        keep_tests(go, new),
        MergedTests::Whole(
            format!("{go}\n\nfunc TestC(t *testing.T) {{}}\n")
                .replace("{}\n\n\nfunc TestC", "{}\n\nfunc TestC")
        )
    );
    // What has no names counts line by line.
    let plain = "one\ntwo\n";
    assert_eq!(
        keep_tests(plain, "zero\none\nmore\ntwo"),
        MergedTests::Whole("zero\none\nmore\ntwo\n".into())
    );
    assert!(matches!(keep_tests(plain, "two\none"), MergedTests::Lost(_)));
    for hostile in ["def ".repeat(50_000), "it('".repeat(50_000), "func ((((".repeat(50_000)] {
        keep_tests(&hostile, &hostile[1..]);
        keep_tests(old, &hostile);
    }
}
