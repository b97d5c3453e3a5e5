//! The files that the page loads: its style and its modules. Each name has a digest of the content, so that a
//! browser may cache the file.
//!
//! A module names another by its plain name; the page replaces that by the name with the digest, so the digest of a
//! module covers the modules that it uses. Therefore the table is in the order of use: a used file comes first.
//!
//! The files that make the page an app have fixed paths: the manifest, and the service worker, which gets the names of all files.

use std::sync::LazyLock;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use provost_protocols::loopback::{Answer, whole};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";
const ICON: &str = "image/png";
const MANIFEST: &str = "application/manifest+json";

/// The files, in the order of use.
const FILES: &[(&str, &str, &[u8])] = &[
    ("page.css", CSS, include_bytes!("page/page.css")),
    ("mark.svg", PICTURE, include_bytes!("page/mark.svg")),
    ("icon-192.png", ICON, include_bytes!("page/icon-192.png")),
    ("icon-512.png", ICON, include_bytes!("page/icon-512.png")),
    ("maskable-192.png", ICON, include_bytes!("page/maskable-192.png")),
    ("maskable-512.png", ICON, include_bytes!("page/maskable-512.png")),
    ("dom.js", SCRIPT, include_bytes!("page/dom.js")),
    ("place.js", SCRIPT, include_bytes!("page/place.js")),
    ("pace.js", SCRIPT, include_bytes!("page/pace.js")),
    ("time.js", SCRIPT, include_bytes!("page/time.js")),
    ("live.js", SCRIPT, include_bytes!("page/live.js")),
    ("find.js", SCRIPT, include_bytes!("page/find.js")),
    ("lines.js", SCRIPT, include_bytes!("page/lines.js")),
    ("log.js", SCRIPT, include_bytes!("page/log.js")),
    ("sign.js", SCRIPT, include_bytes!("page/sign.js")),
    ("answer.js", SCRIPT, include_bytes!("page/answer.js")),
    ("act.js", SCRIPT, include_bytes!("page/act.js")),
    ("choose.js", SCRIPT, include_bytes!("page/choose.js")),
    ("enrol.js", SCRIPT, include_bytes!("page/enrol.js")),
    ("session.js", SCRIPT, include_bytes!("page/session.js")),
    ("graph.js", SCRIPT, include_bytes!("page/graph.js")),
    ("back.js", SCRIPT, include_bytes!("page/back.js")),
    ("gone.js", SCRIPT, include_bytes!("page/gone.js")),
    ("viewed.js", SCRIPT, include_bytes!("page/viewed.js")),
    ("diff.js", SCRIPT, include_bytes!("page/diff.js")),
    ("board.js", SCRIPT, include_bytes!("page/board.js")),
    ("kept.js", SCRIPT, include_bytes!("page/kept.js")),
    ("snooze.js", SCRIPT, include_bytes!("page/snooze.js")),
    ("events.js", SCRIPT, include_bytes!("page/events.js")),
    ("hold.js", SCRIPT, include_bytes!("page/hold.js")),
    ("install.js", SCRIPT, include_bytes!("page/install.js")),
    ("journal.js", SCRIPT, include_bytes!("page/journal.js")),
    ("replay.js", SCRIPT, include_bytes!("page/replay.js")),
    ("push.js", SCRIPT, include_bytes!("page/push.js")),
    ("tree.js", SCRIPT, include_bytes!("page/tree.js")),
    ("blocks.js", SCRIPT, include_bytes!("page/blocks.js")),
    ("keys.js", SCRIPT, include_bytes!("page/keys.js")),
    ("palette.js", SCRIPT, include_bytes!("page/palette.js")),
    ("main.js", SCRIPT, include_bytes!("page/main.js")),
];

/// The service worker. It serves the whole page, so it is not in the folder of the files.
const WORKER: (&str, &str, &str) = ("service-worker.js", SCRIPT, include_str!("page/service-worker.js"));

