//! The parameters for taking pictures of the screen. `capture_backend` runs the programs.

use std::ffi::OsString;
use std::path::PathBuf;

use provost_base::RepoPath;

/// A program that takes pictures. DevIt 1.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// The program `scrot`, for X11.
    Scrot,
    /// The program `import` of ImageMagick, for X11.
    Import,
    /// The program `grim`, for Wayland.
    Grim,
}

/// The present configuration of taking pictures.
#[derive(Clone, Debug)]
pub struct CaptureConfig {
    /// The program, where the configuration names one.
    pub backend: Option<Backend>,
    /// Format of the picture, as a file extension.
    pub format: &'static str,
    /// The folder for the pictures, or the reason why no folder can be used.
    pub folder: Result<ScreenshotFolder, String>,
    /// A folder of the daemon's own for unfinished pictures; emptied at start.
    pub staging: PathBuf,
    /// The workspace: no program from there takes pictures.
    pub workspace: PathBuf,
    /// The daemon's environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// The folder of pictures, before it is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScreenshotFolder {
    /// The workspace or the state folder.
    pub base: PathBuf,
    /// The folder of the pictures, beneath the base.
    pub folder: RepoPath,
    /// Whether clients get the path relative to the base, as clients in the workspace want it.
    pub relative: bool,
    /// The number of pictures that are kept.
    pub keep: usize,
}
