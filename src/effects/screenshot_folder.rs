//! The folder for pictures of the screen. Blocking.
//!
//! The daemon opens the folder step by step from a handle, and refuses a symbolic link on the way. It accepts only a
//! regular file of the right kind and size as a picture; a picture never takes another one's name, and only the user
//! may read it. The daemon removes old pictures and nothing else.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::capture_config::ScreenshotFolder;
use super::engine_handle::now;
use super::prepare::worker_failed;
use provost_base::limits::PICTURE_BYTES_MAX;
use provost_base::{Digest, RepoPath, Timestamp};
use provost_domain::{Failure, Picture};
use provost_jail::Root;

/// Begins the name of a picture. DevIt 1.8.
const PREFIX: &str = "screenshot-";
/// Pictures of the same millisecond get a number, up to this one.
const SAME_MOMENT_MAX: u32 = 100;

/// The folder of pictures, opened.
pub(super) struct OpenFolder<'a> {
    folder: &'a ScreenshotFolder,
    dir: OwnedFd,
}

/// A picture in its final place.
#[derive(Debug)]
pub(super) struct StoredScreenshot {
    picture: Picture,
    dir: OwnedFd,
    name: String,
}

impl ScreenshotFolder {
    /// Opens the folder, and makes it if it is missing.
    ///
    /// # Errors
    /// [`Failure::Sandbox`] if it is not a folder beneath the base.
    pub(super) fn open(&self) -> Result<OpenFolder<'_>, Failure> {
        let shown = || self.base.join(self.folder.as_str());
        let refused = |why: String| Failure::Sandbox { why: why.into() };
        let root = Root::open(&self.base).and_then(|root| root.resolve_dir(&RepoPath::default()));
        let root = root.map_err(|err| refused(format!("screenshots cannot be kept: {err}")))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |at: &OwnedFd, name: &str| -> Result<OwnedFd, Errno> {
            match rustix::fs::mkdirat(at, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => rustix::fs::openat(at, name, flags, Mode::empty()),
                Err(errno) => Err(errno),
            }
        };
        let mut dir = rustix::fs::openat(root.handle().as_fd(), ".", flags, Mode::empty())
            .map_err(|errno| refused(format!("{}: {errno}", self.base.display())))?;
        for name in self.folder.as_str().split('/').filter(|name| !name.is_empty()) {
            dir = open(&dir, name).map_err(|errno| match errno {
                Errno::LOOP | Errno::NOTDIR => refused(format!(
                    "screenshots are not written to {}: '{name}' is a symbolic link or no folder; remove it",
                    shown().display()
                )),
                errno => refused(format!("screenshots cannot be written to {}: {errno}", shown().display())),
            })?;
        }
        Ok(OpenFolder { folder: self, dir })
    }
}

