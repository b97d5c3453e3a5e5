package store

interface Keeper {
    fun keep(key: String)

    //? store/Keeper.kt:Keeper.keep
    fun twice() {
        keep("a")
        keep("b")
    }
}
