/** Programs that differ in what they leave when they end, and in what of it speaks once more then. */
import type { PythonJob } from "@svc/test-kit/jail/warm";

/** A program of one file. */
export const one = (source: string, job: Omit<PythonJob, "files"> = {}): PythonJob => ({
  files: { "main.py": source },
  ...job,
});

export const FINALIZERS: Record<string, PythonJob> = {
  "plain data and functions of all kinds, and nothing else": one(`
import collections, functools, itertools, json
def outer(n): return lambda m: (n, m)
data = {"a": [1, (2, {3}), outer(4)], "c": collections.Counter("abc"), "p": functools.partial(max, 1)}
rest = itertools.count(); ring = []; ring.append(ring)
print(json.dumps(data["a"][0]), data["a"][2](5), end="")
`),
  "a generator that has not come to its end": one(`
def steps():
    try: yield 1
    finally: print("left")
kept = steps(); print(next(kept))
`),
  "a weak reference that calls back": one(`
import collections, weakref
held = collections.UserDict(); watch = weakref.ref(held, lambda reference: print("gone"))
silent = weakref.ref(held)
`),
  "a finalizer of an object without fields": one(`
class Bare:
    __slots__ = ()
    def __del__(self, print=print): print("bare")
kept = Bare(); del Bare
`),
  "classes and their objects, and nothing that speaks": one(`
import enum, functools
class Point:
    kinds = []
    def __init__(self, x): self.x = x; Point.kinds.append(self)
class Small(Point, metaclass=type("Meta", (type,), {})): __slots__ = ("y",)
class Colour(enum.Enum): RED = 1
class Wrong(Exception): pass
@functools.total_ordering
class Ordered(int): pass
kept = [Point(1), Small(2), Colour.RED, Wrong("never raised"), Ordered(3)]; kept.append(kept); print(kept[1].x, len(Point.kinds), end="")
`),
  "a class whose objects got a finalizer later, and one that lost it": one(`
class Late: __slots__ = ()
kept = Late(); Late.__del__ = lambda self, print=print: print("late")
class Lost:
    def __del__(self, print=print): print("lost")
other = Lost(); del Lost.__del__
`),
  "a class of a class with a finalizer, and one that inherits it": one(`
class Meta(type):
    def __del__(self, print=print): print("class")
class Made(metaclass=Meta): pass
class Bare:
    __slots__ = ()
    def __del__(self, print=print): print("bare")
class Heir(Bare): __slots__ = ()
kept = Heir(); del Meta, Bare, Heir
`),
  "a class of files": one(`
import io
class Kept(io.StringIO):
    def close(self, print=print): print("closed"); super().close()
kept = Kept()
`),
  "a weak reference to a class, that calls back": one(`
import weakref
class Seen: pass
watch = weakref.ref(Seen, lambda reference: print("gone")); others = weakref.WeakSet([Seen]); finalize = weakref.finalize(Seen, print, "finalized")
`),
  "standard output of a class of its own": one(`
import sys
class Stream:
    def __init__(self, number, stream): self.number = number; self.stream = stream
    def __getattr__(self, name, write=sys.__stdout__.write): write(f"{self.number} {name}\\n"); return getattr(self.stream, name)
sys.stdout = Stream(1, sys.stdout); print("one")
`),
  "a thread of a class of its own, and a local": one(`
import threading
class Worker(threading.Thread):
    def run(self): print("works")
worker = Worker(); worker.start(); worker.join(); mine = threading.local(); mine.x = worker
`),
  "finalizers that are hidden from the collector": one(`
import gc
class Noisy:
    def __del__(self, print=print): print("del")
kept = Noisy(); gc.freeze()
`),
  "finalizers, and a collector that shows nothing": one(`
import gc
class Noisy:
    def __del__(self, print=print): print("del")
kept = Noisy(); gc.get_objects = list; gc.callbacks.clear()
`),
  "a collector that is watched": one(`
import gc
gc.callbacks.append(lambda phase, info, print=print: phase == "start" and print("collects"))
`),
  "a stream of its own as standard output": one(`
import codecs, io, sys
sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), write_through=False)
print("through another stream", end="")
`),
  "a wrapped standard output without a class of its own": one(`
import codecs, sys
sys.stdout = codecs.getwriter("utf-16-le")(sys.stdout.buffer); print("wide", end="")
`),
  "a full standard output": one(`
import os, sys
full = os.open("/proc/self/mem", os.O_RDONLY); os.dup2(full, 1); print("cannot be written")
`),
  "a thread that goes on": one(`
import threading, time
def late(): time.sleep(0.05); print("late")
threading.Thread(target=late).start()
`),
  "a function that waits for the end of the threads": one(`
import threading
threading._register_atexit(print, "threads are over")
`),
  "another way to wait for threads": one(`
import threading
threading._shutdown = lambda print=print: print("nobody to wait for")
`),
  "functions that want to be called": one(`
import atexit
atexit.register(print, "first"); atexit.register(print, "last"); atexit.unregister(len)
`),
  "a watcher of what is called": one(`
import logging, sys, threading
def watch(frame, event, argument, print=print):
    if event == "call" and frame.f_code.co_name in ("_shutdown", "shutdown"): print(frame.f_code.co_filename, frame.f_code.co_name)
sys.setprofile(watch)
`),
  "a log that is written at the end": one(`
import logging, logging.handlers, sys
logging.getLogger().addHandler(logging.handlers.MemoryHandler(99, target=logging.StreamHandler(sys.stdout)))
logging.warning("kept until the end")
`),
};
