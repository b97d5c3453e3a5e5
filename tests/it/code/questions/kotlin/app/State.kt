package app

enum class State(val code: Int) {
    OPEN(1) {
        //? app/State.kt:State.Companion.other
        override fun label() = other()
    },
    CLOSED(2);

    //? app/State.kt:State.Companion.other
    open fun label() = other()

    companion object {
        fun other() = ""
    }
}
