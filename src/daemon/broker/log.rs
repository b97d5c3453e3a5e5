//! `.git-paw/broker.log`: every message between agents, one line each, for people and programs that read files.
//!
//! The journal stores the messages; this file follows it. The file's own last line says how far it has come, so
//! that no message is missing after a crash, and none is there twice. A line that was being written then is written
//! again. An obstacle, above all a link, is reported and never followed.

use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::daemon::Daemon;
use provost_base::PostSeq;
use provost_base::limits::POLL_BYTES_MAX;
use provost_config::{Config, KeepLog, LogFormat};
use provost_domain::EventKind;
use provost_domain::view::Inboxes;
use provost_jail::PLACEHOLDER_MTIME;
use provost_protocols::broker::{entry, log_line};
use provost_service::{Letters, Provost, StoredPost};

const FOLDER: &str = ".git-paw";
const FILE: &str = "broker.log";

/// How often a missing folder is looked for, and a failed write is tried again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long messages are collected before they are written.
const GATHERED_FOR: Duration = Duration::from_millis(20);

/// The lengths of the file's end that are read to find its last line: a little first, and at last as much as the longest line can have.
const TAIL_BYTES: [u64; 3] = [64 << 10, 1 << 20, 16 << 20];

/// Follows the journal, and writes the file.
struct BrokerLog {
    provost: Provost,
    top: PathBuf,
    keep: KeepLog,
    format: LogFormat,
    /// The state in which this daemon left the file.
    left: Option<Left>,
    /// The last reported trouble, so that it is reported once.
    trouble: Option<String>,
}

/// An open file of the log, and the number of its last message.
struct Opened {
    file: File,
    last: Option<PostSeq>,
}

/// Recognises a file to which no other program has written, by device, inode and length; with the
/// number of its last message.
#[derive(Clone, Copy)]
struct Left {
    file: (u64, u64, u64),
    last: Option<PostSeq>,
}

impl Left {
    /// Makes the state after a write to the file's end: its length is our position, not the file's present length.
    fn at_the_end(mut file: &File, last: Option<PostSeq>) -> Result<Self> {
        let (device, inode, _) = identity(file)?;
        Ok(Self { file: (device, inode, file.stream_position()?), last })
    }
}

fn identity(file: &File) -> Result<(u64, u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let it = file.metadata()?;
    Ok((it.dev(), it.ino(), it.len()))
}

impl Daemon {
    /// Starts the task that keeps the file, as the configuration wants it.
    pub(super) fn keep_broker_log(&self, config: &Config) {
        let log = BrokerLog::new(self.provost.clone(), self.start.places.root.clone(), config);
        self.doors.spawn(log.follow(self.stop.clone()));
    }
}

impl BrokerLog {
    fn new(provost: Provost, top: PathBuf, config: &Config) -> Self {
        let (keep, format) = (config.broker.log, config.broker.log_format);
        Self { provost, top, keep, format, left: None, trouble: None }
    }

    /// Follows the journal until the daemon stops.
    async fn follow(mut self, stop: CancellationToken) {
        if self.keep == KeepLog::Never {
            return;
        }
        let mut events = self.provost.engine().subscribe();
        let mut look = tokio::time::interval(LOOK_EVERY);
        let (mut begin, mut settled, mut first) = (false, false, None);
        loop {
            let write = async {
                match first {
                    Some(first) => tokio::time::sleep_until(first + GATHERED_FOR).await,
                    None => std::future::pending().await,
                }
            };
            let stopping = tokio::select! {
                () = stop.cancelled() => true,
                event = events.recv() => match event {
                    Ok(event) if matches!(event.kind, EventKind::PostLogBegun { .. }) => { begin = true; false }
                    // If there is no file, messages are no reason to look for one.
                    Ok(event) if !settled || !matches!(event.kind, EventKind::Published { .. }) => continue,
                    // Messages that come within a moment are written with this one.
                    Ok(_) | Err(RecvError::Lagged(_)) => { first.get_or_insert_with(Instant::now); continue }
                    Err(RecvError::Closed) => return,
                },
                () = write => false,
                // Once the file exists, it is looked at only after events.
                _ = look.tick(), if !settled => false,
            };
            first = None;
            // Events that have come meanwhile are handled together.
            while let Ok(event) = events.try_recv() {
                begin |= matches!(event.kind, EventKind::PostLogBegun { .. });
            }
            match self.catch_up(begin).await {
                Ok(found) => (self.trouble, begin, settled) = (None, false, found),
                Err(err) => {
                    settled = false;
                    self.report(format!("{err:#}"));
                }
            }
            if stopping {
                return;
            }
        }
    }

    fn report(&mut self, trouble: String) {
        if self.trouble.as_ref() != Some(&trouble) {
            tracing::warn!(door = "broker", "the audit log is not written: {trouble}");
            self.trouble = Some(trouble);
        }
    }

