package app

import store.Disk

//? app/Other.kt:hidden
fun topLevel() {
    hidden()
}

private fun hidden() {}

//? store/Disk.kt:Disk.close app/Other.kt:Disk.twiceClosed
fun Disk.closed() {
    close()
    twiceClosed()
}

//? store/Disk.kt:Disk.close
fun Disk.twiceClosed() {
    this.close()
}
