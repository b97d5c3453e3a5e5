//! A file of each language: a hundred functions of eight lines; each calls the next one.

/// How a file of a language is written.
pub(super) struct Source {
    /// The language's name, for people.
    pub(super) name: &'static str,
    /// The suffix of its files.
    pub(super) suffix: &'static str,
    /// What the file begins with; `{file}` stands for its number, here and below.
    head: &'static str,
    /// A function of eight lines: `{n}` is its number, `{next}` that of another one, `{salt}` tells files apart.
    function: &'static str,
    /// What the file ends with.
    tail: &'static str,
    /// The path of a function, without its number.
    path: &'static str,
    /// The bare grammar.
    pub(super) grammar: fn() -> tree_sitter::Language,
}

impl Source {
    /// A file with so many functions.
    pub(super) fn text(&self, functions: usize, file: usize, salt: usize) -> String {
        let mut text = self.head.replace("{file}", &file.to_string());
        for number in 0..functions {
            let function = self.function.replace("{n}", &number.to_string());
            let function = function.replace("{next}", &((number + 1) % functions).to_string());
            text.push_str(&function.replace("{salt}", &salt.to_string()));
        }
        text.push_str(self.tail);
        text
    }

    /// The path of a function of a file.
    pub(super) fn symbol(&self, file: usize, function: usize) -> String {
        format!("{}{function}", self.path.replace("{file}", &file.to_string()))
    }
}

const OF_ECMA: &str = "// {salt}\nexport function f{n}(a, b) {\n  const list = [a, 1, 2];\n  if (list.length > {n}) {\n    return f{next}(a + 1, b);\n  }\n  \
                       return list.map(x => x + a).length > 0;\n}\n";
const TYPED: &str = "// {salt}\nexport function f{n}(a: number, b: string): boolean {\n  const list = [a, 1, 2];\n  if (list.length > {n}) {\n    \
                     return f{next}(a + 1, b);\n  }\n  return list.map(x => x + a).length > 0;\n}\n";
const OF_C: &str = "/* {salt} */\nint f{n}(int a, const char *b) {\n  int list[3] = {a, 1, 2};\n  if (list[0] > {n}) {\n    return f{next}(a + 1, b);\n  }\n  \
                    return list[1] + a > 0;\n}\n";

