"""plt.show() where there is no screen: saves every open figure as plot_<n>.png in the working directory and closes it.

Numbers continue after the highest existing one. An existing file is never overwritten, even when several processes show at
once. The Agg backend takes `show` from here; nothing of this is loaded before a program imports that backend.
"""

import os
import re

from matplotlib._pylab_helpers import Gcf

_PLOT = re.compile(r"plot_([0-9]+)\.png")


def _highest_number():
    numbers = (_PLOT.fullmatch(name) for name in os.listdir("."))
    return max((int(match[1]) for match in numbers if match), default=0)


def _create_after(number):
    while True:
        number += 1
        try:
            return open(f"plot_{number}.png", "xb"), number
        except FileExistsError:
            continue


def show(*args, **kwargs):
    """Save and close all open figures; takes what pyplot.show() takes."""
    managers = sorted(Gcf.get_all_fig_managers(), key=lambda manager: manager.num)
    number = _highest_number() if managers else 0
    for manager in managers:
        file, number = _create_after(number)
        with file:
            try:
                manager.canvas.figure.savefig(file, format="png")
            except BaseException:
                os.unlink(file.name)
                raise
        Gcf.destroy(manager)
