//! The protocols of Swift's own library to which types and protocols of that library keep, as far as extensions of these protocols are
//! common. The narrowest comes first: its extensions take precedence.

const STRINGS: &[&str] = &[
    "StringProtocol",
    "BidirectionalCollection",
    "RangeReplaceableCollection",
    "Collection",
    "Sequence",
    "LosslessStringConvertible",
    "CustomStringConvertible",
    "Comparable",
    "Hashable",
    "Equatable",
];

const ARRAYS: &[&str] = &[
    "RandomAccessCollection",
    "BidirectionalCollection",
    "MutableCollection",
    "RangeReplaceableCollection",
    "Collection",
    "Sequence",
];

const SIGNED: &[&str] = &[
    "FixedWidthInteger",
    "SignedInteger",
    "BinaryInteger",
    "SignedNumeric",
    "Numeric",
    "Strideable",
    "Comparable",
    "Hashable",
    "Equatable",
];

const UNSIGNED: &[&str] = &[
    "FixedWidthInteger",
    "UnsignedInteger",
    "BinaryInteger",
    "Numeric",
    "Strideable",
    "Comparable",
    "Hashable",
    "Equatable",
];

const FLOATING: &[&str] = &[
    "BinaryFloatingPoint",
    "FloatingPoint",
    "SignedNumeric",
    "Numeric",
    "Strideable",
    "Comparable",
    "Hashable",
    "Equatable",
];

/// Returns the protocols to which a type or a protocol of the library keeps; none of any other name.
pub(super) fn kept_to_by(name: &str) -> &'static [&'static str] {
    match name {
        "String" | "Substring" => STRINGS,
        "StringProtocol" => {
            &["BidirectionalCollection", "Collection", "Sequence", "Comparable", "Hashable", "Equatable"]
        }
        "Array" | "ArraySlice" | "ContiguousArray" => ARRAYS,
        "Dictionary" => &["Collection", "Sequence"],
        "Set" => &["SetAlgebra", "Collection", "Sequence"],
        "Range" | "ClosedRange" => &["RangeExpression"],
        "RandomAccessCollection" => &["BidirectionalCollection", "Collection", "Sequence"],
        "BidirectionalCollection" | "MutableCollection" | "RangeReplaceableCollection" => {
            &["Collection", "Sequence"]
        }
        "LazyCollectionProtocol" => &["LazySequenceProtocol", "Collection", "Sequence"],
        "Collection" | "LazySequenceProtocol" => &["Sequence"],
        "Int" | "Int8" | "Int16" | "Int32" | "Int64" => SIGNED,
        "UInt" | "UInt8" | "UInt16" | "UInt32" | "UInt64" => UNSIGNED,
        "Float" | "Double" => FLOATING,
        "FixedWidthInteger" | "SignedInteger" | "UnsignedInteger" => {
            &["BinaryInteger", "Numeric", "Strideable", "Comparable", "Hashable", "Equatable"]
        }
        "BinaryInteger" => &["Numeric", "Strideable", "Comparable", "Hashable", "Equatable"],
        "BinaryFloatingPoint" => {
            &["FloatingPoint", "Numeric", "Strideable", "Comparable", "Hashable", "Equatable"]
        }
        "Comparable" | "Hashable" => &["Equatable"],
        _ => &[],
    }
}
