import Foundation

public class Disk {
    public static let shared = Disk()
    public var cache = Cache(name: "disk")

    public init() {}

    //? Sources/Store/Disk.swift:Disk
    public static func open() -> Disk {
        return Disk()
    }

    //? Sources/Store/Disk.swift:Disk.Entry
    public func get(_ key: String) -> Entry? {
        return Entry(key: key)
    }

    public func close() {}

    public struct Entry {
        let key: String

        public func read() -> String { key }
    }
}