/// Each language, with the simplest form of a function that such files are full of.
pub(super) const SOURCES: &[Source] = &[
    Source {
        name: "TypeScript",
        suffix: ".ts",
        head: "",
        function: TYPED,
        tail: "",
        path: "f",
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    },
    Source {
        name: "TypeScript with JSX",
        suffix: ".tsx",
        head: "",
        function: TYPED,
        tail: "",
        path: "f",
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    },
    Source {
        name: "JavaScript",
        suffix: ".js",
        head: "",
        function: OF_ECMA,
        tail: "",
        path: "f",
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
    },
    Source {
        name: "Python",
        suffix: ".py",
        head: "",
        function: "def f{n}(a: int, b: str) -> bool:\n    \"\"\"{salt}\"\"\"\n    items = [a, 1, 2]\n    if len(items) > {n}:\n        return f{next}(a + 1, b)\n    \
                   return sum(x + a for x in items) > 0\n\n\n",
        tail: "",
        path: "f",
        grammar: || tree_sitter_python::LANGUAGE.into(),
    },
    Source {
        name: "Rust",
        suffix: ".rs",
        head: "",
        function: "/// {salt}\npub fn f{n}(a: i64, b: &str) -> bool {\n    let list = [a, 1, 2];\n    if list.len() > {n} {\n        return f{next}(a + 1, b);\n    }\n    \
                   list.iter().map(|x| x + a).count() > 0\n}\n",
        tail: "",
        path: "f",
        grammar: || tree_sitter_rust::LANGUAGE.into(),
    },
    Source {
        name: "Go",
        suffix: ".go",
        head: "package p{file}\n",
        function: "// {salt}\nfunc f{n}(a int, b string) bool {\n\tlist := []int{a, 1, 2}\n\tif len(list) > {n} {\n\t\treturn f{next}(a+1, b)\n\t}\n\t\
                   return append(list, a)[0] > 0\n}\n",
        tail: "",
        path: "f",
        grammar: || tree_sitter_go::LANGUAGE.into(),
    },
    Source {
        name: "Java",
        suffix: ".java",
        head: "package p{file};\npublic class K{file} {\n",
        function: "    /** {salt} */\n    public boolean f{n}(int a, String b) {\n        int[] list = {a, 1, 2};\n        if (list.length > {n}) {\n            \
                   return f{next}(a + 1, b);\n        }\n        return b.substring(a).length() > 0;\n    }\n",
        tail: "}\n",
        path: "K{file}.f",
        grammar: || tree_sitter_java::LANGUAGE.into(),
    },
    Source {
        name: "C#",
        suffix: ".cs",
        head: "namespace P{file};\npublic class K{file} {\n",
        function: "    /// {salt}\n    public bool F{n}(int a, string b) {\n        var list = new[] { a, 1, 2 };\n        if (list.Length > {n}) {\n            \
                   return F{next}(a + 1, b);\n        }\n        return b.Substring(a).Length > 0;\n    }\n",
        tail: "}\n",
        path: "K{file}.F",
        grammar: || tree_sitter_c_sharp::LANGUAGE.into(),
    },
    Source {
        name: "Kotlin",
        suffix: ".kt",
        head: "package p{file}\n",
        function: "/** {salt} */\nfun f{n}(a: Int, b: String): Boolean {\n    val list = listOf(a, 1, 2)\n    if (list.size > {n}) {\n        return f{next}(a + 1, b)\n    }\n    \
                   return list.map { it + a }.isNotEmpty()\n}\n",
        tail: "",
        path: "f",
        grammar: || tree_sitter_kotlin_ng::LANGUAGE.into(),
    },
    Source {
        name: "Swift",
        suffix: ".swift",
        head: "",
        function: "/// {salt}\nfunc f{n}(a: Int, b: String) -> Bool {\n    let list = [a, 1, 2]\n    if list.count > {n} {\n        return f{next}(a: a + 1, b: b)\n    }\n    \
                   return list.map { $0 + a }.count > 0\n}\n",
        tail: "",
        path: "f",
        grammar: || tree_sitter_swift::LANGUAGE.into(),
    },
    Source {
        name: "C",
        suffix: ".c",
        head: "",
        function: OF_C,
        tail: "",
        path: "f",
        grammar: || tree_sitter_c::LANGUAGE.into(),
    },
    Source {
        name: "C++",
        suffix: ".cpp",
        head: "",
        function: "// {salt}\nbool f{n}(int a, const std::string& b) {\n  std::vector<int> list{a, 1, 2};\n  if (list.size() > {n}) {\n    return f{next}(a + 1, b);\n  }\n  \
                   return b.substr(a).size() > 0;\n}\n",
        tail: "",
        path: "f",
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
    },
    Source {
        name: "Ruby",
        suffix: ".rb",
        head: "class K{file}\n",
        function: "  # {salt}\n  def f{n}(a, b)\n    list = [a, 1, 2]\n    if list.size > {n}\n      return f{next}(a + 1, b)\n    end\n    list.map { |x| x + a }.any?\n  end\n",
        tail: "end\n",
        path: "K{file}.f",
        grammar: || tree_sitter_ruby::LANGUAGE.into(),
    },
    Source {
        name: "PHP",
        suffix: ".php",
        head: "<?php\nclass K{file} {\n",
        function: "    /** {salt} */\n    public function f{n}(int $a, string $b): bool {\n        $list = [$a, 1, 2];\n        if (count($list) > {n}) {\n            \
                   return $this->f{next}($a + 1, $b);\n        }\n        return strlen(substr($b, $a)) > 0;\n    }\n",
        tail: "}\n",
        path: "K{file}.f",
        grammar: || tree_sitter_php::LANGUAGE_PHP.into(),
    },
];
