package lib

import "testing"

func helper() *Store { return NewStore() }

//? lib/store_test.go:helper lib/store.go:Store.Find
func TestFind(t *testing.T) {
	s := helper()
	if s.Find("a") != 1 {
		t.Fatal("no")
	}
}
