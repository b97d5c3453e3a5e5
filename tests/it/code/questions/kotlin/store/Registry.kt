package store

object Registry {
    //? store/Registry.kt:Registry.known
    fun register() {
        known()
    }

    fun known() {}
}
