//! Names that look like other names.
//!
//! This module refuses: characters that are invisible or rearrange their neighbours; marks that combine with the
//! letter before them, since the same letter exists in one piece; and characters that look like a letter, digit or
//! dash of ASCII, in a name that would then read as if it were written in ASCII. A name in another script is a name
//! like any other.

use std::sync::LazyLock;

use unicode_security::MixedScript as _;
use unicode_security::confusable_detection::skeleton;

/// The reason why a name is not clear. Safe to show to the client that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unclear {
    /// The character is invisible, or rearranges its neighbours.
    #[error("contains U+{0:04X}, which cannot be seen; leave it out")]
    Invisible(u32),
    /// The character combines with the one before it.
    #[error("contains U+{0:04X}, which changes the letter before it; write letter and mark as one character")]
    Mark(u32),
    /// The character is another form of one that exists in its own right.
    #[error("contains U+{0:04X}, which is another form of a character; write the character itself")]
    Form(u32),
    /// The name has letters of several scripts, in addition to those of ASCII.
    #[error(
        "contains U+{0:04X}, which is of another script than the characters before it; write the name in one script"
    )]
    Scripts(u32),
    /// A character that looks like one of ASCII: its code point, and the character that it looks like.
    #[error("contains U+{0:04X}, which looks like '{1}'; write '{1}' itself")]
    Lookalike(u32, char),
}

/// Characters of the property `Default_Ignorable_Code_Point`, further invisible ones, spaces and separators other
/// than U+0020, and those for private use, whose look depends on the reader's fonts. The first and last character
/// of each range.
const INVISIBLE: &[(u32, u32)] = &[
    (0x00A0, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xE000, 0xF8FF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
    (0xF0000, 0x0010_FFFD),
];

/// Those of them that a reader sees as space, and those that fonts may show.
const SEEN: &[(u32, u32)] = &[
    (0x00A0, 0x00A0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0xE000, 0xF8FF),
    (0xF0000, 0x0010_FFFD),
];

/// Checks whether a character of a text is invisible, or rearranges its neighbours.
pub(super) fn is_hidden(c: char) -> bool {
    let within =
        |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)));
    within(INVISIBLE) && !within(SEEN)
}

/// The blocks of combining marks.
const MARKS: &[(u32, u32)] = &[
    (0x0300, 0x034E),
    (0x0350, 0x036F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE20, 0xFE2F),
];

/// Characters that look like one of ASCII, with that character: Latin, Greek, Cyrillic, Armenian and Cherokee
/// letters, and dashes, dots and strokes of any script.
const ALIKE: &[(char, &str)] = &[
    ('a', "ɑаαａ"),
    ('b', "Ьƅ"),
    ('c', "сϲᴄⅽ"),
    ('d', "ԁⅾ"),
    ('e', "еҽ"),
    ('f', "ſẝ"),
    ('g', "ɡցƍ"),
    ('h', "һհ"),
    ('i', "ıɩіιӏ"),
    ('j', "јϳ"),
    ('k', "κкĸ"),
    ('l', "ǀℓⅼӀ"),
    ('m', "ⅿм"),
    ('n', "ոռ"),
    ('o', "оοօᴏσ"),
    ('p', "рρ"),
    ('q', "ԛզ"),
    ('r', "гᴦ"),
    ('s', "ѕꜱ"),
    ('t', "тτ"),
    ('u', "ʋᴜυս"),
    ('v', "ѵνᴠⅴ"),
    ('w', "ԝᴡωաѡ"),
    ('x', "хχⅹ"),
    ('y', "уγʏү"),
    ('z', "ᴢ"),
    ('A', "АΑᎪ"),
    ('B', "ВΒᏴ"),
    ('C', "СϹᏟⅭ"),
    ('D', "ᎠⅮ"),
    ('E', "ЕΕᎬ"),
    ('F', "Ϝ"),
    ('G', "ԌᏀ"),
    ('H', "НΗᎻ"),
    ('I', "ІΙⅠ"),
    ('J', "ЈᎫͿ"),
    ('K', "КΚᏦ\u{212A}"),
    ('L', "ᏞⅬԼ"),
    ('M', "МΜᎷⅯϺ"),
    ('N', "Ν"),
    ('O', "ОΟՕ"),
    ('P', "РΡᏢ"),
    ('Q', "Ԛ"),
    ('R', "ᎡᏒ"),
    ('S', "ЅᏚՏ"),
    ('T', "ТΤᎢ"),
    ('U', "Սᑌ"),
    ('V', "ᏙⅤѴ"),
    ('W', "ԜᎳ"),
    ('X', "ХΧⅩ"),
    ('Y', "ҮΥᎩ"),
    ('Z', "ΖᏃ"),
    ('-', "‐‑‒–—―−⁃﹘﹣－"),
    ('_', "＿‿"),
    ('.', "․。．"),
    (':', "։꞉ː∶："),
    ('/', "⁄∕／"),
    ('\'', "‘’ʼʹ"),
    ('@', "＠"),
    ('!', "ǃ"),
];

/// Blocks of letters and digits of ASCII in another form: superscript, subscript, letterlike, in circles,
/// mathematical, of full width. No character in them belongs to a script of its own.
const DRESSED: &[(u32, u32)] = &[
    (0x02B0, 0x02B8),
    (0x1D2C, 0x1D6A),
    (0x2070, 0x209C),
    (0x2100, 0x2149),
    (0x2160, 0x217F),
    (0x2460, 0x24FF),
    (0xFF01, 0xFF5E),
    (0x1D400, 0x1D7FF),
    (0x1F100, 0x1F18F),
];

