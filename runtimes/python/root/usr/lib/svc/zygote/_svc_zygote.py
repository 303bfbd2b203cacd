"""A Python that copies itself into jails and runs programs there.

In the zygote: serve() imports what programs use, and hands over to jaild's shared object, which forks and confines the copies.
In each copy, in this order: renew() while it waits for its job, begin() when the job is there. What a copy cannot be exactly as
`python3 main.py` would be, it does not become: begin() says so, and the program starts anew in the same process.
"""

import sys

AT_START = frozenset(sys.modules) - {__name__}

import _frozen_importlib as importing  # noqa: E402
import _frozen_importlib_external as importers  # noqa: E402
import _imp  # noqa: E402
import builtins  # noqa: E402
import ctypes  # noqa: E402
import gc  # noqa: E402
import linecache  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import threading  # noqa: E402
import warnings  # noqa: E402

SEED_NAME = b"PYTHONHASHSEED"


def start_with_known_seed():
    """The interpreter says its seed to nobody: it starts again with one that is given. Nothing shows it to programs."""
    text = os.environb.get(SEED_NAME)
    if text is None:
        seed = 1 + int.from_bytes(os.urandom(4), "big") % 0xFFFFFFFF
        os.execve(sys.executable, sys.orig_argv, {**os.environb, SEED_NAME: b"%d" % seed})
    variables = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    found = next(variables[at] for at in range(len(os.environb)) if ctypes.string_at(variables[at]).startswith(SEED_NAME))
    del os.environb[SEED_NAME]
    ctypes.memset(found, 0, len(SEED_NAME) + 1 + len(text))
    return text


SEED = start_with_known_seed()
FITTED = (3, 11)
HOME = "/mnt/data"
OBJECT = HOME + "/zygote.so"
TOOLS = "/usr/lib/svc/ptc"
TOOL_MODULES = [f"_svc_tools.{name}" for name in ("alone", "call", "names", "result", "start", "tool", "values")]
# Of a program, and of one that has tools. The kernel shows the first one for both, and would hide further arguments.
COMMANDS = [list(map(os.fsencode, sys.orig_argv))]
COMMANDS.append([COMMANDS[0][0], os.fsencode(TOOLS) + b"/prelude.py", COMMANDS[0][1]])
ENVIRONMENT = list(os.environb.items())

# Variables that an interpreter or a library reads while it starts, which was before this program came.
STEERING = re.compile(
    rb"(PYTHON|LD_|LC_|LANG|MPL|MATPLOTLIB|NPY_|NUMPY_|NUMEXPR_|OPENBLAS|GOTO|OMP_|MKL_|KMP_|BLIS|BLAS|LAPACK|PANDAS|SCIPY|JOBLIB"
    rb"|SKLEARN|MALLOC_|GLIBC_|GCONV|LOCPATH|NLSPATH|FONTCONFIG|FC_|OPENSSL|SSL_|XDG_|TZ$|HOME$)"
)
# Files of the home directory that have the same effect.
STEERING_FILES = frozenset([".local", ".config", ".matplotlib", "matplotlibrc"])
MODULE_SUFFIXES = (*importers.SOURCE_SUFFIXES, *importers.BYTECODE_SUFFIXES, *_imp.extension_suffixes())

REHEARSAL = b"\0".join([*(b"A" + word for word in COMMANDS[0]), *(b"E%s=%s" % item for item in ENVIRONMENT), b""])
SPARE_MODULES = 1500

preloaded = frozenset()


def serve(modules, use=lambda: None):
    """Never comes back in a copy. `use` calls what is slow at its first use."""
    global preloaded
    if sys.version_info[:2] != FITTED:
        sys.exit(f"the zygote is fitted to Python {FITTED}")
    sys.path.insert(0, TOOLS)
    import_compactly([*modules, *TOOL_MODULES])
    del sys.path[0]
    use()
    forget()
    preloaded = frozenset(name.partition(".")[0] for name in sys.modules if name not in AT_START)
    serve_requests = ctypes.PyDLL(OBJECT).svc_zygote_serve
    serve_requests.argtypes = [ctypes.py_object] * 4
    hidden = compact_module_names()
    gc.collect()
    gc.freeze()
    sys.exit(serve_requests(renew, begin, exit_status, hidden))


def import_compactly(names):
    """The modules lie side by side in memory, as do their names: a copy takes them out at its end and touches few shared pages."""
    new_module = importing._new_module
    spare = [new_module("") for _ in range(SPARE_MODULES)]

    def next_module(name):
        module = spare.pop() if spare else new_module(name)
        module.__name__ = name
        return module

    importing._new_module = next_module
    for name in names:
        __import__(name)
    importing._new_module = new_module


def forget():
    """What the zygote did leaves no trace but loaded modules."""
    del sys.modules[__name__]
    del sys.path[0]
    for path in [path for path in sys.path_importer_cache if path.startswith((HOME, TOOLS, os.path.dirname(__file__)))]:
        del sys.path_importer_cache[path]
    linecache.clearcache()
    warnings.onceregistry.clear()
    warnings._filters_mutated()


def compact_module_names():
    modules = list(sys.modules.items())
    sys.modules.clear()
    for name, module in modules:
        sys.modules[(name + "\0")[:-1]] = module
    return [(name + "\0")[:-1] for name, _ in modules if name not in ("__main__", "sys", "builtins")]


def renew():
    """What must not be shared by two programs, and what a new process has anew. Answers what jaild's client is told: the hash seed."""
    threading._main_thread._set_tstate_lock()
    threading._main_thread._set_native_id()
    for renew_module in RENEWALS:
        renew_module(sys.modules.get)
    rehearse()
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__annotations__ = {}
    main.__builtins__ = builtins
    return int(SEED)


def rehearse():
    """What every start does, so that its pages are this process's own already."""
    begin(REHEARSAL)
    exec(compile("def f(a, *b, c=1, **d): return [a for a in b if a]\nf(1, 2)\n", "", "exec"), {})


def renew_randomness(module):
    # The standard library's generator sees the fork itself.
    if random := module("numpy.random"):
        random.seed()
    if uuid := module("uuid"):
        uuid._node = uuid._last_timestamp = None
    if tempfile := module("tempfile"):
        tempfile._name_sequence = tempfile.tempdir = None


def renew_keys(module):
    if process := module("multiprocessing.process"):
        process.current_process()._config["authkey"] = process.AuthenticationString(os.urandom(32))


def renew_clocks(module):
    if logging := module("logging"):
        logging._startTime = module("time").time()


RENEWALS = [renew_randomness, renew_keys, renew_clocks]


def begin(items):
    """The path of the program that this process now is, or None."""
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
    sys.orig_argv[:] = map(os.fsdecode, arguments)
    sys.argv[:] = sys.orig_argv[1:]
    sys.path.insert(0, os.path.dirname(path))
    main = sys.modules["__main__"]
    main.__file__ = path
    main.__cached__ = None
    main.__loader__ = importers.SourceFileLoader("__main__", path)
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


def exit_status(error):
    """Of an uncaught SystemExit, said as Python says it."""
    code = getattr(error, "code", error)
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1
