extension Disk {
    //? Sources/Store/Disk.swift:Disk.close Sources/Store/Disk.swift:Disk.get
    public func refresh() {
        close()
        self.get("a")
    }

    //? Sources/Store/Disk+Extras.swift:Disk.refresh
    public func again() {
        refresh()
    }

    public enum State {
        case open, closed

        //?
        public func label() -> String { "a" }
    }
}

extension Disk: Keeper {
    public func keep(_ key: String) {}
    public func name(of key: String) -> String { key }
}
