public protocol Keeper {
    func keep(_ key: String)
    func name(of key: String) -> String
}

extension Keeper {
    //? Sources/Store/Keeper.swift:Keeper.keep
    public func twice() {
        keep("a")
        keep("b")
    }
}
