"""Runs a program that has tools (become).

The source is compiled as it is. Source that awaits at top level runs in asyncio.run, or as if it did (alone), all other source as a plain
module.
"""

import os

from . import become, names, tool

ALLOW_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CO_COROUTINE = 0x80


def run():
    """Runs the program that the arguments name."""
    become.run(load, execute)


def load(path, namespace):
    """Compiles a main module and puts the tools and the ready names into its namespace."""
    code = compile(become.source_of(path), path, "exec", ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    names.make_ready(code, namespace)
    tool.define_tools(namespace)
    return code


def execute(code, namespace):
    if not code.co_flags & CO_COROUTINE:
        exec(code, namespace)
        return
    from . import alone

    plain = alone.can_run(code, os.path.dirname(os.path.realpath(code.co_filename)))
    run = alone.run if plain else __import__("asyncio").run
    run(eval(code, namespace))
