import pkg.log
import pkg.store as st
from pkg import Store, Drain, logging, shared
from pkg.cache import Cache, Worker, make
from pkg.cache import Worker as W
from pkg.log import log, helper, run, get
from pkg.store import *
from typing import Optional
from third import Thing


#? pkg/log.py:log
def direct():
    log("a")


#? pkg/log.py:helper
def constant():
    helper()


#? pkg/log.py:run
def dotted():
    pkg.log.run()


#? pkg/store.py:Store pkg/store.py:Sink
def through():
    return st.Store(st.Sink())


#? pkg/log.py:log
def passed_on():
    logging.log("x")


#? pkg/store.py:Sink
def renamed():
    return Drain()


#? pkg/store.py:FileSink
def starred():
    return FileSink()


#? pkg/store.py:Store.read
def parameter(s: Store):
    s.read("a")


#? pkg/store.py:Store.read
def quoted(s: "Store"):
    s.read("a")


#? pkg/store.py:Store.read
def optional(s: Optional[Store] = None):
    s.read("a")


#? pkg/store.py:Store.read
def union(s: Store | None):
    s.read("a")


#? pkg/cache.py:Worker pkg/cache.py:Worker.run
def made():
    w = Worker()
    w.run()


#? pkg/cache.py:Cache pkg/cache.py:Cache.run
def made_other():
    w = Cache()
    w.run()


#? pkg/cache.py:Worker pkg/cache.py:Worker.clear
def made_renamed():
    w = W()
    w.clear()


#? pkg/cache.py:Worker.clear pkg/cache.py:Worker
def chained():
    Worker().clear()


#?
def dictionary():
    d = dict()
    return d.get("a")


#?
def dictionary_display():
    d = {}
    return d.get("a")


#?
def annotated_dictionary(d: dict[str, str]):
    return d.get("a")


#?
def unknown_get(d):
    return d.get("a")


#?
def foreign(t: Thing):
    t.run()


#?
def foreign_made():
    t = Thing()
    t.run()


#?
def shadowed_by_parameter(log):
    log("a")


#?
def shadowed_by_default(helper=None):
    helper()


#?
def shadowed_by_variable(x):
    run = x.run_it
    run()


#?
def shadowed_by_loop(all):
    for get in all:
        get()


#? app.py:shadowed_by_nested.log
def shadowed_by_nested():
    def log():
        pass
    log()


#? pkg/log.py:run
def shadowed_elsewhere(all):
    f = lambda run: run
    run()


#? pkg/store.py:Store.read
def instance():
    shared.read("a")


#? pkg/store.py:Store.get
def instance_of_module():
    st.shared.get("a")


#? pkg/store.py:Sink.flush pkg/store.py:FileSink
def inherited():
    f = FileSink()
    f.flush()


#? pkg/cache.py:make
def dynamic():
    from pkg.cache import make
    make()


#? pkg/cache.py:Worker pkg/cache.py:Worker.stop
def managed():
    with Worker() as w:
        w.stop()


#? pkg/cache.py:Worker pkg/cache.py:Cache
def two_types(b):
    w = Worker()
    if b:
        w = Cache()
    w.clear()


class Service:
    cache: Cache
    kept = Worker()

    def __init__(self, store: Store):
        self.store = store
        self.worker: Worker = make_one()

    #? pkg/cache.py:Cache.get
    def by_field(self):
        return self.cache.get("a")

    #? pkg/store.py:Store.read
    def by_parameter(self):
        self.store.read("a")

    #? pkg/cache.py:Worker.run
    def by_annotation(self):
        self.worker.run()

    #? pkg/cache.py:Worker.stop
    def by_class_variable(self):
        self.kept.stop()

    #? pkg/log.py:log app.py:Service.by_field
    def mixed(self):
        log("x")
        self.by_field()
