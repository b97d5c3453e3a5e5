// Package lib keeps things.
package lib

import (
	"fmt"
	"strings"
)

const (
	A = iota
	B
)

var shared = NewStore()

type Keeper interface {
	Keep(key string)
}

type (
	Base struct {
		count int
	}

	Store struct {
		Base
		cache *Cache
		names map[string]int
	}
)

//? lib/cache.go:newCache
func NewStore() *Store {
	return &Store{cache: newCache()}
}

//? lib/cache.go:newCache
func Open(path string) (*Store, error) {
	if path == "" {
		return nil, fmt.Errorf("no path")
	}
	return &Store{cache: newCache()}, nil
}

//? lib/store.go:Base.Grow lib/cache.go:Cache.Find lib/methods.go:Store.flush
func (s *Store) Find(key string) int {
	s.Grow()
	s.flush()
	return s.cache.Find(strings.ToLower(key))
}

func (b *Base) Grow() { b.count++ }

//? lib/store.go:Store.Find
func Default(key string) int {
	return shared.Find(key)
}
