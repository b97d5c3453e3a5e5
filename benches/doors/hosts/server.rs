//! A PostgreSQL server of the benchmark's own: in a temporary folder, on a Unix socket alone, with commits that reach the disk.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use provost::store::{Database, migrate};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// The user that `initdb` makes, who may do everything.
const OWNER: &str = "bench";

/// Where Debian has the programs of each version.
const BELOW: &str = "/usr/lib/postgresql";

/// How long the server may take to start.
const START_MAX: Duration = Duration::from_secs(30);

/// A server; ended when dropped.
pub(super) struct Server {
    dir: TempDir,
    child: Child,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let dir = TempDir::new()?;
        let data = dir.path().join("data");
        let mut initdb = Command::new(program("initdb")?);
        initdb.args(["-U", OWNER, "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]).arg(&data);
        let made = initdb.stdin(Stdio::null()).output()?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let lines = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = 60\nshared_buffers = 64MB\n\
             max_wal_size = 1GB\nlogging_collector = off\n",
            dir.path().display()
        );
        File::options().append(true).open(data.join("postgresql.conf"))?.write_all(lines.as_bytes())?;
        let log = File::create(dir.path().join("log"))?;
        // It ends with the benchmark, also where that is killed.
        let mut postgres = Command::new("setpriv");
        postgres.args(["--pdeathsig", "QUIT", "--"]).arg(program("postgres")?).arg("-D").arg(&data);
        let child = postgres.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut server = Self { dir, child };
        server.must_answer()?;
        Ok(server)
    }

    fn must_answer(&mut self) -> Result<()> {
        let (runtime, begun) = (runtime()?, Instant::now());
        while runtime.block_on(connect(self.dir(), "postgres")).is_err() {
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            if self.child.try_wait()?.is_some() || begun.elapsed() > START_MAX {
                bail!("the server does not answer: {}", log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The folder of its socket.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A new database with our tables.
    pub(super) fn database(&self, name: &str) -> Result<Database> {
        self.empty_database(name)?;
        let database = by(self.dir(), name);
        migrate(self.dir(), &database, false)?;
        Ok(database)
    }

    /// A new database without tables.
    pub(super) fn empty_database(&self, name: &str) -> Result<()> {
        let runtime = runtime()?;
        runtime.block_on(async {
            let client = connect(self.dir(), "postgres").await?;
            Ok(client.batch_execute(&format!("create database {name}")).await?)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // At once: nothing of it is kept.
        if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(0)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

/// A database of the server, by the socket in a folder.
pub(super) fn by(folder: &Path, name: &str) -> Database {
    let url = format!("postgresql:///{name}?host={}&user={OWNER}", folder.display());
    Database::at(&url, None, Some("bench"), Path::new("/bench"))
}

/// The runtime of one connection.
pub(super) fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// A bare connection.
pub(super) async fn connect(folder: &Path, database: &str) -> Result<Client> {
    let mut config = tokio_postgres::Config::new();
    config.host_path(folder).user(OWNER).dbname(database);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn program(name: &str) -> Result<PathBuf> {
    let versions = fs::read_dir(BELOW).into_iter().flatten().flatten();
    let found = versions.map(|it| it.path().join("bin").join(name)).filter(|it| it.exists()).max();
    found.with_context(|| format!("{name} is not below {BELOW}: install the package postgresql-15"))
}
