"""Arguments and results as JSON.

Uses the C code of the json package without the package, whose import would cost more than everything else of a call. Values that JSON does
not know are converted when nothing is lost and nobody could expect another form; everything else is a TypeError that names the argument.
"""

import sys
from _json import encode_basestring, make_encoder, make_scanner


NO_JSON = "the result of the tool is no JSON"


class _Settings:
    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None

    def __init__(self):
        self.memo = {}


_scan = make_scanner(_Settings())


def decode(text):
    """The value of a JSON text in UTF-8; ValueError when it is none."""
    text = str(text, "utf-8", "surrogatepass").strip()
    try:
        value, end = _scan_nested(text)
    except (StopIteration, SystemError, ValueError):
        raise ValueError(NO_JSON) from None
    if end != len(text):
        raise ValueError(NO_JSON)
    return value


def _scan_nested(text):
    try:
        return _scan(text, 0)
    except RecursionError:
        return _with_room(lambda: _scan(text, 0))


def encode_call(name, arguments):
    """The body of a call."""
    members = []
    for key, value in arguments.items():
        try:
            if not isinstance(key, str):
                raise TypeError("names of arguments must be strings")
            members.append(f"{encode_basestring(key)}:{_encode(value)}")
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}(): argument {key!r} cannot be sent as JSON: {error}") from None
    text = f'{{"tool_name":{encode_basestring(name)},"input":{{{",".join(members)}}}}}'
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _escape_surrogates(text).encode()


def _escape_surrogates(text):
    """Halves of a surrogate pair have no UTF-8, but JSON can write them."""
    return "".join(f"\\u{ord(letter):04x}" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def _encode(value):
    try:
        return _encode_nested(value)
    except RecursionError:
        return _with_room(lambda: _encode_nested(value))


def _encode_nested(value):
    return "".join(make_encoder({}, _convert, encode_basestring, None, ":", ",", False, False, False)(value, 0))


def _with_room(work):
    """Runs what nests too deeply for the recursion limit in a thread with a stack for a hundred thousand levels."""
    import threading

    outcome = []

    def attempt():
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    limit = sys.getrecursionlimit()
    size = threading.stack_size(256 << 20)
    sys.setrecursionlimit(max(limit, 100_000))
    try:
        try:
            thread = threading.Thread(target=attempt)
            thread.start()
        finally:
            threading.stack_size(size)
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    value, error = outcome[0]
    if isinstance(error, RecursionError):
        raise ValueError("it is nested too deeply") from None
    if error is not None:
        raise error
    return value


def _loaded(module, name):
    """A class of a module that the program has imported; otherwise (), of which nothing is an instance."""
    return getattr(sys.modules.get(module), name, ())


def _convert(value):
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "_svc_tools" and hasattr(kind, "_svc_value"):
        return kind._svc_value(value)
    if package == "numpy" and hasattr(value, "tolist"):
        return value.astype(str).tolist() if value.dtype.kind in "Mm" else value.tolist()
    if package == "pandas":
        return _convert_pandas(value, kind.__name__)
    if isinstance(value, _loaded("enum", "Enum")):
        return value.value
    if isinstance(value, (_loaded("datetime", "date"), _loaded("datetime", "time"))):
        return value.isoformat()
    if isinstance(value, (_loaded("pathlib", "PurePath"), _loaded("uuid", "UUID"))):
        return str(value)
    if isinstance(value, _loaded("decimal", "Decimal")):
        return _convert_decimal(value)
    if hasattr(kind, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in kind.__dataclass_fields__ if hasattr(value, name)}
    if isinstance(value, (_loaded("collections.abc", "Mapping"), _loaded("_collections_abc", "Mapping"))):
        return dict(value)
    if isinstance(value, (range, _loaded("collections", "deque"))):
        return list(value)
    hint = ""
    if isinstance(value, (set, frozenset)):
        hint = "; pass a list"
    elif isinstance(value, (bytes, bytearray, memoryview)):
        hint = "; decode it, or pass base64 text"
    elif isinstance(value, _loaded("collections.abc", "Coroutine")):
        hint = "; await it first"
    raise TypeError(f"{kind.__name__} is no JSON type{hint}")


def _convert_decimal(value):
    if not value.is_finite():
        raise TypeError(f"Decimal {value} is no JSON number")
    if value == value.to_integral_value() and abs(value) < 1 << 53:
        return int(value)
    number = float(value)
    return number if type(value)(repr(number)) == value else str(value)


def _convert_pandas(value, kind):
    """Tables become lists of rows, columns become lists; missing values become null."""
    if kind in ("NAType", "NaTType"):
        return None
    if kind in ("DataFrame", "Series"):
        if type(value.index).__name__ != "RangeIndex":
            raise TypeError(f"the index of a {kind} would be lost; use reset_index() or to_dict()")
        present = value.astype(object).where(value.notna(), None)
        return present.to_dict("records") if kind == "DataFrame" else present.tolist()
    if kind == "Timestamp":
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{kind} is no JSON type")
