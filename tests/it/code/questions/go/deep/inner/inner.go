package inner

func Run() {}

func Stop() {}

type Option func(int)

type List[T any] struct {
	items []T
}

func (l *List[T]) Add(item T) {}

func Make() *List[int] { return &List[int]{} }
