package store

class Cache(private val name: String) {
    private val all = mutableListOf<String>()

    fun put(key: String) {
        all.add(key)
    }

    fun size(): Int = all.size
}
