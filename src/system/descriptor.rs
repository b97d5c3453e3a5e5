//! The permissions of a file on Windows, read from the text of its security descriptor. Compiled everywhere, since it
//! does not need Windows.
//!
//! Fails closed: an unknown entry counts as one that admits others.
#![forbid(unsafe_code)]

/// Accounts that count as the user: the system, administrators, the owner of the file (who is checked), and
/// the maker of a file in it.
const AS_GOOD_AS_US: [&str; 6] = ["SY", "BA", "LA", "OW", "CO", "S-1-5-32-544"];

/// Rights that change nothing, by their letters.
const READING: [&str; 5] = ["GR", "GX", "FR", "FX", "RC"];

/// The bits of rights that change something: data, attributes, names, owner, access list, and the generic ones.
const WRITING: u32 =
    0x2 | 0x4 | 0x10 | 0x40 | 0x100 | 0x1_0000 | 0x4_0000 | 0x8_0000 | 0x1000_0000 | 0x4000_0000;

/// Whether a file belongs to this user, or to the system or its administrators.
///
/// # Errors
/// Whom it belongs to.
pub fn owned(text: &str, user: &str) -> Result<(), String> {
    let owner = part(text, "O:").unwrap_or_default();
    if is_us(owner, user) { Ok(()) } else { Err(format!("belongs to {owner} and not to us")) }
}

/// Whether only this user, the system and its administrators may read or write it.
///
/// # Errors
/// A sentence about who else may.
pub fn private(text: &str, user: &str) -> Result<(), String> {
    owned(text, user)?;
    others(text, user, |_| false).map_or(Ok(()), |who| Err(format!("is open to {who}")))
}

/// The same for writing: others may read it.
///
/// # Errors
/// Who else may write.
pub fn trusted(text: &str, user: &str) -> Result<(), String> {
    owned(text, user)?;
    others(text, user, only_reads).map_or(Ok(()), |who| Err(format!("can be written by {who}")))
}

/// The first one who is let in and should not be.
fn others(text: &str, user: &str, harmless: impl Fn(&str) -> bool) -> Option<String> {
    let Some(list) = part(text, "D:").filter(|list| !list.contains("NO_ACCESS_CONTROL")) else {
        return Some("every account (it has no access list)".into());
    };
    let entries = list.split('(').skip(1).map(|entry| entry.trim_end_matches(')'));
    entries.filter_map(|entry| entry_for_others(entry, user, &harmless)).next()
}

/// `type;flags;rights;object;inherited object;who`.
fn entry_for_others(entry: &str, user: &str, harmless: &impl Fn(&str) -> bool) -> Option<String> {
    let fields: Vec<&str> = entry.split(';').collect();
    match fields.as_slice() {
        ["D", ..] => None,
        ["A", _, rights, "", "", who] => (!is_us(who, user) && !harmless(rights)).then(|| (*who).to_owned()),
        _ => Some(format!("an account in an unknown entry ({entry})")),
    }
}

fn is_us(who: &str, user: &str) -> bool {
    (who == user && !user.is_empty()) || AS_GOOD_AS_US.contains(&who)
}

fn only_reads(rights: &str) -> bool {
    if let Some(bits) = rights.strip_prefix("0x") {
        return u32::from_str_radix(bits, 16).is_ok_and(|bits| bits & WRITING == 0);
    }
    let letters: Vec<char> = rights.chars().collect();
    letters.chunks(2).all(|pair| READING.contains(&pair.iter().collect::<String>().as_str()))
}

/// What follows `name` up to the next part: `O:` owner, `G:` group, `D:` access, `S:` audit.
fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let starts = ["O:", "G:", "D:", "S:"];
    let at = text.find(name)? + name.len();
    let rest = &text[at..];
    let end = starts.iter().filter_map(|next| rest.find(next)).min().unwrap_or(rest.len());
    Some(&rest[..end])
}
