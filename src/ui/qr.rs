//! An address as a QR code for the camera of a phone, made of half blocks.

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// Returns the lines of the code, with its quiet zone; `None` for an address that is too long for one.
///
/// A camera expects dark on light. Blocks are light where a terminal writes light on dark; with `dark_ink` they are dark.
pub fn lines(address: &str, dark_ink: bool) -> Option<Vec<String>> {
    let code = QrCode::with_error_correction_level(address, EcLevel::L).ok()?;
    // The library assumes dark ink: it calls a block `Dark`, and a blank `Light`.
    let (blank, block) = (Dense1x2::Light, Dense1x2::Dark);
    let (dark, light) = if dark_ink { (block, blank) } else { (blank, block) };
    let drawn = code.render::<Dense1x2>().dark_color(dark).light_color(light).quiet_zone(true).build();
    Some(drawn.lines().map(str::to_owned).collect())
}
