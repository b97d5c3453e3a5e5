//go:build linux

package lib

func page() int { return 4096 }
