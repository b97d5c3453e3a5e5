//! Started the way editors' plugins tell people to start their daemon: as `a6s daemon`.

use std::ffi::OsString;
use std::path::Path;

/// The command line that is meant where this program goes by the name `a6s`, as a link to it does: `a6s daemon` is
/// `provost up --foreground`, with whatever stands behind it; every other command is our own.
pub(super) fn read(args: Vec<OsString>) -> Vec<OsString> {
    let name = args.first().and_then(|name| Path::new(name).file_stem()?.to_str());
    if name != Some("a6s") {
        return args;
    }
    let mut rest = args.into_iter().skip(1).peekable();
    let is_daemon = rest.next_if(|word| word == "daemon").is_some();
    let meant: &[&str] = if is_daemon { &["provost", "up", "--foreground"] } else { &["provost"] };
    meant.iter().map(OsString::from).chain(rest).collect()
}
