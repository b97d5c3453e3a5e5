package app

import store.Cache
import store.Disk
import store.Keeper
import store.Registry.known
import text.*
import text.padded as padding
import store.Disk.Entry

/** Begins everything. */
class Main(private val given: Disk, size: Int) : Base("main") {
    //? store/Cache.kt:Cache
    private val cache = Cache("a")
    private val typed: Disk? = null

    //? store/Disk.kt:Disk.Companion.open store/Disk.kt:Disk.get
    fun ofLocal() {
        val disk = Disk.open()
        disk.get("a")
    }

    //? store/Disk.kt:Disk store/Disk.kt:Disk.get store/Disk.kt:Disk.Entry.read
    fun ofChain() {
        val entry = Disk().get("a")
        entry.read()
    }

    //? store/Cache.kt:Cache.put store/Cache.kt:Cache.size store/Disk.kt:Disk.get store/Disk.kt:Disk.close
    fun ofProperties() {
        cache.put("a")
        this.cache.size()
        given.get("a")
        typed?.close()
    }

    //? store/Disk.kt:Disk.get store/Disk.kt:Disk.Entry.read
    fun ofParameter(disk: Disk) = disk.get("a")?.read()

    //? app/Main.kt:Main.ofLocal app/Base.kt:Base.named app/Main.kt:Main.Companion.make
    fun bare() {
        ofLocal()
        named()
        make()
    }

    //? app/Base.kt:Base.show
    override fun show() {
        super.show()
    }

    //? text/Text.kt:trimmed text/Text.kt:Text.upper app/Other.kt:topLevel
    fun ofFile() {
        trimmed("a")
        Text.upper("a")
        topLevel()
    }

    //? text/Text.kt:String.padded text/Text.kt:Disk.label text/Text.kt:T.any text/Text.kt:Int.twice
    fun extended(disk: Disk) {
        "a".padding()
        disk.label()
        cache.any()
        1 twice 2
    }

    //? store/Disk.kt:Disk.Entry store/Disk.kt:Disk.Entry.read
    fun nested() {
        Entry("a").read()
    }

    //? store/Disk.kt:Disk.Companion.open store/Disk.kt:Disk.get
    fun fullName() {
        store.Disk.open().get("a")
    }

    //? store/Disk.kt:Disk.get store/Cache.kt:Cache.size
    fun ofTests(it: Any) {
        if (it is Disk) {
            it.get("a")
        }
        when (it) {
            is Cache -> it.size()
            else -> {}
        }
    }

    //? store/Disk.kt:Disk.get store/Cache.kt:Cache.put
    fun ofScopes(disk: Disk?) {
        disk?.let { it.get("a") }
        cache.also { kept -> kept.put("b") }
    }

    //? app/Main.kt:Main.ofLocal app/Main.kt:Main.lambdas.inner
    fun lambdas(all: List<String>) {
        fun inner() {
            cache.size()
        }
        all.forEach { ofLocal() }
        all.map { one -> inner() }
    }

    //? app/Main.kt:Main.ofLocal app/Base.kt:Base.named
    fun nameless() = object : Runnable {
        var count = 0

        override fun run() {
            ofLocal()
            named()
            helper()
        }

        fun helper() {
            count++
        }
    }

    //? app/Main.kt:Main.Inner app/Main.kt:Main.Inner.go
    fun inner() {
        Inner().go()
    }

    inner class Inner {
        //? app/Main.kt:Main.ofLocal app/Main.kt:Main.bare store/Cache.kt:Cache.put
        fun go() {
            ofLocal()
            this@Main.bare()
            cache.put("b")
        }
    }

    //? app/State.kt:State.label
    fun ofEnum(state: State) {
        state.label()
    }

    //? store/Keeper.kt:Keeper.keep store/Keeper.kt:Keeper.twice
    fun ofInterface(keeper: Keeper) {
        keeper.keep("a")
        keeper.twice()
    }

    //? store/Registry.kt:Registry.register store/Registry.kt:Registry.known
    fun ofObject() {
        store.Registry.register()
        known()
    }

    //? app/Base.kt:Base.disk store/Disk.kt:Disk.get store/Cache.kt:Cache.size
    fun inherited() {
        disk().get("a")
        kept.size()
    }

    //? store/Disk.kt:Disk.get
    fun <T : Disk> ofBound(any: T) {
        any.get("a")
    }

    //? app/Main.kt:Main.ofLocal text/Text.kt:trimmed
    fun references(all: List<String>) {
        all.forEach(::trimmed)
        all.forEach(this::ofLocal)
    }

    //? legacy/Legacy.java:Legacy legacy/Legacy.java:Legacy.run
    fun ofJava() {
        legacy.Legacy().run()
    }

    //? store/Cache.kt:Cache.size
    val count: Int
        get() = cache.size()

    //?
    fun unknown(any: Any, map: Map<String, String>) {
        any.toString()
        map.get("a")
        println(map.size)
        listOf(1).first()
    }

    companion object {
        //? app/Main.kt:Main store/Disk.kt:Disk
        fun make() = Main(Disk(), 1)
    }
}
