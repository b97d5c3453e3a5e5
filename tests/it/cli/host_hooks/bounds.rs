//! Command lines that cost more than a hook has: answered in time, and with a no where another agent holds
//! something.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{recorded, told, world};
use crate::support::World;

/// Far below what a host gives a hook, and enough for a machine under load.
const SECONDS_MAX: Duration = Duration::from_secs(15);

/// Refused within seconds, as a command line of this kind is.
#[track_caller]
fn is_refused_in_time(world: &World, kind: &str, command: &str) -> String {
    let begun = Instant::now();
    let said = world.objection("claude", &told(world, command));
    let took = begun.elapsed();
    assert!(took < SECONDS_MAX, "{kind} took {took:?}");
    said.unwrap_or_else(|| panic!("not refused: {kind}"))
}

/// Scripts that run two others each, eight levels deep, and at the very end what is not to be.
fn scripts(world: &World) {
    let mut scripts = serde_json::Map::new();
    for at in 0..8 {
        scripts.insert(format!("s{at}"), json!(format!("npm run s{} && npm run s{}", at + 1, at + 1)));
    }
    scripts.insert("s8".into(), json!("npm run s0 && npm run s0"));
    world.write("package.json", &json!({ "scripts": scripts }).to_string());
}

#[test]
fn scripts_that_run_each_other_without_end_are_refused_in_time() {
    let world = world("claude");
    let _daemon = world.start();
    scripts(&world);
    // Where nobody else has anything it does not matter what cannot be told.
    world.goes_on("claude", &told(&world, "npm run s0; rm src/auth.ts"));
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let why = is_refused_in_time(&world, "scripts", "npm run s0; rm src/auth.ts");
    assert!(why.contains("cannot be worked out") && why.contains("codex-1"), "{why}");
    // From another folder it is no other command.
    is_refused_in_time(&world, "scripts from below", "mkdir -p docs && cd docs && npm run s0");
    world.write("Makefile", "all: a b\na b:\n\t$(MAKE) all; make all; make all\n\trm src/auth.ts\n");
    is_refused_in_time(&world, "rules", "make all");
}

#[test]
fn what_is_nested_beyond_the_bounds_is_refused_in_time() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let quoted = (0..12).fold("rm src/auth.ts".to_owned(), |line, _| {
        format!("sh -c '{}'", line.replace('\'', "'\\''").chars().take(200_000).collect::<String>())
    });
    let rounds: Vec<String> = (0..64).map(|it| format!("f{it}")).collect();
    let rounds = rounds.join(" ");
    let loops = format!(
        "for a in {rounds}; do for b in {rounds}; do for c in {rounds}; do sh -c \"eval 'echo $a$b$c'\"; done; done; \
         done; rm src/auth.ts"
    );
    let hidden = format!("for f in {rounds} {rounds} {rounds} {rounds} {rounds} src/auth.ts; do rm $f; done");
    let kinds = [
        ("substitutions", nested("echo $(", "rm src/auth.ts", ")", 40)),
        ("many substitutions", nested("$(", "rm src/auth.ts", ")", 20_000)),
        ("quoted substitutions", nested("echo \"$(", "rm src/auth.ts", ")\"", 300)),
        ("eval", format!("{} rm src/auth.ts", "eval ".repeat(5_000))),
        ("sh -c", quoted),
        ("xargs", format!("{} rm src/auth.ts", "xargs ".repeat(100_000))),
        ("find", format!("{} rm src/auth.ts", "find . -exec ".repeat(50_000))),
        ("loops", loops),
        ("a loop of many rounds", hidden),
        ("subshells", nested("(", "rm src/auth.ts", ")", 100_000)),
        ("doubling", format!("a=xxxxxxxx; {} rm $a src/auth.ts", "a=$a$a; ".repeat(60))),
        (
            "doubling in code",
            format!(
                "python3 -c 'x=[\"a\"]; {} open(x, \"w\"); open(\"src/auth.ts\", \"w\")'",
                "x=[x,x]; ".repeat(60)
            ),
        ),
    ];
    for (kind, command) in kinds {
        is_refused_in_time(&world, kind, &command);
    }
}

