"""A Python that copies itself into jails and runs programs there.

In the zygote: serve() imports what programs use, and hands over to jaild's shared object, which forks and confines the copies.
In each copy, in this order: the shared object renews PLACES, renew() while it waits for its job, begin() when the job is there. What a copy cannot be exactly as
`python3 main.py` would be, it does not become: begin() says so, and the program starts anew in the same process.
"""

import sys

AT_START = frozenset(sys.modules) - {__name__}

import _frozen_importlib_external as importers  # noqa: E402
import _imp  # noqa: E402
import atexit  # noqa: E402
import builtins  # noqa: E402
import ctypes  # noqa: E402
import gc  # noqa: E402
import linecache  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import struct  # noqa: E402
import threading  # noqa: E402
import warnings  # noqa: E402

SEED_NAME = b"PYTHONHASHSEED"
BIND_NAME = b"LD_BIND_NOW"


def start_as_wanted():
    """The interpreter says its seed to nobody: it starts again with one that is given, and with the functions of its libraries bound, which
    each copy would do for itself. Nothing shows these variables to programs."""
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


SEED = start_as_wanted()
FITTED = (3, 11)
HOME = "/mnt/data"
OBJECT = HOME + "/zygote.so"
TOOLS = "/usr/lib/svc/ptc"
TOOL_MODULES = [f"_svc_tools.{name}" for name in ("alone", "call", "names", "result", "start", "tool", "values")]
# Of a program, and of one that has tools where the zygote has what these need. The kernel shows the first one for both, and would hide
# further arguments.
COMMANDS = [list(map(os.fsencode, sys.orig_argv))]
ENVIRONMENT = list(os.environb.items())

# Variables that an interpreter or a library reads while it starts, which was before this program came.
STEERING = re.compile(
    rb"(PYTHON|LD_|LC_|LANG|MPL|MATPLOTLIB|NPY_|NUMPY_|NUMEXPR_|OPENBLAS|GOTO|OMP_|MKL_|KMP_|BLIS|BLAS|LAPACK|PANDAS|SCIPY|JOBLIB"
    rb"|SKLEARN|MALLOC_|GLIBC_|GCONV|LOCPATH|NLSPATH|FONTCONFIG|FC_|OPENSSL|SSL_|XDG_|TZ$|HOME$)"
)
# Files of the home directory that have the same effect.
STEERING_FILES = frozenset([".local", ".config", ".matplotlib", "matplotlibrc"])
MODULE_SUFFIXES = (*importers.SOURCE_SUFFIXES, *importers.BYTECODE_SUFFIXES, *_imp.extension_suffixes())

# The job of most copies, which jaild's object knows by itself; begin() sees all others.
USUAL = b"\0".join([*(b"A" + word for word in COMMANDS[0]), *(b"E%s=%s" % item for item in ENVIRONMENT), b""])
LARGE = 100_000
SEED_SIZE = 624 * 4
PAGE = 4096
HUGE_PAGE = 2 << 20
FULL = 0.8  # of a large page, for it to be made: the rest is lost memory
MADV_COLLAPSE = 25

# What these want done in a new process makes anew what another thread could hold.
ONLY_FOR_THREADS = frozenset(["threading", "logging", "_svc_tools.call"])
# Of every copy, the second process of its jail: see FIRST_PROGRAM of jaild.
NATIVE_ID = 2
# What lies there is each copy's own: see reseed.h.
RANDOM, CLOCK = 0, 1
PLACE = struct.Struct("=QQQ")
OBJECT_HEAD = 16

preloaded = frozenset()
after_fork = []


class ModuleProxy:
    """Has the names of a module, and is none: see module_proxies.h."""


