"""Writes matplotlib's list of fonts, with every name that a file of several fonts has. Run once while the image is built.

matplotlib itself knows such a file only by its first font, and draws with that one. The fonts of Noto CJK have the same
characters, so a program that asks for Chinese or Korean gets them in their Japanese shape.
"""

from dataclasses import replace
from itertools import count
from pathlib import Path

from matplotlib import font_manager
from PIL import ImageFont


def families(path):
    """The names of all fonts of a file except the first."""
    for index in count(1):
        try:
            yield ImageFont.truetype(path, index=index).getname()[0]
        except OSError:
            return


fonts = font_manager.fontManager.ttflist
for font in [font for font in fonts if font.fname.endswith(".ttc")]:
    fonts.extend(replace(font, name=name) for name in families(font.fname) if "Mono" not in name)
[path] = Path("/usr/share/matplotlib").glob("fontlist-*.json")
font_manager.json_dump(font_manager.fontManager, path)
