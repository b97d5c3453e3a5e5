//! PgBouncer between a daemon and a server of the tests' own, in one of its modes.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use provost::store::Database;
use tempfile::TempDir;

use super::postgres::{Server, name_of};
use super::waits::until_some;

/// Where Debian has it, which is not in the search path of a user.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A pooler; ended when dropped.
pub(crate) struct Pooler {
    dir: TempDir,
    child: Child,
}

impl Pooler {
    pub(crate) fn at(server: &Server, mode: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("pb").tempdir().expect("a folder");
        let at = dir.path().display();
        let users = dir.path().join("users.txt");
        std::fs::write(&users, "\"provost\" \"\"\n").expect("the users");
        let text = format!(
            "[databases]\n* = host={} port=5432\n[pgbouncer]\nlisten_port = 5432\nunix_socket_dir = {at}\nauth_type = trust\n\
             auth_file = {}\npool_mode = {mode}\nmax_client_conn = 100\ndefault_pool_size = 20\n",
            server.dir().display(),
            users.display()
        );
        let settings = dir.path().join("pgbouncer.ini");
        std::fs::write(&settings, text).expect("the settings");
        let log = File::create(dir.path().join("log")).expect("a log");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", PROGRAM]).arg(&settings);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("the log")).stderr(log);
        let child = command.spawn().expect("setpriv, of util-linux");
        let socket = dir.path().join(".s.PGSQL.5432");
        until_some("the pooler listens (the package pgbouncer has it)", || UnixStream::connect(&socket).ok());
        Self { dir, child }
    }

    /// A database of the server, through it.
    pub(crate) fn database(&self, direct: &Database) -> Database {
        let url = format!(
            "postgresql:///{}?host={}&user=provost&port=5432",
            name_of(direct),
            self.dir.path().display()
        );
        Database { url: url.into(), ..direct.clone() }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
