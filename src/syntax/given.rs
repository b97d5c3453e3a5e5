//! The types of callbacks' parameters, as functions declare them: `f(store => store.find())`, where `f` declares a `Store`.

/// The type of a callback's parameter: `Store` of `function f(then: (store: Store) => void)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The function that declares it, or the name of a function type, as a number in [`Reading::symbols`](super::Reading::symbols).
    pub symbol: u32,
    /// The position of the callback among the function's arguments; [`Given::ITSELF`] for a function type.
    pub argument: u8,
    /// The position of the parameter; [`Given::ALL`] if the callback's type has a name, which is in `class` then.
    pub parameter: u8,
    /// The name of the class, as it is written.
    pub class: Box<str>,
}

/// The mark before the positions in the name by which a class is asked for: no name begins with it.
const MARK: char = '!';

impl Given {
    /// The position of a function type that is declared by itself.
    pub const ITSELF: u8 = u8::MAX;
    /// All parameters, whose types another name declares.
    pub const ALL: u8 = u8::MAX;

    /// The name by which a path asks for the class at a place: `f.!0:1` is what `f` gives, as the second, to its first argument.
    pub(super) fn named(function: &str, (argument, parameter): (u8, u8)) -> Box<str> {
        format!("{function}.{MARK}{argument}:{parameter}").into()
    }

    /// The place that a name in a path asks for.
    pub fn place(name: &str) -> Option<(u8, u8)> {
        let (argument, parameter) = name.strip_prefix(MARK)?.split_once(':')?;
        Some((argument.parse().ok()?, parameter.parse().ok()?))
    }

    /// Whether a path ends with what a function gives.
    pub fn is_asked_for(path: &str) -> bool {
        path.contains(MARK) && path.split('.').any(|name| Self::place(name).is_some())
    }
}
