import Foundation
import Store
import struct Words.Words

/// Begins everything.
final class Main: Base {
    private let cache = Cache(name: "a")
    private var typed: Disk?
    lazy var later: Disk = { Disk.open() }()
    var first: Cache = Cache(name: "b"), second: Disk = Disk.open()

    //? Sources/Store/Disk.swift:Disk.open Sources/Store/Disk.swift:Disk.get
    func ofLocal() {
        let disk = Disk.open()
        disk.get("a")
    }

    //? Sources/Store/Disk.swift:Disk Sources/Store/Disk.swift:Disk.get Sources/Store/Disk.swift:Disk.Entry.read
    func ofChain() {
        let entry = Disk().get("a")
        entry?.read()
    }

    //? Sources/Store/Cache.swift:Cache.put Sources/Store/Cache.swift:Cache.size Sources/Store/Disk.swift:Disk.get Sources/Store/Disk.swift:Disk.close
    func ofProperties() {
        cache.put("a")
        self.cache.size()
        typed?.get("a")
        typed!.close()
    }

    //? Sources/Store/Disk.swift:Disk.get Sources/Store/Disk.swift:Disk.Entry.read
    func ofParameter(from disk: Disk) -> String? {
        return disk.get("a")?.read()
    }

    //? Sources/App/Main.swift:Main.ofLocal Sources/App/Base.swift:Base.named Sources/App/Main.swift:Main.build Sources/App/Base.swift:topLevel
    func bare() {
        ofLocal()
        named()
        Self.build()
        topLevel()
    }

    //? Sources/App/Base.swift:Base.show
    override func show() {
        super.show()
    }

    //? Sources/Text/Words.swift:trimmed Sources/Text/Words.swift:Words.upper Sources/Text/Words.swift:operator<+>
    func ofModule() {
        trimmed("a")
        Words.upper("a")
        _ = "a" <+> "b"
    }

    //? Sources/Text/Words.swift:Words.upper
    func ofWholeName() {
        Words.Words.upper("a")
    }

    //? Sources/Text/Words.swift:String.padded Sources/Text/Words.swift:Array.unique
    func extended(names: [String]) {
        "a".padded()
        names.unique()
    }

    //? Sources/Store/Disk+Extras.swift:Disk.refresh Sources/Store/Disk+Extras.swift:Disk.State.label
    func ofExtension(disk: Disk, state: Disk.State) {
        disk.refresh()
        state.label()
    }

    //? Sources/Store/Keeper.swift:Keeper.twice
    func ofDefault(disk: Disk) {
        disk.twice()
    }

    //? Sources/Store/Disk.swift:Disk.Entry Sources/Store/Disk.swift:Disk.Entry.read
    func nested() {
        Disk.Entry(key: "a").read()
    }

    //? Sources/Store/Disk.swift:Disk.get Sources/Store/Cache.swift:Cache.size
    func ofTests(it: Any) {
        if let disk = it as? Disk {
            disk.get("a")
        }
        switch it {
        case let cache as Cache:
            cache.size()
        default:
            break
        }
    }

    //? Sources/Store/Disk.swift:Disk.get Sources/Store/Disk.swift:Disk.close
    func ofBindings() {
        guard let typed else { return }
        typed.get("a")
        if let other = self.typed, other === typed {
            other.close()
        }
    }

    //? Sources/App/Main.swift:Main.ofLocal Sources/App/Main.swift:Main.closures.inner Sources/Store/Cache.swift:Cache.put
    func closures(all: [String]) {
        func inner() {
            cache.size()
        }
        all.forEach { _ in ofLocal() }
        all.map { one in inner() }
        let done = { (cache: Cache) in cache.put("a") }
        done(cache)
    }

    //? Sources/Store/Disk.swift:Disk.get
    func ofBound<T: Disk>(any: T) {
        any.get("a")
    }

    //? Sources/Store/Disk.swift:Disk.get
    func ofWhere<T>(any: T) where T: Disk {
        any.get("a")
    }

    //? Sources/Store/Disk+Extras.swift:Disk.name Sources/Store/Keeper.swift:Keeper.twice
    func ofProtocol(keeper: any Keeper) {
        keeper.name(of: "a")
        keeper.twice()
    }

    //? Sources/App/Base.swift:Base.make Sources/Store/Disk.swift:Disk.get Sources/Store/Cache.swift:Cache.size
    func inherited() {
        make().get("a")
        kept.size()
    }

    //? Sources/Store/Disk.swift:Disk.get Sources/Store/Cache.swift:Cache.size
    func ofStatic() {
        Disk.shared.get("a")
        Disk.shared.cache.size()
    }

    //? Sources/App/Main.swift:Main.load Sources/Store/Disk.swift:Disk.get Sources/Store/Cache.swift:Cache.put
    func ofTry() async throws {
        let disk = try await load()
        try await disk.get("a")
        (first ?? cache).put("a")
    }

    //? Sources/App/Main.swift:Main.ofLocal
    func ofSelector() {
        perform(#selector(ofLocal))
    }

    //? Sources/Store/Cache.swift:Cache.size
    var count: Int {
        cache.size()
    }

    //? Sources/App/Main.swift:Main.ofLocal
    var observed: Int = 1 {
        didSet {
            ofLocal()
        }
    }

    //? Sources/Store/Cache.swift:Cache.size
    subscript(index: Int) -> Int {
        cache.size() + index
    }

    //? Sources/App/Main.swift:Main.init Sources/Store/Cache.swift:Cache
    convenience init() {
        self.init(kept: Cache(name: "c"))
    }

    //? Sources/Store/Disk.swift:Disk
    static func build() {
        _ = Disk.init()
    }

    //?
    func unknown(any: Any, map: [String: String], disk: Int) {
        print(any)
        map.keys.sorted()
        "a".uppercased()
        disk.get()
    }

    func load() async throws -> Disk { Disk() }
}

private struct Helper {
    //? Sources/App/Main.swift:Helper.make
    func run() {
        make()
    }

    func make() {}
}
