"""The file of variables.

It begins with a line of JSON, which others read: {"v": 1, "names": [...], "modules": [...], "dropped": [{"name", "reason"},
...]}, with spaces at its end. `names` are the variables in it, `modules` what they need beyond the standard library, `dropped`
the variables that were lost in this run, when it began or when it ended. A line has at most 64 KiB, a list at most 100 entries,
a name or reason at most 200 characters.

Pickles of protocol 5 follow, one for each variable: a list with the value. They share one memo, so that variables still share
what they shared. The last pickle is the index: (number of memo entries, [(name, offset, memo entries before it)]). The last
eight bytes are the offset of the index.
"""

from .imports import own

FILE = ".session_state.pkl"
LAST = ".session_state.last"  # what the program began with, until its own variables are saved
NEW = ".session_state.new"  # being written

BEGINNING = b'{"v": 1, '
HEADER_BYTES = 65_536
ENTRIES = 100
CHARACTERS = 200
OFFSET_BYTES = 8

FIGURES = ""  # the name, in the index, of the figures of pyplot; no variable has it
ALL = "*"  # the name, among the dropped ones, of all variables of a file
SHOWN = {FIGURES: "matplotlib figures"}


def reason_of(error):
    """Returns in short plain words why a variable is lost. `error` may be of a class of the program."""
    try:
        text = " ".join(str(error).split())
    except BaseException:
        text = ""
    kind = type(error).__name__
    if not text:
        text = kind
    elif kind not in ("TypeError", "PicklingError", "UnpicklingError", "Deadline"):
        text = f"{kind}: {text}"
    return text[:CHARACTERS]


def header_of(names, modules, dropped, size):
    """The first line, of exactly `size` bytes; entries that have no room are left out, dropped ones last."""
    dumps = own("json").dumps
    names = [SHOWN.get(name, name)[:CHARACTERS] for name in names if name != FIGURES][:ENTRIES]
    modules = sorted(modules)[:ENTRIES]
    dropped = [{"name": SHOWN.get(name, name)[:CHARACTERS], "reason": reason} for name, reason in dropped][:ENTRIES]
    while True:
        line = dumps({"v": 1, "names": names, "modules": modules, "dropped": dropped}).encode()
        if len(line) < size:
            return line.ljust(size - 1) + b"\n"
        (names or modules or dropped).pop()


def header_size(names):
    """Enough for names and reasons as they usually are."""
    return min(HEADER_BYTES, 1024 + sum(300 + 2 * min(len(name), CHARACTERS) for name in names[: 2 * ENTRIES]))
