//! What the page loads: its style and its modules, each under a name that has a digest of its content, so that a
//! browser may keep it.
//!
//! A module names another by its plain name; that is replaced by the name with the digest, and the digest of the one has the
//! content of the other in it. So the table is in the order of use: what is used stands first.

use std::sync::LazyLock;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use sha2::{Digest as _, Sha256};

use provost_protocols::loopback::{Answer, whole};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// The files, in the order of use.
const FILES: &[(&str, &str, &[u8])] = &[
    ("page.css", CSS, include_bytes!("page/page.css")),
    ("mark.svg", PICTURE, include_bytes!("page/mark.svg")),
    ("dom.js", SCRIPT, include_bytes!("page/dom.js")),
    ("place.js", SCRIPT, include_bytes!("page/place.js")),
    ("time.js", SCRIPT, include_bytes!("page/time.js")),
    ("live.js", SCRIPT, include_bytes!("page/live.js")),
    ("log.js", SCRIPT, include_bytes!("page/log.js")),
    ("sign.js", SCRIPT, include_bytes!("page/sign.js")),
    ("answer.js", SCRIPT, include_bytes!("page/answer.js")),
    ("enrol.js", SCRIPT, include_bytes!("page/enrol.js")),
    ("graph.js", SCRIPT, include_bytes!("page/graph.js")),
    ("blocks.js", SCRIPT, include_bytes!("page/blocks.js")),
    ("keys.js", SCRIPT, include_bytes!("page/keys.js")),
    ("palette.js", SCRIPT, include_bytes!("page/palette.js")),
    ("main.js", SCRIPT, include_bytes!("page/main.js")),
];

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
        let digest: String = Sha256::digest(&content).iter().take(8).map(|it| format!("{it:02x}")).collect();
        let (stem, ending) = plain.split_once('.').unwrap_or((plain, ""));
        made.push(Asset { plain, name: format!("{stem}-{digest}.{ending}"), kind, content: content.into() });
    }
    made
});

/// The path of a file of the table.
pub(super) fn path(plain: &str) -> String {
    let found = ASSETS.iter().find(|it| it.plain == plain);
    format!("/assets/{}", found.map_or(plain, |it| it.name.as_str()))
}

/// The file of this name, which a browser may keep for as long as it likes.
pub(super) fn answer(name: &str) -> Option<Answer> {
    let asset = ASSETS.iter().find(|it| it.name == name)?;
    let mut answer = whole(StatusCode::OK, asset.kind, asset.content.clone());
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    answer.headers_mut().insert(CACHE_CONTROL, for_ever);
    Some(answer)
}

/// Tells this page from that of another version.
pub(super) fn version() -> String {
    ASSETS.last().map(|it| it.name.clone()).unwrap_or_default()
}
