//! Translates the configuration of pictures of the screen for the modules that take and judge them.

use std::path::Path;

use provost_base::{RepoPath, Ttl};
use provost_config::{self as config, Config, Places};
use provost_domain::{Rate, Settings};
use provost_effects::{Backend, CaptureConfig, ScreenshotFolder};

/// Sets the core's part of the settings.
pub(super) fn settings(config: &Config, settings: &mut Settings) {
    let rate = config.screenshot.rate_limit;
    settings.screenshots = config.screenshot.enabled;
    settings.screenshot_rate =
        (rate.count > 0).then(|| Rate { count: rate.count, per: Ttl::seconds_clamped(rate.per_s.into()) });
}

/// Returns the configuration of taking pictures of the screen.
pub(super) fn capture_config(config: &Config, places: &Places) -> CaptureConfig {
    let settings = &config.screenshot;
    let root = config.workspace.sandbox_root.as_deref().unwrap_or(&places.root);
    CaptureConfig {
        backend: settings.backend.map(|backend| match backend {
            config::ScreenBackend::Scrot => Backend::Scrot,
            config::ScreenBackend::Import | config::ScreenBackend::Imagemagick => Backend::Import,
            config::ScreenBackend::Grim => Backend::Grim,
        }),
        format: settings.format.as_str(),
        folder: folder(settings, root, &places.state),
        staging: places.state.join("screen"),
        workspace: root.to_owned(),
        environment: std::env::vars_os().collect(),
    }
}

/// Returns the folder for pictures, which must lie beneath the workspace or the state folder.
fn folder(settings: &config::Screenshot, root: &Path, state: &Path) -> Result<ScreenshotFolder, String> {
    let (asked, keep) = (Path::new(&settings.output_dir), settings.keep as usize);
    let (base, inside) = match (asked.strip_prefix(root), asked.strip_prefix(state)) {
        (Ok(inside), _) => (root, inside),
        (_, Ok(inside)) => (state, inside),
        _ if asked.is_relative() => (root, asked),
        _ => {
            return Err(format!(
                "screenshot.output_dir: {} is neither below the workspace nor below {}",
                asked.display(),
                state.display()
            ));
        }
    };
    let folder = RepoPath::parse(&inside.to_string_lossy())
        .map_err(|err| format!("screenshot.output_dir: {} {err}", asked.display()))?;
    Ok(ScreenshotFolder { base: base.to_owned(), folder, relative: base == root, keep })
}

/// Returns a note for people about a setting that would make pictures fail, if there is one.
pub(super) fn note(config: &Config, places: &Places) -> Option<String> {
    capture_config(config, places).folder.err().filter(|_| config.screenshot.enabled)
}
