"""A Python that copies itself into jails and runs programs there.

In the zygote, serve() imports what programs use and calls jaild's shared object, which forks and confines the copies. In each
copy, renew() runs while the copy waits for its job, and begin() when the job has arrived. A copy that cannot behave exactly as
`python3 main.py` does is not used: begin() returns None, and the process executes the command instead.
"""

import sys

AT_START = frozenset(sys.modules) - {__name__}

import atexit  # noqa: E402
import builtins  # noqa: E402
import ctypes  # noqa: E402
import gc  # noqa: E402
import importlib.machinery  # noqa: E402
import linecache  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
import weakref  # noqa: E402

SEED_NAME = b"PYTHONHASHSEED"
BIND_NAME = b"LD_BIND_NOW"


def restart_with_seed():
    """Executes Python again with a hash seed that is known, because the interpreter does not reveal the one that it chooses, and with all
    library functions bound, which each copy would otherwise do itself. Removes both variables, so that programs never see them."""
    text = os.environb.get(SEED_NAME)
    if text is None:
        seed = 1 + int.from_bytes(os.urandom(4), "big") % 0xFFFFFFFF
        os.execve(sys.executable, sys.orig_argv, {**os.environb, SEED_NAME: b"%d" % seed, BIND_NAME: b"1"})
    variables = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    places = [variables[at] for at in range(len(os.environb))]
    for place in places:
        name, _, value = ctypes.string_at(place).partition(b"=")
        if name in (SEED_NAME, BIND_NAME):
            del os.environb[name]
            ctypes.memset(place, 0, len(name) + 1 + len(value))
    return text


SEED = restart_with_seed()
OLDEST = (3, 11)
HOME = "/mnt/data"
OBJECT = HOME + "/zygote.so"
# The folders of preludes, and the modules that they import.
PRELUDES = {
    "/usr/lib/svc/ptc": [f"_svc_tools.{name}" for name in ("alone", "become", "call", "names", "result", "start", "tool", "values")],
    "/usr/lib/svc/session": [f"_svc_session.{name}" for name in ("by_value", "figures", "load", "plain", "save", "start", "state")],
}
# The commands that a copy can run: a plain program and, if the zygote has the modules of preludes, a program with tools or of a session.
# The kernel shows the first command for all, and would hide further arguments.
COMMANDS = [list(map(os.fsencode, sys.orig_argv))]
ENVIRONMENT = list(os.environb.items())

# Variables that the interpreter or a library reads at its start. The zygote started before it knew the program's values.
STEERING = re.compile(
    rb"(PYTHON|LD_|LC_|LANG|MPL|MATPLOTLIB|NPY_|NUMPY_|NUMEXPR_|OPENBLAS|GOTO|OMP_|MKL_|KMP_|BLIS|BLAS|LAPACK|PANDAS|SCIPY|JOBLIB"
    rb"|SKLEARN|MALLOC_|GLIBC_|GCONV|LOCPATH|NLSPATH|FONTCONFIG|FC_|OPENSSL|SSL_|XDG_|TZ$|HOME$)"
)
# Files in the home directory with the same effect.
STEERING_FILES = frozenset([".local", ".config", ".matplotlib", "matplotlibrc"])
MODULE_SUFFIXES = tuple(importlib.machinery.all_suffixes())

# The job of most copies. The shared object recognizes it without Python; begin() handles all others.
USUAL = b"\0".join([*(b"A" + word for word in COMMANDS[0]), *(b"E%s=%s" % item for item in ENVIRONMENT), b""])
LARGE = 100_000
MT19937_WORDS = 624
MT19937_BYTES = 4 * MT19937_WORDS
PAGE = 4096
HUGE_PAGE = 2 << 20
FULL = 0.8  # part of a large page that must be in use before it is made: the rest is wasted memory
MADV_COLLAPSE = 25

# Modules whose fork hooks only replace locks that another thread could hold; a zygote has one thread.
ONLY_FOR_THREADS = frozenset(["logging", "_svc_tools.call"])

preloaded = frozenset()
after_fork = []


class ModuleProxy:
    """Shares the namespace of a module without being one (module_proxies.h)."""


