//! PostgreSQL servers of the tests' own: in temporary folders, as the ordinary user, on Unix sockets alone
//! unless a test wants TLS. A server ends with the process of its test, however that ends. The cluster is made
//! once for a run and copied then.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use provost::store::{Database, migrate};
use tempfile::TempDir;

use super::clocks::Clocks;
use super::sessions::Crowd;
use super::small_disk::SmallDisk;
use super::waits::{until_some, within};

/// The user that `initdb` makes, who may do everything.
const OWNER: &str = "provost";

/// Where Debian has the programs of a version that are not in the search path.
const BELOW: &str = "/usr/lib/postgresql";

/// Names the folder of another version's programs, which the tests use instead.
const OTHER: &str = "PROVOST_TEST_POSTGRES";

/// A program of PostgreSQL's.
fn program(name: &str) -> PathBuf {
    if let Some(other) = std::env::var_os(OTHER).filter(|it| !it.is_empty()) {
        let program = Path::new(&other).join(name);
        assert!(program.exists(), "{OTHER}: there is no {}", program.display());
        return program;
    }
    let versions = std::fs::read_dir(BELOW).into_iter().flatten().flatten();
    let found = versions.map(|it| it.path().join("bin").join(name)).filter(|it| it.exists()).max();
    found.unwrap_or_else(|| {
        panic!("{name} is not below {BELOW}: install the package postgresql-15, as scripts/test does")
    })
}

/// A server; ended when dropped.
pub(crate) struct Server {
    dir: TempDir,
    child: Option<Child>,
    port: u16,
    databases: AtomicU32,
    /// Where some of its files are, if not on the machine's disk.
    disk: Option<(SmallDisk, OnDisk)>,
    /// Its clock, where a test can set it.
    clocks: Option<Clocks>,
}

/// The part of a server that is on a small disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDisk {
    /// All but the log of what is written: a table that grows finds no room, and its statement fails.
    Tables,
    /// The log of what is written alone: a server that finds no room for it ends its sessions, and does not come back before there is.
    Wal,
}

