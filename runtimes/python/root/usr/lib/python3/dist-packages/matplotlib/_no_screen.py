"""Backends that draw into a window or a notebook, for which a jail has no screen: a program that asks for one gets Agg."""

_WINDOWED = frozenset(
    """
    gtk3agg gtk3cairo gtk4agg gtk4cairo inline ipympl macosx nbagg notebook qt4agg qt5agg qt5cairo qtagg qtcairo
    tkagg tkcairo webagg widget wx wxagg wxcairo module://ipympl.backend_nbagg module://matplotlib_inline.backend_inline
    """.split()
)


def drawable(backend):
    """The backend to use where `backend` was asked for."""
    return "agg" if isinstance(backend, str) and backend.lower() in _WINDOWED else backend
