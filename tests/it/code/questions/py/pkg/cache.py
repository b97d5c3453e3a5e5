from . import store
from .sub.deep import deep


class Cache:
    def get(self, key):
        return key

    def run(self):
        pass

    def clear(self):
        pass


class Worker:
    def run(self):
        pass

    def stop(self):
        pass

    def clear(self):
        pass


#? pkg/cache.py:Cache
def make():
    return Cache()


#? pkg/store.py:Store.read
def relative(s: store.Store):
    s.read("a")


#? pkg/sub/deep.py:deep
def deeper():
    deep()