def serve(modules, use=lambda: None, tools=False):
    """Never comes back in a copy. `use` calls what is slow at its first use; `tools`: copies may become programs that have tools."""
    global preloaded
    if sys.version_info[:2] != FITTED:
        sys.exit(f"the zygote is fitted to Python {FITTED}")
    register, os.register_at_fork = os.register_at_fork, note_fork_hooks
    library = ctypes.PyDLL(OBJECT)
    # The first that is registered is called last.
    atexit.register(library.svc_zygote_at_exit)
    for name in modules:
        __import__(name)
    if tools:
        load_tools()
    if asyncio := sys.modules.get("asyncio"):
        rehearse_loop(asyncio)
    use()
    os.register_at_fork = register
    forget()
    places = b"".join(PLACE.pack(*place) for place in find_places(sys.modules.get))
    preloaded = frozenset(name.partition(".")[0] for name in sys.modules if name not in AT_START)
    library.svc_zygote_serve.argtypes = [ctypes.py_object] * 6
    library.svc_zygote_at_exit.restype = None
    module_proxies = {name: module_proxy(module) for name, module in sys.modules.items() if is_left_alone(name, module)}
    know_common_types()
    gc.collect()
    sys.exit(library.svc_zygote_serve(settle, renew, begin, module_proxies, USUAL, places))


def know_common_types():
    """An abstract class remembers each class that it was asked about, in objects that would be left of a program that asks first."""
    common = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, memoryview, object, range, set, slice, str, tuple, type)
    made = (type(None), type(gc.collect), type(serve), type(item for item in ()), type({}.keys()), type({}.values()), type({}.items()))
    for abstract in vars(sys.modules["_collections_abc"]).values():
        if isinstance(abstract, type) and hasattr(abstract, "__abstractmethods__"):
            for kind in (*common, *made):
                issubclass(kind, abstract)


def is_left_alone(name, module):
    """What every program changes, and what is no module, is the interpreter's."""
    return name not in ("__main__", "sys", "builtins") and isinstance(module, type(sys))


def module_proxy(module):
    one = ModuleProxy()
    one.__dict__ = vars(module)
    return one


def load_tools():
    sys.path.insert(0, TOOLS)
    for name in TOOL_MODULES:
        __import__(name)
    del sys.path[0]
    COMMANDS.append([COMMANDS[0][0], os.fsencode(TOOLS) + b"/prelude.py", COMMANDS[0][1]])


def note_fork_hooks(register=os.register_at_fork, **hooks):
    register(**hooks)
    hook = hooks.get("after_in_child")
    if hook and hook.__module__ not in ONLY_FOR_THREADS and hook.__name__ != "_at_fork_reinit":
        after_fork.append(hook)


def forget():
    """What the zygote did leaves no trace but loaded modules."""
    del sys.modules[__name__]
    del sys.path[0]
    if uuid := sys.modules.get("uuid"):
        uuid._node = uuid._last_timestamp = None
    if tempfile := sys.modules.get("tempfile"):
        tempfile._name_sequence = tempfile.tempdir = None
    for path in [path for path in sys.path_importer_cache if path.startswith((HOME, TOOLS, os.path.dirname(__file__)))]:
        del sys.path_importer_cache[path]
    linecache.clearcache()
    warnings.onceregistry.clear()
    warnings._filters_mutated()
    # The interpreter's own warnings go by the filters that it saw last, which may be those of a catch_warnings.
    warnings.warn_explicit("ignored by default", ImportWarning, "", 1)


def settle():
    """The last that a zygote does: it is the program that most copies become, up to its first line."""
    threading._main_thread._set_tstate_lock()
    threading._main_thread._native_id = NATIVE_ID
    tidy_memory()
    gc.freeze()
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__annotations__ = {}
    main.__builtins__ = builtins
    sys.path.insert(0, HOME)
    become(COMMANDS[0], os.path.join(HOME, os.fsdecode(COMMANDS[0][1])))


def become(arguments, path):
    """All but what the interpreter sets when it runs a file."""
    sys.orig_argv[:] = map(os.fsdecode, arguments)
    sys.argv[:] = sys.orig_argv[1:]
    sys.path[0] = os.path.dirname(path)