def serve(modules, use=lambda: None, preludes=False):
    """Does not return. `use` calls what is slow at its first use; `preludes`: copies may run programs with tools, and of sessions."""
    global preloaded
    if sys.implementation.name != "cpython" or sys.version_info < OLDEST:
        sys.exit("warm starts need CPython %d.%d or later; programs start cold" % OLDEST)
    register, os.register_at_fork = os.register_at_fork, note_fork_hooks
    library = ctypes.PyDLL(OBJECT)
    # atexit calls the handler that was registered first last.
    atexit.register(library.svc_zygote_at_exit)
    for name in modules:
        __import__(name)
    if preludes:
        load_preludes()
    if asyncio := sys.modules.get("asyncio"):
        rehearse_loop(asyncio)
    use()
    os.register_at_fork = register
    erase_traces()
    preloaded = frozenset(name.partition(".")[0] for name in sys.modules if name not in AT_START)
    library.svc_zygote_serve.argtypes = [ctypes.py_object] * 6
    library.svc_zygote_at_exit.restype = None
    module_proxies = {name: module_proxy(module) for name, module in sys.modules.items() if is_shared(name, module)}
    if numpy := sys.modules.get("numpy"):
        reseed_numpy(numpy)
    register_common_types()
    gc.collect()
    sys.exit(library.svc_zygote_serve(settle, renew, begin, module_proxies, harmless_types(), USUAL))


def register_common_types():
    """An abstract class caches each class that it is asked about. Filled here, the caches need no new objects in programs, which would
    prevent their early end (early_end.h)."""
    common = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, memoryview, object, range, set, slice, str, tuple, type)
    unnamed = (type(None), type(gc.collect), type(serve), type(item for item in ()), type({}.keys()), type({}.values()), type({}.items()))
    for abstract in vars(sys.modules["_collections_abc"]).values():
        if isinstance(abstract, type) and hasattr(abstract, "__abstractmethods__"):
            for kind in (*common, *unnamed):
                issubclass(kind, abstract)


def harmless_types():
    """Types whose objects can go with the process: nothing happens at their end, and nothing can call them (early_end.h)."""
    found = {object}
    waiting = [object]
    while waiting:
        new = set(type.__subclasses__(waiting.pop())) - found
        found |= new
        waiting += new
    effects = ("__call__", "__del__")
    noticed = (type, type(sys), weakref.ReferenceType)
    return [
        kind
        for kind in found
        if not issubclass(kind, noticed) and not any(name in vars(base) for base in kind.__mro__ for name in effects)
    ]


def is_shared(name, module):
    """False for the modules that every program changes and for what is not a module: the interpreter finalizes these itself."""
    return name not in ("__main__", "sys", "builtins") and isinstance(module, type(sys))


def module_proxy(module):
    proxy = ModuleProxy()
    proxy.__dict__ = vars(module)
    return proxy


def load_preludes():
    for folder, modules in PRELUDES.items():
        sys.path.insert(0, folder)
        for name in modules:
            __import__(name)
        del sys.path[0]
        COMMANDS.append([COMMANDS[0][0], os.fsencode(folder) + b"/prelude.py", COMMANDS[0][1]])


def note_fork_hooks(register=os.register_at_fork, **hooks):
    register(**hooks)
    hook = hooks.get("after_in_child")
    if hook and hook.__module__ not in ONLY_FOR_THREADS and hook.__name__ != "_at_fork_reinit":
        after_fork.append(hook)


def erase_traces():
    """Leaves no trace of the zygote's work but loaded modules."""
    del sys.modules[__name__]
    del sys.path[0]
    if uuid := sys.modules.get("uuid"):
        uuid._node = uuid._last_timestamp = None
    if tempfile := sys.modules.get("tempfile"):
        tempfile._name_sequence = tempfile.tempdir = None
    for path in [path for path in sys.path_importer_cache if path.startswith((HOME, *PRELUDES, os.path.dirname(__file__)))]:
        del sys.path_importer_cache[path]
    linecache.clearcache()
    warnings.onceregistry.clear()
    # A module records the warnings that it has shown for one version of the filters: this makes another version.
    with warnings.catch_warnings():
        pass
    # The interpreter's own warnings use the filters that it saw last, which may be those of a catch_warnings block.
    warnings.warn_explicit("ignored by default", ImportWarning, "", 1)


def settle():
    """The last step of a zygote: it is now in the state in which `python3 main.py` is before the first line of the program."""
    tidy_memory()
    gc.freeze()
    # Later interpreters make the annotations when they are asked for.
    has_annotations = "__annotations__" in vars(sys.modules["__main__"])
    main = sys.modules["__main__"] = type(sys)("__main__")
    if has_annotations:
        main.__annotations__ = {}
    main.__builtins__ = builtins
    sys.path.insert(0, HOME)
    set_command(COMMANDS[0], os.path.join(HOME, os.fsdecode(COMMANDS[0][1])))


