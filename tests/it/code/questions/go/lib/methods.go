package lib

//? lib/cache.go:Cache.Size
func (s *Store) flush() {
	s.cache.Size()
}

//? lib/methods.go:Store.flush
func (s Store) Keep(key string) {
	s.flush()
}
