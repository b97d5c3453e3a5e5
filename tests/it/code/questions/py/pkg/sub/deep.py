from ..log import log
from ... import app
from .. import cache


#? pkg/log.py:log pkg/cache.py:make
def deep():
    log("x")
    cache.make()