impl OpenFolder<'_> {
    /// Takes in a file that a program has written, if it is a picture.
    ///
    /// # Errors
    /// [`Failure::WorkerFailed`] with the fault of the file.
    pub(super) fn take_in(
        self,
        file: &Path,
        format: &str,
        program: &str,
    ) -> Result<StoredScreenshot, Failure> {
        let failed = |why: &str| worker_failed(format!("{program} {why}"));
        let io = |err: io::Error| worker_failed(format!("the picture could not be kept: {err}"));
        // The program may have left anything at this path: a link is not followed, and a pipe is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(file, flags, Mode::empty()) {
            Ok(opened) => File::from(opened),
            Err(Errno::NOENT) => return Err(failed("ended well and wrote no picture")),
            Err(Errno::LOOP) => return Err(failed("left a symbolic link instead of a picture")),
            Err(errno) => return Err(io(errno.into())),
        };
        let meta = opened.metadata().map_err(io)?;
        match meta.len() {
            // A second name could change the picture later.
            _ if !meta.is_file() || meta.nlink() != 1 => {
                return Err(failed("left something that is no picture"));
            }
            0 => return Err(failed("ended well and wrote an empty picture")),
            len if len > PICTURE_BYTES_MAX => return Err(failed("wrote more than a picture may have")),
            _ => {}
        }
        let content = content_of(opened).map_err(io)?;
        if !is_a(format, &content) {
            return Err(worker_failed(format!("{program} wrote something else than {format}")));
        }
        self.ignore_in_git();
        let (name, mut place) = self.place(now(), format).map_err(io)?;
        let written = place.write_all(&content).and_then(|()| place.sync_all());
        let taken = StoredScreenshot { picture: self.picture(&name, format, &content), name, dir: self.dir };
        if let Err(err) = written {
            taken.discard();
            return Err(io(err));
        }
        prune(&taken, self.folder.keep);
        Ok(taken)
    }

    fn picture(&self, name: &str, format: &str, content: &[u8]) -> Picture {
        let below = Path::new(self.folder.folder.as_str()).join(name);
        let path = if self.folder.relative { below } else { self.folder.base.join(below) };
        Picture {
            path: path.to_string_lossy().into(),
            format: format.into(),
            bytes: content.len() as u64,
            digest: Digest::from_bytes(Sha256::digest(content).into()),
        }
    }

    /// Creates a file under a name that no other picture has. DevIt 1.8: `screenshot-<UTC
    /// %Y%m%dT%H%M%S%.3fZ>.<format>`.
    fn place(&self, at: Timestamp, format: &str) -> io::Result<(String, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let moment = at.rfc3339().replace(['-', ':'], "");
        for number in 1..=SAME_MOMENT_MAX {
            let more = if number > 1 { format!("-{number}") } else { String::new() };
            let name = format!("{PREFIX}{moment}{more}.{format}");
            match rustix::fs::openat(&self.dir, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok((name, file.into())),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::other("every name of this moment is taken"))
    }

    /// Keeps `git add --all` from committing pictures of a person's screen.
    fn ignore_in_git(&self) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.dir, ".gitignore", flags, Mode::RUSR | Mode::WUSR);
        // An existing file has the person's own choice.
        if let Ok(file) = made
            && let Err(err) = File::from(file).write_all(b"*\n")
        {
            tracing::warn!(%err, "screenshots are not kept from git");
        }
    }
}

impl StoredScreenshot {
    pub(super) fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Removes a picture that no agent waits for.
    pub(super) fn discard(self) {
        if let Err(errno) = rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty()) {
            tracing::warn!(%errno, name = self.name, "a picture without a waiting task was not removed");
        }
    }
}

fn content_of(file: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(PICTURE_BYTES_MAX + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        0..=PICTURE_BYTES_MAX => Ok(content),
        _ => Err(io::Error::other("it grew while it was read")),
    }
}

/// Checks whether the content begins as files of this format do.
fn is_a(format: &str, content: &[u8]) -> bool {
    match format {
        "png" => content.starts_with(b"\x89PNG\r\n\x1a\n"),
        "jpg" | "jpeg" => content.starts_with(b"\xff\xd8\xff"),
        "bmp" => content.starts_with(b"BM"),
        "webp" => content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP"),
        "tiff" => content.starts_with(b"II*\0") || content.starts_with(b"MM\0*"),
        _ => false,
    }
}

/// Removes the oldest pictures beyond `keep`. The order of their names is that of their times.
fn prune(taken: &StoredScreenshot, keep: usize) {
    let listed = || -> Result<Vec<String>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&taken.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if is_ours(&name) && name != taken.name {
                names.push(name);
            }
        }
        Ok(names)
    };
    let mut names = match listed() {
        Ok(names) => names,
        Err(errno) => return tracing::warn!(%errno, "old screenshots are not removed"),
    };
    names.sort_unstable();
    let surplus = (names.len() + 1).saturating_sub(keep);
    for name in names.iter().take(surplus) {
        if let Err(errno) = rustix::fs::unlinkat(&taken.dir, name, AtFlags::empty()) {
            tracing::warn!(%errno, name, "an old screenshot was not removed");
        }
    }
}

/// Checks whether a name is one of our pictures': `screenshot-20251007T205456.713Z.png`.
fn is_ours(name: &str) -> bool {
    let moment = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.'));
    moment.is_some_and(|(begin, rest)| {
        begin.len() == "20251007T205456".len()
            && begin
                .bytes()
                .enumerate()
                .all(|(at, it)| if at == 8 { it == b'T' } else { it.is_ascii_digit() })
            && rest.len() > 4
            && rest.as_bytes()[..3].iter().all(u8::is_ascii_digit)
            && rest.as_bytes()[3] == b'Z'
    })
}