impl Server {
    /// The one that all databases of this process are in.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| {
            // A server ends with the thread that has started it; this one lasts as long as the process.
            let (give, take) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                give.send(Self::start()).expect("the test waits for it");
                loop {
                    std::thread::park();
                }
            });
            take.recv().expect("a server")
        })
    }

    /// One of its own, for a test that ends it or has settings.
    pub(crate) fn start() -> Self {
        Self::start_with(5432, |_| String::new())
    }

    /// One that also listens on the loopback, with TLS and passwords: with this certificate and its key, in PEM.
    pub(crate) fn start_secure(certificate: &str, key: &str) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("its number")
            .port();
        Self::start_with(free, |data| {
            std::fs::write(data.join("server.crt"), certificate).expect("a certificate");
            let path = data.join("server.key");
            std::fs::write(&path, key).expect("a key");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("it is private");
            let rules = "local all all trust\nhostssl all all all scram-sha-256\n";
            std::fs::write(data.join("pg_hba.conf"), rules).expect("the rules");
            "listen_addresses = 'localhost'\nssl = on\n".into()
        })
    }

    /// One with an identifier of its own: the others are copies of one cluster, and have the same.
    pub(crate) fn of_another_system() -> Self {
        Self::start_with(5432, |data| {
            std::fs::remove_dir_all(data).expect("the copy goes");
            make_cluster(data);
            String::new()
        })
    }

    /// Starts one after its folder was prepared; what that answers are more lines of settings.
    fn start_with(port: u16, prepare: impl FnOnce(&Path) -> String) -> Self {
        let mut server = Self::prepared(port, prepare);
        server.resume();
        server
    }

    fn stopped(dir: TempDir, port: u16) -> Self {
        Self { dir, child: None, port, databases: AtomicU32::new(0), disk: None, clocks: None }
    }

    /// One that has some of its files on a disk of `mib` MiB; `taken` of these are filled, and are freed later.
    pub(crate) fn on_small_disk(what: OnDisk, mib: u32, taken: u32) -> Self {
        // No checkpoint gives room back.
        let mut server = Self::prepared(5432, |_| {
            "checkpoint_timeout = 1d\nmax_wal_size = 1GB\nautovacuum = off\n".into()
        });
        let (data, at) = (server.data(), server.dir.path().join("small"));
        let disk = SmallDisk::at(&at, mib, taken);
        let (data, at, wal) = (data.display(), at.display(), server.dir.path().join("wal"));
        match what {
            OnDisk::Tables => disk.run(&format!(
                "mkdir -m 0700 '{at}/data' && cp -a '{data}/.' '{at}/data' && mv '{at}/data/pg_wal' '{wal}' && \
                 ln -s '{wal}' '{at}/data/pg_wal'",
                wal = wal.display()
            )),
            OnDisk::Wal => disk.run(&format!("mv '{data}/pg_wal' '{at}/wal' && ln -s '{at}/wal' '{data}/pg_wal'")),
        };
        server.disk = Some((disk, what));
        server.resume();
        server
    }

    /// One whose clock a test can set.
    pub(crate) fn with_clocks() -> Self {
        let mut server = Self::prepared(5432, |_| String::new());
        server.clocks = Some(Clocks::in_folder(server.dir.path()));
        server.resume();
        server
    }

    /// Sets how many seconds its clock is ahead.
    pub(crate) fn set_clock(&self, ahead_s: i64) {
        self.clocks.as_ref().expect("it has one of its own").set(ahead_s, 0);
    }

    /// Its small disk.
    pub(crate) fn disk(&self) -> &SmallDisk {
        &self.disk.as_ref().expect("it has one").0
    }

    /// Writes rows until there is no room for more, and then takes so many KiB back: the last ones are others' to write.
    pub(crate) fn fill(&self, leave_kib: u32) {
        self.sql("postgres", "create table spare (x text); create table filler (x text)");
        let rows = |table: &str, kib: u32| {
            format!(
                "insert into {table} select repeat(md5(random()::text), 30) from generate_series(1, {kib})"
            )
        };
        self.sql("postgres", &rows("spare", leave_kib));
        let more = rows("filler", 500);
        let mut written = 0;
        while self.says("postgres", &more).is_some() {
            written += 1;
            assert!(written < 1_000, "the disk is not small");
        }
        // A server without room for its log ends its sessions.
        let _ = self.says("postgres", "drop table spare");
    }

    fn prepared(port: u16, prepare: impl FnOnce(&Path) -> String) -> Self {
        let dir = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder");
        let copied =
            Command::new("cp").arg("--archive").arg(template()).arg(dir.path().join("data")).status();
        assert!(copied.expect("cp").success(), "the cluster is copied");
        let server = Self::stopped(dir, port);
        let data = server.dir.path().join("data");
        let lines = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nport = {port}\nmax_connections = \
                60\nshared_buffers = 16MB\n\
             logging_collector = off\n{}\n",
            server.dir.path().display(),
            prepare(&data)
        );
        let path = data.join("postgresql.auto.conf");
        std::fs::write(path, lines).expect("the settings are written");
        server
    }

    /// Starts it over what it has on its disk.
    pub(crate) fn resume(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).expect("a log");
        let mut command = self.disk.as_ref().map_or_else(|| Command::new("env"), |(disk, _)| disk.command());
        // Innermost: who enters a namespace forgets it.
        command
            .args(["setpriv", "--pdeathsig", "QUIT", "--"])
            .arg(program("postgres"))
            .arg("-D")
            .arg(self.data());
        if let Some(clocks) = &self.clocks {
            clocks.give(&mut command);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("the log")).stderr(log).process_group(0);
        let seen = self.log().len();
        self.child = Some(command.spawn().expect("setpriv, of util-linux"));
        let mut found = false;
        for _ in 0..2_000 {
            if self.says("postgres", "select 1").is_some() {
                found = true;
                break;
            }
            let ended = self.child.as_mut().and_then(|it| it.try_wait().ok().flatten());
            if ended.is_some() {
                // A session of the one before has not noticed its end yet.
                let is_early = self.log().get(seen..).is_some_and(|it| it.contains("shared memory block"));
                assert!(is_early, "the server ended: {}", self.log());
                self.child = Some(command.spawn().expect("setpriv, of util-linux"));
            }
            // Nothing but an answer says that it is there.
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(found, "the server does not answer: {}", self.log());
    }

    /// Has a server that runs begin a timeline of its own, as an operator does whose other servers are gone.
    pub(crate) fn promote_once_more(&mut self) {
        self.kill();
        File::create(self.data().join("standby.signal")).expect("the file is made");
        self.resume();
        self.promote();
    }

    /// Ends it at once and without a word: as kill -9 of all its processes does.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let group = format!("-{}", child.id());
        // Stopped, it begins no session that would be missed.
        let _ = Command::new("kill").args(["-STOP", &child.id().to_string()]).status();
        let sessions = children_of(child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        for it in sessions {
            let _ = Command::new("kill").args(["-9", &it.to_string()]).stderr(Stdio::null()).status();
        }
        child.wait().expect("it has ended");
    }

    fn data(&self) -> PathBuf {
        match self.disk {
            Some((_, OnDisk::Tables)) => self.dir.path().join("small/data"),
            _ => self.dir.path().join("data"),
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_some_and(|it| it.try_wait().expect("it is ours").is_some())
    }

    /// So many tries to begin a session, and then one after the other, as long as what this returns is there.
    pub(crate) fn crowd(&self, tries: usize) -> Crowd {
        Crowd::at(self.dir.path().join(format!(".s.PGSQL.{}", self.port)), OWNER, tries)
    }

    /// Ends all sessions of its owner's, from outside.
    pub(crate) fn end_sessions(&self) {
        for it in self.processes(&format!("{OWNER} test_")) {
            let _ = Command::new("kill").args(["-TERM", &it.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// Stops all of its processes where they are, or lets them go on: a machine that hangs.
    pub(crate) fn hang(&self, hangs: bool) {
        let signal = if hangs { "-STOP" } else { "-CONT" };
        let child = self.child.as_ref().expect("it runs").id();
        let mut all = children_of(child);
        all.push(child);
        for it in all {
            // One that has ended meanwhile hangs as well.
            let _ = Command::new("kill").args([signal, &it.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// A standby of this server, which follows it under a name.
    pub(crate) fn standby(&self, name: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder");
        let data = dir.path().join("data");
        let mut copy = Command::new(program("pg_basebackup"));
        copy.args(["-U", OWNER, "-X", "stream", "-c", "fast", "--no-sync", "-p", &self.port.to_string()]);
        copy.arg("-h").arg(self.dir.path()).arg("-D").arg(&data);
        let out = copy.stdin(Stdio::null()).output().expect("pg_basebackup");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        std::fs::write(data.join("standby.signal"), "").expect("it is a standby");
        let lines = format!(
            "unix_socket_directories = '{}'\nsynchronous_standby_names = ''\n\
             primary_conninfo = 'host={} port={} user={OWNER} application_name={name}'\n",
            dir.path().display(),
            self.dir.path().display(),
            self.port
        );
        let mut settings =
            File::options().append(true).open(data.join("postgresql.auto.conf")).expect("the settings");
        settings.write_all(lines.as_bytes()).expect("they are written");
        let mut standby = Self::stopped(dir, self.port);
        standby.resume();
        until_some("the standby follows", || {
            let sql = format!("select state from pg_stat_replication where application_name = '{name}'");
            (self.sql("postgres", &sql) == "streaming").then_some(())
        });
        standby
    }

    /// Puts the rows of a database into the same tables of another server, as a restored dump has them.
    pub(crate) fn copy_to(&self, other: &Self, name: &str) {
        let (file, ours) =
            (self.dir.path().join("copy"), "relnamespace = 'provost'::regnamespace and relkind = 'r'");
        for table in self.sql(name, &format!("select relname from pg_class where {ours}")).lines() {
            let copy = |way: &str| format!("copy provost.{table} {way} '{}'", file.display());
            self.sql(name, &copy("to"));
            other.sql(name, &format!("truncate provost.{table}"));
            other.sql(name, &copy("from"));
        }
    }

    /// Has it write a history of its own.
    pub(crate) fn promote(&self) {
        assert_eq!(self.sql("postgres", "select pg_promote()"), "t");
    }

    /// A setting from now on.
    pub(crate) fn set(&self, setting: &str) {
        self.sql("postgres", &format!("alter system set {setting}"));
        self.sql("postgres", "select pg_reload_conf()");
    }

    /// A database that two servers have: the one that writes is taken.
    pub(crate) fn or(&self, other: &Self, database: &Database) -> String {
        format!(
            "host={},{} port={},{} user={OWNER} dbname={}",
            self.dir.path().display(),
            other.dir.path().display(),
            self.port,
            other.port,
            name_of(database)
        )
    }

    /// The processes of one kind, as their titles name it.
    pub(crate) fn processes(&self, kind: &str) -> Vec<u32> {
        let title = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let child = self.child.as_ref().expect("it runs").id();
        children_of(child).into_iter().filter(|it| title(it).contains(kind)).collect()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The same database over the loopback, with TLS, as this user with this password.
    pub(crate) fn secure(
        &self,
        database: &Database,
        host: &str,
        user: &str,
        password: &str,
        ca: &Path,
    ) -> Database {
        let (port, name) = (self.port, name_of(database));
        let url = format!("postgres://{user}@{host}:{port}/{name}?sslmode=verify-full");
        let password = Some(provost::base::Secret::new(password.as_bytes().to_vec()).into());
        Database { password, ..Database::at(&url, Some(ca), Some("shop"), Path::new("/shop")) }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A new database with our tables.
    pub(crate) fn database(&self) -> Database {
        let database = self.empty_database();
        migrate(self.dir.path(), &database, false).expect("the tables are made");
        database
    }

    /// A new database without any.
    pub(crate) fn empty_database(&self) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("create database {name}"));
        self.named(OWNER, &name)
    }

    /// A database of this server, as this user.
    pub(crate) fn named(&self, user: &str, database: &str) -> Database {
        let url = format!(
            "postgresql:///{database}?host={}&user={user}&port={}",
            self.dir.path().display(),
            self.port
        );
        Database::at(&url, None, Some("shop"), Path::new("/shop"))
    }

    /// Returns the answer to a statement, as the owner; the test fails if the server refuses it.
    pub(crate) fn sql(&self, database: &str, text: &str) -> String {
        let out = self.psql(database, text);
        assert!(out.status.success(), "{text}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// Returns the answer to a statement; `None` if the server refuses it.
    pub(crate) fn says(&self, database: &str, text: &str) -> Option<String> {
        let out = self.psql(database, text);
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Returns the answers to statements one after the other, in one session and each by itself, with the notifications that come
    /// meanwhile.
    pub(crate) fn session(&self, database: &str, texts: &[&str]) -> String {
        let out = self.psqls(database, texts);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn psql(&self, database: &str, text: &str) -> std::process::Output {
        self.psqls(database, &[text])
    }

    fn psqls(&self, database: &str, texts: &[&str]) -> std::process::Output {
        let mut command = Command::new(program("psql"));
        command
            .args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", OWNER, "-d", database])
            .args(texts.iter().flat_map(|it| ["-c", *it]))
            .arg("-h")
            .arg(self.dir.path());
        command.args(["-p", &self.port.to_string()]);
        command.env_clear().env("LC_ALL", "C").stdin(Stdio::null()).output().expect("psql")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A socket in front of a server's, which passes everything on, and drops one direction or both when a test says so. A connection that has
/// lost something never speaks again in that direction.
pub(crate) struct Between {
    dir: TempDir,
    loses: Arc<AtomicU8>,
    /// The milliseconds that each question takes to the server.
    takes_ms: Arc<AtomicU64>,
}

/// The direction that is lost between a client and its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Loses {
    Nothing = 0,
    Answers = 1,
    Questions = 2,
    Both = 3,
    /// No connection is made any more; those that exist go on.
    Newcomers = 4,
}

impl Between {
    pub(crate) fn at(server: &Server) -> Self {
        let dir = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder");
        let name = format!(".s.PGSQL.{}", server.port);
        let (listener, to) =
            (UnixListener::bind(dir.path().join(&name)).expect("a socket"), server.dir().join(&name));
        let loses = Arc::new(AtomicU8::new(Loses::Nothing as u8));
        let told = loses.clone();
        let takes_ms = Arc::new(AtomicU64::new(0));
        let takes = takes_ms.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if told.load(Ordering::Acquire) == Loses::Newcomers as u8 {
                    continue;
                }
                let Ok(server) = UnixStream::connect(&to) else { continue };
                let (Ok(from), Ok(into)) = (client.try_clone(), server.try_clone()) else { continue };
                let (there, back, takes) = (told.clone(), told.clone(), takes.clone());
                std::thread::spawn(move || pass(from, into, &there, (Loses::Questions, &takes)));
                let at_once = AtomicU64::new(0);
                std::thread::spawn(move || pass(server, client, &back, (Loses::Answers, &at_once)));
            }
        });
        Self { dir, loses, takes_ms }
    }

    pub(crate) fn swallow(&self, answers: bool) {
        self.lose(if answers { Loses::Answers } else { Loses::Nothing });
    }

    /// Puts the server so far away.
    pub(crate) fn far(&self, there_and_back: Duration) {
        self.takes_ms.store(there_and_back.as_millis().try_into().expect("a short time"), Ordering::Release);
    }

    pub(crate) fn lose(&self, what: Loses) {
        self.loses.store(what as u8, Ordering::Release);
    }

    /// A database of the server, by this way.
    pub(crate) fn database(&self, direct: &Database) -> Database {
        let url =
            format!("postgresql:///{}?host={}&user={OWNER}", name_of(direct), self.dir.path().display());
        Database { url: url.into(), ..direct.clone() }
    }
}

/// Passes on what goes one way, in its time, until something of it is lost.
fn pass(mut from: UnixStream, mut into: UnixStream, loses: &AtomicU8, (this, takes_ms): (Loses, &AtomicU64)) {
    let (mut bytes, mut is_mute) = ([0; 8_192], false);
    while let Ok(length) = from.read(&mut bytes) {
        is_mute |= loses.load(Ordering::Acquire) & this as u8 != 0;
        if length == 0 {
            break;
        }
        within(Duration::from_millis(takes_ms.load(Ordering::Acquire)), || false);
        if !is_mute && into.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
    if !is_mute {
        let _gone = into.shutdown(std::net::Shutdown::Write);
    }
}

/// The processes below one.
fn children_of(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|it| it.parse().ok()).collect()
}

/// The name of the database of an address.
pub(crate) fn name_of(database: &Database) -> String {
    let rest = database.url.split("///").nth(1).expect("an address of ours");
    rest.split('?').next().expect("a name").to_owned()
}

/// Makes a cluster, with an identifier of its own.
fn make_cluster(data: &Path) {
    let mut initdb = Command::new(program("initdb"));
    initdb.args(["-U", OWNER, "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]).arg(data);
    let out = initdb.stdin(Stdio::null()).output().expect("initdb");
    assert!(out.status.success(), "initdb: {}", String::from_utf8_lossy(&out.stderr));
}

/// A cluster that was made once for this run: the first test makes it, and the others wait.
fn template() -> PathBuf {
    // `postgres (PostgreSQL) 15.18 (…)`: clusters of two versions are not one.
    let said = Command::new(program("postgres")).arg("--version").output().expect("its version");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split_whitespace().nth(2).expect("a version");
    let place = std::env::temp_dir().join(format!("provost-postgres-{version}"));
    let ready = place.join("ready");
    let making = std::env::temp_dir().join(format!("provost-postgres-{version}.lock"));
    if !ready.exists() {
        let lock = File::options().create(true).truncate(false).write(true).open(&making).expect("a lock");
        lock.lock().expect("the lock is held");
        if !ready.exists() {
            let _ = std::fs::remove_dir_all(&place);
            std::fs::create_dir(&place).expect("a place for it");
            make_cluster(&place.join("data"));
            std::fs::write(&ready, "").expect("it is ready");
        }
    }
    until_some("the cluster is there", || ready.exists().then(|| place.join("data")))
}
