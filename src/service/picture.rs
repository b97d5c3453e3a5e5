//! Reads finished pictures of the screen, and makes a small one for the answer.
//!
//! It compares the file with the recorded digest, so that no other content is shown under its name. Only the agent
//! that asked for a picture sees it.

use std::io::{self, Cursor, Read as _};
use std::path::{Path, PathBuf};

use super::{Base, Provost};
use provost_base::limits::{PICTURE_BYTES_MAX, PICTURE_PIXELS_MAX, THUMB_WIDTH_MAX};
use provost_base::{Digest, Json, RepoPath, TaskId};
use provost_domain::command::Status;
use provost_domain::{Principal, Refusal, TaskState};
use provost_jail::Root;
use provost_system::reading_without_waiting;

/// A picture that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// Its format, as a file extension.
    pub format: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// A small version of it, or the reason why there is none.
    pub thumb: Result<Thumb, String>,
}

/// A small picture in PNG.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thumb {
    /// The whole file, in PNG.
    pub png: Vec<u8>,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

impl Provost {
    /// Returns a picture that the caller has asked for, with a small one of at most this width; `None` until it was taken.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] also for a picture of another agent.
    pub async fn picture(
        &self,
        who: &Principal,
        task: &TaskId,
        width: u32,
    ) -> Result<Option<Shown>, Refusal> {
        let task = self.task(task).await?;
        if !task.capture || task.asked_by != *who.agent() {
            return Err(Refusal::TaskNotFound);
        }
        if !matches!(task.state, TaskState::Finished { status: Status::Completed, .. }) {
            return Ok(None);
        }
        let details = task.notes.last().and_then(|note| note.report.details.as_ref()).map(Json::value);
        let details = details.unwrap_or_default();
        let text = |name: &str| details[name].as_str().unwrap_or_default().to_owned();
        let (path, format, digest) = (text("path"), text("format"), text("sha256"));
        let bytes = details["size"]["bytes"].as_u64().unwrap_or(0);
        let (base, at, kind) = (self.base().clone(), path.clone(), format.clone());
        let width = width.clamp(1, THUMB_WIDTH_MAX);
        let look = move || match &*kind {
            "png" => small(&base, &at, &digest, width),
            other => Err(format!("pictures in {other} are not made smaller; only png is")),
        };
        let thumb = self.in_turn(look).await.unwrap_or_else(|| Err("the daemon is shutting down".into()));
        let path = self.root().place().path().join(path);
        Ok(Some(Shown { path, format, bytes, thumb }))
    }
}

fn small(base: &Base, path: &str, digest: &str, width: u32) -> Result<Thumb, String> {
    let content = content(base, path).map_err(|err| format!("the picture cannot be read: {err}"))?;
    if Digest::of(&content).to_string() != digest {
        return Err("the file is no longer the picture that was taken".into());
    }
    smaller(&content, width).map_err(|err| format!("the picture cannot be made smaller: {err}"))
}

fn content(base: &Base, path: &str) -> io::Result<Vec<u8>> {
    let outside = || io::Error::other("its path leads elsewhere");
    let file = if Path::new(path).is_absolute() {
        let (folder, name) = path.rsplit_once('/').ok_or_else(outside)?;
        let root = Root::open(Path::new(folder)).map_err(io::Error::other)?;
        root.handle().open_with(name, &reading_without_waiting())?
    } else {
        let path = RepoPath::parse(path).map_err(|_| outside())?;
        base.root().handle().open_with(path.as_str(), &reading_without_waiting())?
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut content = Vec::new();
    file.take(PICTURE_BYTES_MAX + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        0..=PICTURE_BYTES_MAX => Ok(content),
        _ => Err(io::Error::other("it is too large")),
    }
}

/// The number of 8-bit channels: red, green and blue.
const CHANNELS: usize = 3;

fn smaller(content: &[u8], width: u32) -> Result<Thumb, String> {
    let text = |err: png::DecodingError| err.to_string();
    let mut decoder = png::Decoder::new(Cursor::new(content));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(text)?;
    let (from_width, from_height) = reader.info().size();
    let pixels = u64::from(from_width) * u64::from(from_height);
    if pixels == 0 || pixels > PICTURE_PIXELS_MAX {
        return Err(format!("it has {from_width} by {from_height} pixels"));
    }
    let size = reader.output_buffer_size().ok_or("it is too large")?;
    let mut raw = vec![0; size];
    let frame = reader.next_frame(&mut raw).map_err(text)?;
    let step = frame.color_type.samples();
    let width = width.min(from_width);
    let height =
        u32::try_from(u64::from(from_height) * u64::from(width) / u64::from(from_width)).unwrap_or(1);
    let height = height.max(1);
    let mut rows = Vec::with_capacity(CHANNELS * width as usize * height as usize);
    for y in 0..height {
        let (top, bottom) = part(y, height, from_height);
        for x in 0..width {
            let (left, right) = part(x, width, from_width);
            rows.extend(mean(&raw, frame.line_size, step, (left, right), (top, bottom)));
        }
    }
    let png = encoded(&rows, width, height).map_err(|err| err.to_string())?;
    Ok(Thumb { png, width, height })
}

/// Returns the range of source pixels, out of `from`, that target pixel `at`, out of `to`, stands for.
fn part(at: u32, to: u32, from: u32) -> (usize, usize) {
    let edge = |at: u32| (u64::from(at) * u64::from(from) / u64::from(to)) as usize;
    (edge(at), edge(at + 1).max(edge(at) + 1))
}

/// Returns the mean colour of some pixels; a gray pixel counts as equally red, green and blue.
fn mean(
    raw: &[u8],
    line: usize,
    step: usize,
    (left, right): (usize, usize),
    (top, bottom): (usize, usize),
) -> [u8; CHANNELS] {
    let (mut sums, mut count) = ([0_u64; CHANNELS], 0_u64);
    for y in top..bottom {
        for x in left..right {
            let at = y * line + x * step;
            let pixel = raw.get(at..at + step).unwrap_or_default();
            for (channel, sum) in sums.iter_mut().enumerate() {
                let of = if step >= CHANNELS { channel } else { 0 };
                *sum += u64::from(pixel.get(of).copied().unwrap_or(0));
            }
            count += 1;
        }
    }
    sums.map(|sum| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX))
}

fn encoded(rows: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rows)?;
    writer.finish()?;
    Ok(out)
}
