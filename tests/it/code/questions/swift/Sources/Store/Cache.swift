public final class Cache: Keeper {
    let name: String

    public init(name: String) {
        self.name = name
    }

    public func put(_ key: String) {}

    public func size() -> Int { 1 }

    public func keep(_ key: String) {}

    //? Sources/Store/Cache.swift:helper
    func hidden() {
        helper()
    }
}

private func helper() {}
