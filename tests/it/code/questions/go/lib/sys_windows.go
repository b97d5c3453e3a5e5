//go:build windows

package lib

func page() int { return 65536 }
