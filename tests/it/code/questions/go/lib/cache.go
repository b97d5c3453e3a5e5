package lib

type Cache struct{}

func newCache() *Cache { return &Cache{} }

func (c *Cache) Find(key string) int { return len(key) }

func (Cache) Size() int { return 0 }

//? lib/store.go:Store.Find
func useShared() {
	shared.Find("x")
}