#[test]
fn loops_around_what_only_reads_go_on() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let names: Vec<String> = (0..17).map(|it| format!("f{it}")).collect();
    let names = names.join(" ");
    let loops = |inner: &str| format!("for a in {names}; do for b in {names}; do {inner}; done; done");
    for inner in ["echo $a $b", "docker run -e A=$a -e B=$b image 2>&1"] {
        world.goes_on("claude", &told(&world, &loops(inner)));
    }
    for inner in ["rm $a $b", "echo $a > $b", "echo $a $b | sh", "echo $a $b; rm src/auth.ts"] {
        is_refused_in_time(&world, inner, &loops(inner));
    }
}

#[test]
fn long_lines_and_rubbish_are_answered_in_time() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let mb = |text: &str| text.repeat((1 << 20) / text.len());
    let mut many = String::new();
    for at in 0..3_000 {
        write!(many, "rm -rf folder{at}; rm g{at}*; git reset --hard HEAD~{at}; ").unwrap();
    }
    let refused = [
        ("words", format!("echo {}; rm src/auth.ts", mb("a "))),
        ("separators", format!("{} rm src/auth.ts", mb(";"))),
        ("braces", format!("echo {}; rm src/auth.ts", mb("{"))),
        ("code", format!("python3 -c '{}'; rm src/auth.ts", mb("open a = "))),
        ("calls", format!("python3 -c '{}'; rm src/auth.ts", mb("open("))),
        ("a text", format!("cat > /dev/null <<EOF\n{}\nEOF\nrm src/auth.ts", mb("some text\n"))),
        ("many writes", format!("{many} rm src/auth.ts")),
        ("choices", format!("rm {} src/auth.ts", "{a,b}".repeat(200))),
        ("long choices", format!("rm {}src/auth.ts{}", "{a,".repeat(100_000), "}".repeat(100_000))),
        (
            "nested defaults",
            format!("echo {} ; rm src/auth.ts", "${x:-".repeat(100_000) + &"}".repeat(100_000)),
        ),
        ("globs", format!("rm {} src/auth.ts", mb("**/x* "))),
        ("sudo", format!("{} rm src/auth.ts", mb("sudo "))),
        ("texts", format!("{}\n{}rm src/auth.ts", "cat <<A; ".repeat(20_000), "A\n".repeat(20_000))),
        ("more than is read", format!("echo {}; rm src/auth.ts", mb("a ").repeat(5))),
    ];
    for (kind, command) in refused {
        is_refused_in_time(&world, kind, &command);
    }
    // A shell takes none of these; all that counts is that there is an answer.
    let odd = [
        "'",
        "\"",
        "`",
        "$(",
        "${",
        "<<",
        "<<<",
        "\\",
        "$'",
        "(",
        ")",
        "{",
        "}",
        "'\"",
        "\"$(`",
        "\0",
        "é\u{301}",
    ];
    for odd in odd {
        for text in [odd.to_owned(), odd.repeat(50_000), format!("rm src/auth.ts {odd}")] {
            let begun = Instant::now();
            let _said = world.objection("claude", &told(&world, &text));
            assert!(begun.elapsed() < SECONDS_MAX, "{odd:?} × {}", text.len());
        }
    }
}

#[test]
fn other_tools_calls_that_cost_too_much_are_refused_in_time() {
    let world = world("claude");
    let _daemon = world.start();
    world.write("src/auth.ts", &"export const a = 1\n".repeat(50_000));
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let mut edit = recorded(&world, "claude/edit");
    let edits: Vec<Value> =
        (0..30_000).map(|at| json!({ "oldText": format!("b{at}"), "newText": "c" })).collect();
    edit["tool_input"] = json!({ "file_path": "src/auth.ts", "edits": edits });
    let begun = Instant::now();
    world.is_refused("claude", &edit);
    assert!(begun.elapsed() < SECONDS_MAX);
}