def set_command(arguments, path):
    """Sets the command line, except for what the interpreter sets when it runs a file."""
    sys.orig_argv[:] = map(os.fsdecode, arguments)
    sys.argv[:] = sys.orig_argv[1:]
    sys.path[0] = os.path.dirname(path)


def tidy_memory():
    """Does once what every copy would otherwise do to memory that it shares."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    library.mincore.argtypes = library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    # The C library's allocator sorts what was freed only when it is asked for more.
    library.malloc_trim(0)
    library.free(library.malloc(LARGE))
    # A large page is one entry of the page tables that each copy gets. A kernel that refuses is ignored.
    present = ctypes.create_string_buffer(HUGE_PAGE // PAGE)
    for address in {id(item) // HUGE_PAGE * HUGE_PAGE for item in gc.get_objects()}:
        if library.mincore(address, HUGE_PAGE, present) == 0 and present.raw.count(1) >= FULL * len(present):
            library.madvise(address, HUGE_PAGE, MADV_COLLAPSE)


def renew():
    """Replaces what two programs must not share and what a new process has anew. Returns the hash seed, which jaild tells its client."""
    for hook in after_fork:
        hook()
    threading = sys.modules["threading"]
    if threading.main_thread().native_id != threading.get_native_id():
        # The hook of Python 3.11 does not update it.
        threading.main_thread()._set_native_id()
    if numpy := sys.modules.get("numpy"):
        reseed_numpy(numpy)
    if logging := sys.modules.get("logging"):
        logging._startTime = time.time_ns() if isinstance(logging._startTime, int) else time.time()
    if process := sys.modules.get("multiprocessing.process"):
        process.current_process().authkey = os.urandom(32)
    return int(SEED)


def reseed_numpy(numpy):
    """Gives numpy.random a state that nobody knows. Its seed() does the same and writes to 150 more pages. random has a hook for forks."""
    numpy.random.set_state(("MT19937", numpy.frombuffer(os.urandom(MT19937_BYTES), numpy.uint32), MT19937_WORDS))


def rehearse_loop(asyncio):
    """Runs what is slow in the first event loop of a process. asyncio numbers tasks without a name, so these have one."""

    def named(loop, coroutine, **options):
        return asyncio.Task(coroutine, loop=loop, **{**options, "name": "rehearsal"})

    def new_loop():
        loop = asyncio.SelectorEventLoop()
        loop.set_task_factory(named)
        return loop

    async def step():
        await asyncio.sleep(0)

    async def main():
        loop = asyncio.get_running_loop()
        read_end, write_end = os.pipe()
        readable = loop.create_future()
        loop.add_reader(read_end, lambda: readable.done() or readable.set_result(None))
        os.close(write_end)
        await asyncio.gather(step(), readable)
        loop.remove_reader(read_end)
        os.close(read_end)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


def begin(items):
    """For all jobs but the usual one: the path of the program that this process now runs, or None if it cannot."""
    words = items.split(b"\0")
    arguments = [word[1:] for word in words if word[:1] == b"A"]
    variables = [tuple(word[1:].split(b"=", 1)) for word in words if word[:1] == b"E"]
    if arguments not in COMMANDS or is_steered():
        return None
    path = os.path.join(HOME, os.fsdecode(arguments[1]))
    if not is_source(path):
        return None
    if variables != ENVIRONMENT and not set_environment(variables):
        return None
    if arguments != COMMANDS[0]:
        set_command(arguments, path)
    return os.fsencode(path)


def is_source(path):
    """False for directories and archives, which Python runs as well."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(2) != b"PK"
    except OSError:
        return False


def is_steered():
    """True if a file beside the program would have been imported or read at the start instead of what is already loaded."""
    for name in os.listdir(HOME):
        if name in STEERING_FILES:
            return True
        stem, dot, _ = name.partition(".")
        if stem in preloaded and (not dot or name.endswith(MODULE_SUFFIXES)):
            return True
    return False


def set_environment(variables):
    """False when a variable is missing, or is one that was read before the program came."""
    own = set(ENVIRONMENT)
    extra = [item for item in variables if item not in own]
    if len(extra) + len(own) != len(variables) or any(map(is_too_late, extra)):
        return False
    if len(dict(variables)) != len(variables):
        return False
    os.environb.clear()
    os.environb.update(variables)
    return True


def is_too_late(item):
    return len(item) != 2 or bool(STEERING.match(item[0])) and item != (SEED_NAME, SEED)
