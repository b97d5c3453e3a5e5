//! Signatures: the text that a symbol's callers rely on, in a form for people and a form for comparison.

use provost_base::Digest;
use provost_base::limits::SIGNATURE_LEN_MAX;

/// A contract's text.
#[derive(Clone, Debug)]
pub struct Signature {
    /// For people, in the words of the source: `(token: string): boolean`, `async (n: int) -> int`. Without
    /// comments, line breaks and trailing commas; several signatures of one name in order, with `; ` between
    /// them.
    pub text: Box<str>,
    /// For comparison: the tokens that carry meaning, one space between them, strings in double quotes.
    pub canon: Box<str>,
}

impl Signature {
    /// Of one that is too long to be kept, the text is cut and the canonical form is a fingerprint.
    pub(super) fn new(text: &str, canon: &str) -> Self {
        let Some(end) = text.char_indices().map(|(at, _)| at).find(|at| *at >= SIGNATURE_LEN_MAX) else {
            if canon.len() <= 2 * SIGNATURE_LEN_MAX {
                return Self { text: text.into(), canon: canon.into() };
            }
            return Self { text: text.into(), canon: fingerprint(canon) };
        };
        Self { text: format!("{} …", &text[..end]).into(), canon: fingerprint(canon) }
    }

    /// Whether callers can tell no difference.
    pub fn same(&self, other: &Self) -> bool {
        self.canon == other.canon
    }

    /// The fingerprint of what is compared.
    pub fn digest(&self) -> Digest {
        Digest::of(self.canon.as_bytes())
    }

    /// Several as one, in order; none of none.
    pub(super) fn joined<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let (texts, canons): (Vec<&str>, Vec<&str>) =
            parts.into_iter().map(|part| (&*part.text, &*part.canon)).unzip();
        // A semicolon never ends a signature, so it tells two from one.
        (!texts.is_empty()).then(|| Self::new(&texts.join("; "), &canons.join(" ; ")))
    }
}

fn fingerprint(canon: &str) -> Box<str> {
    format!("sha256 {}", Digest::of(canon.as_bytes())).into()
}

impl PartialEq for Signature {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for Signature {}

/// The reason why a name has no contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoSignature {
    /// No symbol has this name.
    Missing,
    /// The symbol declares nothing that callers could rely on: a constant without a type, a namespace.
    Undeclared,
    /// Several symbols have this name: their paths.
    Ambiguous(Vec<Box<str>>),
    /// The symbol is, or would be, in a part of the file that does not parse.
    Unparsable,
}
