//! Prometheus' own program that reads what Prometheus reads.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn program() -> PathBuf {
    std::env::var_os("PROVOST_TEST_PROMTOOL").expect("scripts/test unpacks promtool and says where").into()
}

/// Has it do something, with this on its standard input. What it complains of, if anything.
pub(crate) fn promtool(args: &[&str], input: &str) -> Result<(), String> {
    let mut child = Command::new(program())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end before it has read everything, and says why.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(said(&output.stdout) + &said(&output.stderr))
}
