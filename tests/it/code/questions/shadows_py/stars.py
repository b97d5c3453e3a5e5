from pkg.core import late_name
from pkg.core import same as late
from pkg.x import *
from pkg.y import *
from pkg.core import B as first


#? pkg/y.py:same
def last_star():
    same()


#? pkg/y.py:late
def star_after_import():
    late()


#? pkg/core.py:B
def import_after_star():
    first()


#?
def not_in_all():
    hidden()
