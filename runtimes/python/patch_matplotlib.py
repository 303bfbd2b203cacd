"""Fits the image's matplotlib to a read-only system: run once while the image is built.

Each change must apply exactly once; otherwise the build stops, so that another version of matplotlib is never shipped half fitted.
"""

import importlib.util
import pathlib
import re

PACKAGE = pathlib.Path(importlib.util.find_spec("matplotlib").origin).parent

CHANGES = [
    # The font list is part of the image: made at the end of the build, read at every start, never looked for in the home directory.
    ("font_manager.py", r"Path\(\s*mpl\.get_cachedir\(\),", 'Path("/usr/share/matplotlib",'),
    # The user's own configuration is read where it is usual, but no directory is made for it: the home is the workspace.
    (
        "__init__.py",
        r'(configdir = Path\(xdg_base_getter\(\), "matplotlib"\)\n)',
        r"\1        return str(configdir)\n",
    ),
    # A windowed backend could only fail.
    (
        "rcsetup.py",
        r"(?m)^def validate_backend\(s\):\n",
        "from matplotlib._no_screen import drawable  # noqa: E402\n\n\n\\g<0>    s = drawable(s)\n",
    ),
    # plt.show() has no screen to show on.
    ("backends/backend_agg.py", r"\Z", "\n\nfrom matplotlib._show_saves import show  # noqa: E402,F401\n"),
]

for name, pattern, replacement in CHANGES:
    path = PACKAGE / name
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"))
    if count != 1:
        raise SystemExit(f"{path}: the pattern {pattern!r} matched {count} times instead of once")
    path.write_text(text, encoding="utf-8")
