from __future__ import annotations
from .log import log as write
from elsewhere import Client


class Sink:
    #? pkg/log.py:log
    def flush(self):
        write("flush")

    def close(self):
        pass


class FileSink(Sink):
    #? pkg/store.py:Sink.close pkg/store.py:Sink.flush
    def close(self):
        super().close()
        self.flush()


class Store:
    sink: Sink

    def __init__(self, sink: Sink, other=None):
        self.sink = sink
        self.items = {}
        self.client = Client()
        self.second = FileSink()

    #?
    def get(self, key):
        return self.items.get(key)

    #? pkg/store.py:Sink.flush
    def save(self):
        self.sink.flush()

    #? pkg/store.py:FileSink.close
    def shut(self):
        self.second.close()

    #?
    def call(self):
        self.client.run()

    #? pkg/store.py:Store.get pkg/log.py:log
    def read(self, key):
        write(key)
        return self.get(key)


shared = Store(Sink())
