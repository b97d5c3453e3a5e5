from pkg import core


def run(): pass


class A:
    def go(self): pass


#? pkg/core.py:run
def imported_here():
    from pkg.core import run
    run()


#? pkg/core.py:A pkg/core.py:A.go
def class_imported_here():
    from pkg.core import A
    A().go()


#? pkg/core.py:run
def module_imported_here():
    import pkg.core as run
    run.run()


#? beside.py:run
def module_s_own():
    run()


#? pkg/core.py:run
def around():
    from pkg.core import run
    #? pkg/core.py:run
    def inner():
        run()
    run()


#? beside.py:defined.run
def defined():
    def run(): pass
    run()
