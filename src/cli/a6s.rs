//! The command line of a program called `a6s`: editors' plugins tell people to start their daemon as `a6s daemon`, or `a6s code --daemon`.

use std::ffi::OsString;
use std::path::Path;

/// Returns the command line to run where this program is called `a6s`, for instance through a link: both forms become
/// `provost daemon start --foreground`, with their further arguments; every other command is Provost's own.
pub(super) fn read(args: Vec<OsString>) -> Vec<OsString> {
    let name = args.first().and_then(|name| Path::new(name).file_stem()?.to_str());
    if name != Some("a6s") {
        return args;
    }
    let words: Vec<&str> = args.iter().skip(1).map_while(|word| word.to_str()).take(2).collect();
    let taken = match words[..] {
        ["daemon", ..] => 1,
        ["code", "--daemon"] => 2,
        _ => 0,
    };
    let meant: &[&str] =
        if taken > 0 { &["provost", "daemon", "start", "--foreground"] } else { &["provost"] };
    meant.iter().map(OsString::from).chain(args.into_iter().skip(1 + taken)).collect()
}
