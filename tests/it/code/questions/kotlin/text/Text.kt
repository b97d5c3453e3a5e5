package text

import store.Disk

fun trimmed(text: String) = text.trim()

object Text {
    //? text/Text.kt:trimmed
    fun upper(text: String) = trimmed(text).uppercase()
}

fun String.padded(): String = this

//? store/Disk.kt:Disk.close
fun Disk.label(): String {
    close()
    return ""
}

fun <T> T.any() = true

infix fun Int.twice(other: Int): Int = this * other
