//! What functions give to the functions that they are given: `f(store => store.find())`, where `f` says that it is a `Store`.

/// The type of a parameter of a parameter: `Store` of `function f(then: (store: Store) => void)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The function that says it, or the name of a type of functions, as a number in [`Reading::symbols`](super::Reading::symbols).
    pub symbol: u32,
    /// The place of the function among what the symbol is given; [`Given::ITSELF`] for a type of functions.
    pub argument: u8,
    /// The place of the parameter; [`Given::ALL`] where the type of the function has a name, which stands for the class then.
    pub parameter: u8,
    /// The name of the class, as it is written.
    pub class: Box<str>,
}

/// Before the places in the name by which a class is asked for: no name begins so.
const MARK: char = '!';

impl Given {
    /// The place of a type of functions among what it is given itself.
    pub const ITSELF: u8 = u8::MAX;
    /// All parameters, whose types another name says.
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