    /// Writes the messages that the file lacks; begins the file again if that is wanted. Returns
    /// whether there is a file.
    async fn catch_up(&mut self, begin: bool) -> Result<bool> {
        let (_, from) = self.provost.view(Inboxes).await?;
        let (top, keep, left) = (self.top.clone(), self.keep, self.left.take());
        let opened = tokio::task::spawn_blocking(move || open(&top, keep == KeepLog::Always, begin, left));
        let Some(Opened { mut file, last }) = opened.await?? else { return Ok(false) };
        // A file that is older than the beginning of the log goes on from that beginning.
        let mut after = last.unwrap_or(from).max(from);
        let mut last = last;
        loop {
            let letters = self.provost.letters(Letters::After(after), POLL_BYTES_MAX).await?;
            let Some(newest) = letters.last().map(|it| it.n) else { break };
            let format = self.format;
            file = tokio::task::spawn_blocking(move || write(file, letters, format)).await??;
            (after, last) = (newest, Some(newest));
        }
        self.left = Some(tokio::task::spawn_blocking(move || Left::at_the_end(&file, last)).await??);
        Ok(true)
    }
}

fn write(mut file: File, letters: Vec<StoredPost>, format: LogFormat) -> Result<File> {
    let mut lines = String::new();
    for letter in letters {
        match format {
            LogFormat::Json => lines.push_str(&serde_json::to_string(&entry(letter))?),
            LogFormat::Text => lines.push_str(&log_line(&entry(letter))),
        }
        lines.push('\n');
    }
    file.write_all(lines.as_bytes())?;
    Ok(file)
}

/// Opens the folder; `None` if it is missing and must not be made.
fn folder(top: &Path, make: bool) -> Result<Option<OwnedFd>> {
    let path = top.join(FOLDER);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = rustix::fs::open(top, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let made = make && mkdirat(&top, FOLDER, Mode::RWXU).is_ok();
    let folder = match openat(&top, FOLDER, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
            bail!("{}: is a link or a file, and must be a folder; remove it", path.display())
        }
        Err(errno) => return Err(errno).with_context(|| path.display().to_string()),
    };
    // This is a jail's placeholder, which goes away with its worker.
    if fstat(&folder)?.st_mtime == PLACEHOLDER_MTIME {
        return Ok(None);
    }
    if made {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(file) = openat(&folder, ".gitignore", flags, Mode::RUSR | Mode::WUSR) {
            File::from(file).write_all(b"*\n")?;
        }
    }
    Ok(Some(folder))
}

/// Opens the file at its end, with the number in its last line, which is read unless the file is as we left it. Cuts off
/// half a line there.
fn open(top: &Path, make: bool, begin: bool, left: Option<Left>) -> Result<Option<Opened>> {
    let Some(folder) = folder(top, make)? else { return Ok(None) };
    let path = top.join(FOLDER).join(FILE);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(&folder, FILE, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => file,
        Err(Errno::LOOP | Errno::MLINK | Errno::ISDIR | Errno::NXIO) => {
            bail!("{}: is not a plain file; remove it", path.display())
        }
        Err(errno) => return Err(errno).with_context(|| path.display().to_string()),
    };
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink != 1 {
        bail!("{}: is not a plain file of one name; remove it", path.display());
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    }
    let mut file = File::from(file);
    if begin {
        file.set_len(0)?;
    }
    let now = identity(&file)?;
    let last = match left.filter(|it| it.file == now && !begin) {
        Some(left) => left.last,
        None => last_number(&mut file).with_context(|| path.display().to_string())?,
    };
    file.seek(SeekFrom::End(0))?;
    Ok(Some(Opened { file, last }))
}

fn last_number(file: &mut File) -> Result<Option<PostSeq>> {
    let len = file.metadata()?.len();
    for bytes in TAIL_BYTES {
        let from = len.saturating_sub(bytes);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        Read::by_ref(file).take(bytes).read_to_end(&mut tail)?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = tail[..whole].trim_ascii_end();
        let begin = lines.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        // A line whose beginning was not read has no number yet.
        let Some(begin) = begin.or((from == 0 || bytes == TAIL_BYTES[2]).then_some(0)) else { continue };
        if from + whole as u64 != len {
            file.set_len(from + whole as u64)?;
        }
        return match lines.get(begin..).unwrap_or_default() {
            [] => Ok(None),
            line => match number(line) {
                Some(n) => Ok(Some(n)),
                None => bail!("its last line has no number; move the file away, and a whole one is written"),
            },
        };
    }
    Ok(None)
}

/// Reads the number of a line: `{"seq":7,...` or `[7] ...`.
fn number(line: &[u8]) -> Option<PostSeq> {
    let text = std::str::from_utf8(line).ok()?;
    let rest = text.strip_prefix("{\"seq\":").or_else(|| text.strip_prefix('['))?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..digits].parse().ok().map(PostSeq)
}
