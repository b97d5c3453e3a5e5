public func trimmed(_ text: String) -> String { text }

extension String {
    //? Sources/Text/Words.swift:trimmed
    public func padded() -> String {
        return trimmed(self)
    }
}

extension Array where Element: Equatable {
    public func unique() -> [Element] { self }
}

infix operator <+>: AdditionPrecedence

public func <+> (left: String, right: String) -> String { left }

public struct Words {
    public static func upper(_ text: String) -> String { text }

    func helper() {}
}
