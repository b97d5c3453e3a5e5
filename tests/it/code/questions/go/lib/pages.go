package lib

//? lib/sys_linux.go:page lib/sys_windows.go:page
func Pages(bytes int) int {
	return bytes / page()
}
