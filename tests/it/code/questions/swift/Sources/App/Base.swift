import Store

open class Base {
    let kept: Cache
    let disk: Disk? = nil

    init(kept: Cache) {
        self.kept = kept
    }

    func named() {}

    func show() {}

    //? Sources/Store/Disk.swift:Disk.open
    func make() -> Disk {
        Disk.open()
    }
}

func topLevel() {}
