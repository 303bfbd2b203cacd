"""The figures that pyplot holds: those that are open, with their numbers, and which is the current one."""

import atexit
import sys

HELPERS = "matplotlib._pylab_helpers"


def keep_open():
    """pyplot closes all figures when a program ends, before its variables are saved."""
    if HELPERS in sys.modules:
        atexit.unregister(sys.modules[HELPERS].Gcf.destroy_all)


def opened():
    """[(number, figure)], the current one last."""
    if HELPERS not in sys.modules:
        return []
    return [(manager.num, manager.canvas.figure) for manager in sys.modules[HELPERS].Gcf.get_all_fig_managers()]


def reopen(figures):
    """Gives figures their numbers back: an unpickled figure is open again, with a number of its own. Takes the result of `opened`."""
    holder = sys.modules[HELPERS].Gcf
    holder.figs.clear()
    for number, figure in figures:
        figure.canvas.manager.num = number
        holder._set_new_active_manager(figure.canvas.manager)