/// Returns the small letter of this one, if it is a single character of at most the same size. Letters that share a
/// large form are one letter (`σ` and `ς`).
pub fn small(c: char) -> char {
    fn single(mut all: impl Iterator<Item = char>) -> Option<char> {
        all.next().filter(|_| all.next().is_none())
    }
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let large = single(c.to_uppercase()).unwrap_or(c);
    single(large.to_lowercase()).filter(|it| it.len_utf8() <= c.len_utf8()).unwrap_or(c)
}

/// Characters that exist for other encodings and look like others in the same script: radicals and ideographs of
/// Han, single letters of Hangul, Katakana and Hangul of half width, joined forms of Arabic and other letters,
/// squared words.
const FORMS: &[(u32, u32)] = &[
    (0x1100, 0x11FF),
    (0x2E80, 0x2FDF),
    (0x3130, 0x318F),
    (0x3200, 0x33FF),
    (0xA960, 0xA97F),
    (0xD7B0, 0xD7FF),
    (0xF900, 0xFAFF),
    (0xFB00, 0xFDFF),
    (0xFE30, 0xFE6F),
    (0xFE70, 0xFEFC),
    (0xFF5F, 0xFFEF),
    (0x2F800, 0x2FA1F),
];

/// Checks whether a name can be distinguished from others by its looks.
///
/// # Errors
/// [`Unclear`] names the first character that prevents it.
pub fn check(name: &str) -> Result<(), Unclear> {
    if name.is_ascii() {
        return Ok(());
    }
    let is_in = |ranges: &[(u32, u32)], c: char| {
        let at = ranges.partition_point(|(_, last)| *last < c as u32);
        ranges.get(at).is_some_and(|(first, _)| *first <= c as u32)
    };
    let (mut alike, mut ascii_letters, mut other_letters) = (None, false, false);
    for c in name.chars() {
        if is_in(INVISIBLE, c) {
            return Err(Unclear::Invisible(c as u32));
        }
        if is_in(MARKS, c) {
            return Err(Unclear::Mark(c as u32));
        }
        if let Some(plain) = alike_to(c) {
            if !c.is_alphanumeric() {
                return Err(Unclear::Lookalike(c as u32, plain));
            }
            alike.get_or_insert((c, plain));
        } else if is_in(FORMS, c) {
            return Err(Unclear::Form(c as u32));
        } else if is_in(DRESSED, c) {
            return Err(Unclear::Lookalike(c as u32, plain_of(c)));
        } else {
            ascii_letters |= c.is_ascii_alphabetic();
            other_letters |= c.is_alphabetic() && !c.is_ascii();
        }
    }
    one_script(name)?;
    match alike {
        // Among letters of its own script, and with none of ASCII, it is read correctly.
        Some((c, plain)) if ascii_letters || !other_letters => Err(Unclear::Lookalike(c as u32, plain)),
        _ => Ok(()),
    }
}

fn alike_to(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    let listed = ALIKE.iter().find(|(_, all)| all.contains(c)).map(|(plain, _)| *plain);
    listed.or_else(|| {
        // These are letters of their own, which no reader takes for two.
        const OWN: &str = "æÆœŒ";
        let mut seen = skeleton(c.encode_utf8(&mut [0; 4])).collect::<String>();
        let is_alike = seen.is_ascii() && (seen.len() == 1 || c.is_alphabetic());
        (is_alike && !seen.is_empty() && !OWN.contains(c)).then(|| seen.remove(0))
    })
}

/// Returns the look of a text: two texts that cannot be distinguished, in any size of letters, have the same one.
/// Unicode Technical Standard 39, section 4.
pub fn look_of(text: &str) -> String {
    /// The look of each character of ASCII. None of them changes its neighbours, so that a text of them looks like
    /// the sequence of its characters; a lookup in the tables costs a microsecond for a short name.
    static OF_ASCII: LazyLock<[String; 128]> =
        LazyLock::new(|| std::array::from_fn(|it| look_by_tables(&char::from(it as u8).to_string())));
    match text.bytes().map(|it| OF_ASCII.get(usize::from(it))).collect::<Option<Vec<_>>>() {
        Some(looks) => looks.into_iter().map(String::as_str).collect(),
        None => look_by_tables(text),
    }
}

fn look_by_tables(text: &str) -> String {
    skeleton(&text.to_lowercase()).collect::<String>().to_lowercase()
}

/// Refuses letters of several scripts in addition to those of ASCII: within one script, a letter of another passes
/// for its own. Scripts that are written together, as those of Japanese, count as one. Unicode Technical Standard
/// 39, section 5.1.
fn one_script(name: &str) -> Result<(), Unclear> {
    let mut so_far = String::new();
    for c in name.chars().filter(|c| !c.is_ascii()) {
        so_far.push(c);
        if !so_far.as_str().is_single_script() {
            return Err(Unclear::Scripts(c as u32));
        }
    }
    Ok(())
}

/// Returns the ASCII character that a letter of another form stands for, as far as its place shows it; otherwise a
/// question mark.
fn plain_of(c: char) -> char {
    let number = c as u32;
    match number {
        0xFF01..=0xFF5E => char::from_u32(number - 0xFEE0),
        // Bold, italic and so on: fifty-two letters each; the few gaps do not matter for text that people read.
        0x1D400..=0x1D6A3 => {
            let at = u8::try_from((number - 0x1D400) % 52).unwrap_or(0);
            Some(char::from(if at < 26 { b'A' + at } else { b'a' + at - 26 }))
        }
        _ => None,
    }
    .unwrap_or('?')
}
