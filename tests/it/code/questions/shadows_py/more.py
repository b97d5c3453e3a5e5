from pkg.core import A, B, run


#?
def comprehension(all):
    return [A().go() for A in all]


#?
def comprehension_of_functions(all):
    return {run() for run in all}


#?
def lambda_parameter():
    return lambda A: A().go()


#?
def keyword(*, A=None):
    A().go()


#?
def unpacked(pair):
    A, run = pair
    A().go()
    run()


#?
def managed(context):
    with context() as A:
        A().go()


#?
async def looped(all):
    async for run in all:
        run()


#?
def matched(value):
    match value:
        case {"run": run}:
            run()


#?
def matched_named(value):
    match value:
        case str() as run:
            run()


#?
def matched_by_key(value):
    match value:
        case Point(key=A):
            A().go()


#? pkg/core.py:run
def matched_with_value(value):
    match value:
        case core.run:
            run()


#?
def matched_as(value):
    match value:
        case [_, *run]:
            run()


#? pkg/core.py:A pkg/core.py:A.go more.py:nested.inner
def nested():
    def inner(A):
        return A
    inner(1)
    A().go()


#?
def closes_over(A):
    #?
    def inner():
        A().go()
    return inner


#? pkg/core.py:A pkg/core.py:B
def in_brackets(x):
    (A() if x else B()).go()


#? pkg/core.py:A pkg/core.py:B
def reassigned():
    o = A()
    o = B()
    o.go()


#? pkg/core.py:A
def outer():
    o = A()
    #? pkg/core.py:B
    def inner():
        nonlocal o
        o = B()
    o.go()


class Inside:
    from pkg.core import B as run

    #? pkg/core.py:run
    def method(self):
        run()

    class Deep:
        def very_deep(self): pass


#?
def deleted(table):
    for A, other in table:
        o = A()
        o.go()
