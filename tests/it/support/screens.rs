//! Screens that nobody looks at, and programs that only claim to take pictures of them.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Daemon, World, eventually};

/// The colour of every screen, and what a pixel of a picture of it must have.
pub(crate) const COLOUR: &str = "#1e90ff";
pub(crate) const PIXEL: [u8; 3] = [0x1e, 0x90, 0xff];

/// An X11 screen of one colour, 320 by 240, on a display that was free.
pub(crate) struct X11 {
    server: Child,
    pub(crate) display: String,
}

impl X11 {
    pub(crate) fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp", "-noreset", "-ac"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let display = format!(":{}", line.trim());
        assert_ne!(display, ":", "Xvfb found no display");
        let screen = Self { server, display };
        let painted = Command::new("xsetroot").args(["-display", &screen.display, "-solid", COLOUR]).status();
        assert!(painted.unwrap().success());
        screen
    }
}

impl Drop for X11 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The same for Wayland.
pub(crate) struct Wayland {
    server: Child,
    dir: tempfile::TempDir,
}

impl Wayland {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let wanted = format!(
            "xwayland disable\noutput HEADLESS-1 resolution 320x240 background {COLOUR} solid_color\n"
        );
        std::fs::write(dir.path().join("config"), wanted).unwrap();
        let server = Command::new("sway")
            .arg("--config")
            .arg(dir.path().join("config"))
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("WLR_BACKENDS", "headless"), ("WLR_RENDERER", "pixman")])
            .envs([("WLR_LIBINPUT_NO_DEVICES", "1")])
            .env("HOME", dir.path())
            .env("XDG_RUNTIME_DIR", dir.path())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.path().join("sway.log")).unwrap())
            .spawn()
            .unwrap();
        let screen = Self { server, dir };
        // The background is painted by a program of its own, which comes a moment later.
        eventually("sway's screen", || {
            let shot = screen.dir.path().join("probe.png");
            let grim = Command::new("grim")
                .arg(&shot)
                .env("XDG_RUNTIME_DIR", screen.dir.path())
                .env("WAYLAND_DISPLAY", screen.socket())
                .stderr(Stdio::null())
                .status();
            grim.unwrap().success() && pixel(&shot) == PIXEL
        });
        screen
    }

    /// Absolute, so that the daemon can have a runtime folder of its own.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("wayland-1")
    }
}

impl Drop for Wayland {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// One pixel of a picture, as another program decodes it.
pub(crate) fn pixel(picture: &Path) -> [u8; 3] {
    let decoded = Command::new("convert")
        .arg(format!("{}[1x1+5+5]", picture.display()))
        .args(["-depth", "8", "rgb:-"])
        .output()
        .unwrap();
    decoded.stdout.try_into().unwrap_or_default()
}

/// Width and height of a picture, as another program decodes it.
pub(crate) fn size(picture: &Path) -> String {
    let output = Command::new("identify").args(["-format", "%m %wx%h"]).arg(picture).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with a program of this name before all others. `$last` is the file that it is to write, `$tools` the
/// folder, in which there is a picture `good.png`.
pub(crate) fn stand_in(world: &World, name: &str, script: &str) -> PathBuf {
    let tools = world.path("tools");
    std::fs::create_dir_all(&tools).unwrap();
    let good = tools.join("good.png");
    let made = Command::new("convert").args(["-size", "4x4", &format!("xc:{COLOUR}")]).arg(&good).status();
    assert!(made.unwrap().success());
    let head = "#!/bin/sh\ntools=${0%/*}\nfor last; do :; done\n";
    std::fs::write(tools.join(name), format!("{head}{script}\n")).unwrap();
    std::fs::set_permissions(tools.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    tools
}

/// A daemon that sees this X11 display, and programs in `tools` before the system's.
pub(crate) fn start(world: &World, display: &str, tools: Option<&Path>) -> Daemon {
    let mut command = world.command(&["up", "--foreground"]);
    command.env("DISPLAY", display).env("SECRET_OF_THE_USER", "hunter2");
    if let Some(tools) = tools {
        command.env("PATH", format!("{}:/usr/bin:/bin", tools.display()));
    }
    world.start_as(command)
}