def tidy_memory():
    """What every copy would do to the memory that it shares is done once, here."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    library.mincore.argtypes = library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    # The C library's allocator sorts what was freed only when it is asked for more.
    library.malloc_trim(0)
    library.free(library.malloc(LARGE))
    # Large pages are one entry of the tables that each copy gets. An old kernel refuses, and is let be.
    present = ctypes.create_string_buffer(HUGE_PAGE // PAGE)
    for address in {id(item) // HUGE_PAGE * HUGE_PAGE for item in gc.get_objects()}:
        if library.mincore(address, HUGE_PAGE, present) == 0 and present.raw.count(1) >= FULL * len(present):
            library.madvise(address, HUGE_PAGE, MADV_COLLAPSE)


def renew():
    """What must not be shared by two programs, and what a new process has anew. Answers what jaild's client is told: the hash seed."""
    for hook in after_fork:
        hook()
    if process := sys.modules.get("multiprocessing.process"):
        process.current_process()._config["authkey"] = process.AuthenticationString(os.urandom(32))
    return int(SEED)


def rehearse_loop(asyncio):
    """What is slow in the first event loop of a process. asyncio counts tasks without a name: here they have one."""

    def named(loop, coroutine, context=None):
        return asyncio.Task(coroutine, loop=loop, name="rehearsal", context=context)

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


def find_places(module):
    """Where the generators of random and numpy (both MT19937) keep their words, and logging the time of its start."""
    if random := module("random"):
        after_fork.remove(random.seed)
        address = id(random._inst) + OBJECT_HEAD + struct.calcsize("i")
        yield RANDOM, words_at(address, random.seed, lambda: random.getstate()[1][:-1]), SEED_SIZE
    if random := module("numpy.random"):
        address = random.mtrand._rand._bit_generator.ctypes.state_address
        yield RANDOM, words_at(address, random.seed, lambda: random.get_state()[1]), SEED_SIZE
    if logging := module("logging"):
        logging._startTime = float("0.5")
        address = id(logging._startTime) + OBJECT_HEAD
        if ctypes.c_double.from_address(address).value != logging._startTime:
            sys.exit("the zygote does not know where numbers are kept")
        yield CLOCK, address, ctypes.sizeof(ctypes.c_double)


def words_at(address, seed, words):
    """The address, when it is that of a generator's words."""
    seed()
    known = bytes(range(208)) * (SEED_SIZE // 208)
    ctypes.memmove(address, known, SEED_SIZE)
    if struct.pack("=624I", *words()) != known:
        sys.exit("the zygote does not know where random state is kept")
    return address


def begin(items):
    """The path of the program that this process now is, or None: for all jobs but the usual one."""
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
        become(arguments, path)
    return os.fsencode(path)


def is_source(path):
    """Not a directory or an archive, which Python runs as well."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(2) != b"PK"
    except OSError:
        return False


def is_steered():
    """Whether a file beside the program would be imported, or read at the start, in place of what is loaded already."""
    for name in os.listdir(HOME):
        if name in STEERING_FILES:
            return True
        stem, dot, _ = name.partition(".")
        if stem in preloaded and (not dot or name.endswith(MODULE_SUFFIXES)):
            return True
    return False


def set_environment(variables):
    """False when a variable is missing or has come too late."""
    own = set(ENVIRONMENT)
    extra = [item for item in variables if item not in own]
    if len(extra) + len(own) != len(variables) or any(map(is_too_late, extra)):
        return False
    names = os.environ._data
    if len(dict(variables)) != len(variables):
        return False
    for name, _ in ENVIRONMENT:
        os.unsetenv(name)
    names.clear()
    for name, value in variables:
        os.putenv(name, value)
        names[name] = value
    return True


def is_too_late(item):
    return len(item) != 2 or bool(STEERING.match(item[0])) and item != (SEED_NAME, SEED)
