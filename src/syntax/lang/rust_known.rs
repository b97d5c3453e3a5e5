//! Types and traits of Rust's standard library that say something of the values that they hold or bound.

/// Types through which the methods of their inner type are called.
pub(super) const SEEN_THROUGH: &[&str] =
    &["Arc", "Box", "Cow", "MutexGuard", "Pin", "Rc", "RwLockReadGuard", "RwLockWriteGuard"];

/// Types whose methods are those of the standard library.
pub(super) const BUILT_IN: &[&str] =
    &["HashMap", "HashSet", "BTreeMap", "BTreeSet", "Option", "Result", "String", "Vec", "VecDeque"];

/// Types that hold a value or none: the value's methods are called once it is taken out.
pub(super) const HOLDERS: &[&str] = &["Option", "Result"];

/// Traits of the standard library, whose implementations say nothing about the repository's methods.
pub(super) const STANDARD_TRAITS: &[&str] = &[
    "Any",
    "AsMut",
    "AsRef",
    "Borrow",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Deref",
    "Display",
    "Eq",
    "Error",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "Future",
    "Hash",
    "Into",
    "IntoIterator",
    "Iterator",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Read",
    "Send",
    "Sized",
    "Sync",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Write",
];
