"""The pickler of values of builtin types, and of modules. Needs nothing but the interpreter: importing cloudpickle takes longer than many programs."""

import sys
from _pickle import Pickler

PROTOCOL = 5
MODULE = type(sys)


class NotPlain(Exception):
    """A value needs the other pickler (by_value)."""


def import_module(name):
    __import__(name)
    return sys.modules[name]


class PlainPickler(Pickler):
    """Has `modules`, the names of the modules that loading needs."""

    def __init__(self, file):
        super().__init__(file, PROTOCOL)
        self.modules = set()

    def reducer_override(self, value):
        if value is import_module:
            return NotImplemented
        if type(value) is not MODULE or sys.modules.get(value.__name__) is not value:
            raise NotPlain
        self.modules.add(value.__name__)
        return import_module, (value.__name__,)
