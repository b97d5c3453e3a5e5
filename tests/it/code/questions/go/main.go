package main

import (
	"os"

	. "example.com/shop/deep/inner"
	store "example.com/shop/lib"
	_ "example.com/shop/lib/none"
)

type app struct {
	store *store.Store
	keep  store.Keeper
}

//? lib/store.go:Open lib/store.go:Store.Find main.go:app.run deep/inner/inner.go:Run
func main() {
	s, err := store.Open("a")
	if err != nil {
		os.Exit(1)
	}
	s.Find("b")
	a := app{store: s}
	a.run()
	Run()
}

//? lib/store.go:Store.Find lib/store.go:Base.Grow lib/store.go:Keeper.Keep
func (a *app) run() {
	a.store.Find("c")
	a.store.Grow()
	a.keep.Keep("d")
}

//? deep/inner/inner.go:Make deep/inner/inner.go:List.Add
func lists() {
	list := Make()
	list.Add(1)
}

//? deep/inner/inner.go:Stop
func shadowed(Run func()) {
	Run()
	defer Stop()
}

//? lib/store.go:NewStore lib/store.go:Store.Find
func literal() {
	each := func(s *store.Store) { s.Find("e") }
	each(store.NewStore())
}

//? lib/store.go:Default lib/pages.go:Pages
func twice() (total int) {
	total = store.Default("f")
	go store.Pages(total)
	return
}
