//! The permissions of a file on Windows, read from the text of its security descriptor. Compiled everywhere, since it
//! does not need Windows.
//!
//! Fails closed: an unknown entry counts as one that admits others.
#![forbid(unsafe_code)]

/// Accounts that count as the user: the system, administrators, the owner of the file (who is checked elsewhere), and
/// the creator of a file in the folder.
const AS_GOOD_AS_US: [&str; 6] = ["SY", "BA", "LA", "OW", "CO", "S-1-5-32-544"];

/// Rights that only read, by their letters.
const READING: [&str; 5] = ["GR", "GX", "FR", "FX", "RC"];

/// The bits of rights that allow a change: data, attributes, names, owner, access list, and the generic ones.
const WRITING: u32 =
    0x2 | 0x4 | 0x10 | 0x40 | 0x100 | 0x1_0000 | 0x4_0000 | 0x8_0000 | 0x1000_0000 | 0x4000_0000;

/// Checks that a file belongs to this user, or to the system or its administrators.
///
/// # Errors
/// The owner.
pub fn owned(text: &str, user: &str) -> Result<(), String> {
    let owner = part(text, "O:").unwrap_or_default();
    if is_us(owner, user) { Ok(()) } else { Err(format!("belongs to {owner} and not to us")) }
}

/// Checks that only this user, the system and its administrators may read or write the file.
///
/// # Errors
/// A sentence with another account that may.
pub fn private(text: &str, user: &str) -> Result<(), String> {
    owned(text, user)?;
    others(text, user, |_| false).map_or(Ok(()), |who| Err(format!("is open to {who}")))
}

/// Checks the same for writing: other accounts may read the file.
///
/// # Errors
/// Another account that may write.
pub fn trusted(text: &str, user: &str) -> Result<(), String> {
    owned(text, user)?;
    others(text, user, only_reads).map_or(Ok(()), |who| Err(format!("can be written by {who}")))
}

/// Returns the first account that has access and should not.
fn others(text: &str, user: &str, harmless: impl Fn(&str) -> bool) -> Option<String> {
    let Some(list) = part(text, "D:").filter(|list| !list.contains("NO_ACCESS_CONTROL")) else {
        return Some("every account (it has no access list)".into());
    };
    let entries = list.split('(').skip(1).map(|entry| entry.trim_end_matches(')'));
    entries.filter_map(|entry| entry_for_others(entry, user, &harmless)).next()
}

/// Checks one entry of the form `type;flags;rights;object;inherited object;account`.
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

/// Returns the text between `name` and the next part: `O:` owner, `G:` group, `D:` access, `S:` audit.
fn part<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let starts = ["O:", "G:", "D:", "S:"];
    let at = text.find(name)? + name.len();
    let rest = &text[at..];
    let end = starts.iter().filter_map(|next| rest.find(next)).min().unwrap_or(rest.len());
    Some(&rest[..end])
}