/// A file as it is served.
struct Asset {
    plain: &'static str,
    name: String,
    kind: &'static str,
    content: Bytes,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let mut made: Vec<Asset> = Vec::new();
    for (plain, kind, bytes) in FILES {
        let mut content = bytes.to_vec();
        if *kind == SCRIPT {
            let mut text = String::from_utf8_lossy(&content).into_owned();
            for used in &made {
                text = text.replace(&format!("'./{}'", used.plain), &format!("'./{}'", used.name));
            }
            content = text.into_bytes();
        }
        let digest = digest(&content);
        let (stem, ending) = plain.split_once('.').unwrap_or((plain, ""));
        made.push(Asset { plain, name: format!("{stem}-{digest}.{ending}"), kind, content: content.into() });
    }
    made
});

/// The service worker with the names of all files; a new version of any file makes a new version of it.
static WORKER_TEXT: LazyLock<Bytes> = LazyLock::new(|| {
    let files: Vec<String> = ASSETS.iter().map(|it| format!("'/assets/{}'", it.name)).collect();
    let files = files.join(", ");
    let text = WORKER.2.replace("'SHELL_FILES'", &files).replace("SHELL_ICON", &path("icon-192.png"));
    let shell = [text.as_bytes(), super::document::offline().as_bytes()].concat();
    text.replace("SHELL_NAME", &format!("shell-{}", digest(&shell))).into()
});

/// The manifest that describes the page as an app.
static MANIFEST_TEXT: LazyLock<Bytes> = LazyLock::new(|| {
    let icon = |name: &str, size: u32, purpose: &str| {
        let src = path(&format!("{name}-{size}.png"));
        json!({ "src": src, "sizes": format!("{size}x{size}"), "type": ICON, "purpose": purpose })
    };
    let manifest = json!({
        "name": "Provost",
        "short_name": "Provost",
        "description": "What needs you, and what agents do in this repository",
        "id": "/",
        "start_url": "/?from=app",
        "scope": "/",
        "display": "standalone",
        "lang": "en",
        "dir": "ltr",
        "background_color": "#ffffff",
        "theme_color": "#1f5f8b",
        "icons": [
            icon("icon", 192, "any"), icon("icon", 512, "any"),
            icon("maskable", 192, "maskable"), icon("maskable", 512, "maskable"),
        ],
        "shortcuts": [{ "name": "Needs you", "url": "/?from=app", "icons": [icon("icon", 192, "any")] }],
    });
    manifest.to_string().into()
});

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(8).map(|it| format!("{it:02x}")).collect()
}

/// The path of the manifest.
pub(super) const MANIFEST_PATH: &str = "/manifest.webmanifest";

/// Returns the manifest or the service worker, at its path. A browser asks for it again each time.
pub(super) fn app(at: &str) -> Option<Answer> {
    let mut answer = match at {
        MANIFEST_PATH => whole(StatusCode::OK, MANIFEST, MANIFEST_TEXT.clone()),
        _ if at.strip_prefix('/') == Some(WORKER.0) => whole(StatusCode::OK, WORKER.1, WORKER_TEXT.clone()),
        _ => return None,
    };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Some(answer)
}

/// Returns the path of a file of the table.
pub(super) fn path(plain: &str) -> String {
    let found = ASSETS.iter().find(|it| it.plain == plain);
    format!("/assets/{}", found.map_or(plain, |it| it.name.as_str()))
}

/// Returns the file of this name, which a browser may cache for ever.
pub(super) fn answer(name: &str) -> Option<Answer> {
    let asset = ASSETS.iter().find(|it| it.name == name)?;
    let mut answer = whole(StatusCode::OK, asset.kind, asset.content.clone());
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    answer.headers_mut().insert(CACHE_CONTROL, for_ever);
    Some(answer)
}

/// Returns a text that identifies this version of the page.
pub(super) fn version() -> String {
    ASSETS.last().map(|it| it.name.clone()).unwrap_or_default()
}
