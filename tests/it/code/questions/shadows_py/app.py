from pkg.core import A, B, run
from pkg import core


def run_here(): pass


#?
def parameter(A):
    A().go()


#?
def stored(A):
    o = A()
    o.go()


#?
def loop(all):
    for A in all:
        A().go()


#?
def assigned(table):
    A = table["a"]
    o = A()
    o.go()


#?
def taken(table):
    if (run := table["run"]):
        run()


#?
def splat(*run: int):
    run()


#?
def caught():
    try:
        pass
    except ValueError as run:
        run()


#? pkg/core.py:B pkg/core.py:B.go
def imported_here():
    from pkg.core import B as A
    A().go()


#? pkg/core.py:A pkg/core.py:A.go
def imported_nowhere_near():
    A().go()


#? pkg/core.py:B
def inner_import():
    def inner():
        from pkg.core import B as A
    def other():
        from pkg.core import B as C
    from pkg.core import B as C
    C()


#? pkg/core.py:A pkg/core.py:B
def conditional(x):
    o = A() if x else B()
    o.go()


#? pkg/core.py:A pkg/core.py:A.go
def both_the_same(x):
    o = A() if x else A()
    o.go()


#? pkg/core.py:A pkg/core.py:B
def either():
    o = A() or B()
    o.go()


def around():
    class Nested:
        def unusual(self): pass
        def only_b(self): pass
    return Nested


#?
def guessed(o):
    o.unusual()


#? pkg/core.py:B.only_b
def guessed_of_imports(o):
    o.only_b()


#? app.py:nearby.Own app.py:nearby.Own.special
def nearby():
    class Own:
        def special(self): pass
    return Own().special()


cur = A()
kept = A()
none = None


#? pkg/core.py:B
def sets():
    global cur, none
    cur = B()
    none = B()


#?
def uses():
    cur.go()


#? pkg/core.py:B.go
def uses_none():
    none.go()


#? pkg/core.py:A.go
def uses_kept():
    kept.go()


twice = A()
twice = B()


#?
def uses_twice():
    twice.go()


#? pkg/core.py:A.go
def uses_kept_beside_import():
    from pkg.core import B as A
    kept.go()


class Holder:
    field = A()
    stays = A()

    #? pkg/core.py:A pkg/core.py:B
    def __init__(self, B2, x):
        self.own = A()
        self.shadowed = B2()
        self.picked = A() if x else B()

    #? pkg/core.py:B
    def change(self):
        self.field = B()
        self.own = B()

    #?
    def use_field(self):
        self.field.go()

    #?
    def use_own(self):
        self.own.go()

    #? pkg/core.py:A.go
    def use_stays(self):
        self.stays.go()

    #?
    def use_picked(self):
        self.picked.go()


class Maker:
    #?
    def __init__(self, A):
        self.made = A()

    #?
    def use(self):
        self.made.go()
