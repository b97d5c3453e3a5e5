from .store import Store, shared
from .store import Sink as Drain
from . import log as logging
