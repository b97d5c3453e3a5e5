//! Tokens, minted and revoked at the command line.

use serde_json::Value;

use crate::support::World;

/// As a user does from where no agent has spoken, which these tests do.
pub(crate) fn run(world: &World, args: &[&str]) -> (i32, String, String) {
    let output = crate::support::apart(&world.command(args));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) fn run_json(world: &World, args: &[&str]) -> Value {
    let (code, out, err) = run(world, args);
    assert_eq!(code, 0, "{args:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{args:?}: {why}: {out}"))
}

/// Ends an agent's tokens.
pub(crate) fn revoke_of(world: &World, agent: &str) {
    let (code, _, err) = run(world, &["token", "revoke", "--of", agent]);
    assert_eq!(code, 0, "{err}");
}

pub(crate) fn mint(world: &World, agent: &str) -> String {
    let (code, out, err) = run(world, &["token", "mint", agent]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("pvst_") && out.len() == 69, "{out}");
    assert!(!err.contains(&out), "it is printed once");
    out
}
