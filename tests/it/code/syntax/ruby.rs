//! Ruby: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language, NoSignature, Trouble};

use super::{paths, reading_of};

const TEXT: &str = r##"# frozen_string_literal: true

require "json"

# A store.
# Of things.
class Store < Base::Thing
  include Comparable
  MAX = 3 # most

  attr_reader :size, :name
  # Written by others.
  attr_accessor :mode
  delegate :first, to: :all

  class << self
    def make(a, b = 1, *c, d:, e: 2, **f, &g) = new(a)
    attr_writer :log
  end

  # Finds.

  # Really.
  private def self.find key, more = {}
    text = <<~SQL
      def no_method(a)
      select #{key}
    SQL
    [key].each { |it| it }
  end

  define_method(:dyn) { |a| a }
  define_method("wide") do |b, c|
    b
  end
  alias other find
  alias_method :third, :find
  Point = Struct.new(:x, :y) do
    def dist; x; end
  end
  Pair = Data.define(:left)
  Failure = Class.new(StandardError)

  def ==(other) = true
  def []=(key, value); end
  def name=(value)
    @name = value
  end
  def ready? = false

  def initialize(size:)
    @size = size
  end

  def find; end
end

module A::B
  C = ->(x) { x }

  class ::Top
    def top; end
  end

  # More of it.
  class Store
    def more; end
  end
end

class Store
  def again; end
end

def Store.late(a); end

def helper(a)
  b = a
  -> { b }
end

describe Store do
  def in_block; end
end
"##;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    ("Store.MAX", Kind::Field, "MAX", "3", ""),
    ("Store.size", Kind::Getter, "attr_reader :size", ":size", ""),
    ("Store.name", Kind::Getter, ":name", ":name", ""),
    ("Store.mode", Kind::Getter, "# Written by others.\n  attr", ":mode", ""),
    ("Store.first", Kind::Method, "delegate :first", "to: :all", ""),
    ("Store.make", Kind::Method, "def make", "= new(a)", "self.(a, b = 1, *c, d:, e: 2, **f, &g)"),
    ("Store.log=", Kind::Setter, "attr_writer", ":log", ""),
    ("Store.find", Kind::Method, "# Really.\n  private def", "end", "self.(key, more = {}); ()"),
    ("Store.dyn", Kind::Method, "define_method", "}", "(a)"),
    ("Store.wide", Kind::Method, "define_method", "end", "(b, c)"),
    ("Store.other", Kind::Method, "alias", "find", ""),
    ("Store.third", Kind::Method, "alias_method", ":find", ""),
    ("Store.Point", Kind::Class, "Point =", "end\n  end", "Struct.new(:x, :y)"),
    ("Store.Point.x", Kind::Getter, ":x", ":x", ""),
    ("Store.Point.y", Kind::Getter, ":y", ":y", ""),
    ("Store.Point.dist", Kind::Method, "def dist", "end", "()"),
    ("Store.Pair", Kind::Class, "Pair =", ")", "Data.define(:left)"),
    ("Store.Pair.left", Kind::Getter, ":left", ":left", ""),
    ("Store.Failure", Kind::Class, "Failure", ")", "Class.new(StandardError)"),
    ("Store.==", Kind::Method, "def ==", "true", "(other)"),
    ("Store.[]=", Kind::Method, "def []=", "end", "(key, value)"),
    ("Store.name=", Kind::Setter, "def name=", "end", "(value)"),
    ("Store.ready?", Kind::Method, "def ready?", "false", "()"),
    ("Store.initialize", Kind::Constructor, "def init", "end", "(size:)"),
    ("Store.again", Kind::Method, "def again", "end", "()"),
    ("Store.late", Kind::Method, "def Store.late", "end", "self.(a)"),
    ("Store", Kind::Class, "# A store.\n# Of things.\nclass", "end", "class < Base::Thing; class; (size:)"),
    ("A.B", Kind::Class, "module A::B", "end", "module"),
    ("A.B.C", Kind::Field, "C =", "{ x }", ""),
    ("Top", Kind::Class, "class ::Top", "end", "class"),
    ("Top.top", Kind::Method, "def top", "end", "()"),
    ("A.B.Store", Kind::Class, "# More of it.\n  class Store", "end", "class"),
    ("A.B.Store.more", Kind::Method, "def more", "end", "()"),
    ("helper", Kind::Function, "def helper", "end", "(a)"),
    ("in_block", Kind::Method, "def in_block", "end", "()"),
];

#[test]
fn everything_in_a_ruby_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    for text in [TEXT.to_owned(), TEXT.replace('\n', "\r\n"), TEXT.replace("    ", "\t")] {
        let reading = reading_of(Language::Ruby, &text);
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
        assert_eq!(reading.find("Store.find").len(), 2, "that of the class and that of its instances");
        assert_eq!(reading.find("Store").len(), 2, "opened again");
        assert_eq!(paths(&reading, "dist"), ["Store.Point.dist"]);
    }
}

#[test]
fn a_contract_of_ruby_is_the_same_however_it_is_written() {
    let canon = |text: &str| reading_of(Language::Ruby, text).contract("f").unwrap().canon;
    let one = canon("def f(a, b = 'x', *c, key:)\n  a\nend\n");
    for same in [
        "# F does.\ndef f a, b = \"x\", *c, key:\n  b\nend\n",
        "def f(a, # the first\n      b = 'x',\n      *c, key:) = a\n",
        "private def f(a, b = 'x', *c, key:); end\n",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in
        ["def f(a, b = 'x', *c, key: 1)\nend\n", "def f(a)\nend\n", "def self.f(a, b = 'x', *c, key:)\nend\n"]
    {
        assert_ne!(canon(other), one, "{other}");
    }
    assert_eq!(canon("def f = 1\n"), canon("def f()\nend\n"));
}

#[test]
fn what_programs_have_written_in_ruby_is_left_out() {
    for text in [
        "# Generated by the protocol buffer compiler.  DO NOT EDIT!\n# source: a.proto\n\nrequire 'x'\n",
        "# This file is auto-generated from the current state of the database.\n\nActiveRecord::Schema.define {}\n",
        "#\n# DO NOT MODIFY!!!!\n# This file is automatically generated by Racc 1.5.2\n#\nclass A; end\n",
    ] {
        assert_eq!(reading_of(Language::Ruby, text).trouble, [Trouble::Generated], "{text}");
    }
    let text = "class A; end\n# DO NOT EDIT\n";
    assert!(reading_of(Language::Ruby, text).is_whole());
}

/// The receivers of the calls that a function makes, with what it calls.
#[test]
fn a_name_of_ruby_is_a_call_unless_it_is_a_variable() {
    let text = "def f(a, *b, c: 1, &d)\n  e = a\n  g, (h, *i) = b\n  a; b; c; d; e; g; h; i\n  x { |j, (k, l)| j; k; l; m }\n  \
                case a\n  in { n:, o: [p, *q] } then n; p; q\n  end\nrescue => r\n  r\nend\n";
    let reading = reading_of(Language::Ruby, text);
    assert!(reading.is_whole(), "{:?}", reading.trouble);
    let called: Vec<&str> = reading.calls.iter().map(|it| &*it.callee.name).collect();
    assert_eq!(called, ["x", "m"]);
}
