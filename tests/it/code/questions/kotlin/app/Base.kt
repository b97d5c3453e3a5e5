package app

import store.Cache
import store.Disk

abstract class Base(name: String) {
    protected val kept: Cache = Cache("b")

    //? app/Base.kt:Base.show
    fun named(): String {
        show()
        return ""
    }

    open fun show() {}

    //? store/Disk.kt:Disk.Companion.open
    fun disk(): Disk = Disk.open()
}
