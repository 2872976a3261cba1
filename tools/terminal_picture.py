#!/usr/bin/env python3
"""Draws what a command prints in a terminal, colours and all, as an SVG.

    tools/terminal_picture.py docs/demo.svg build/tensordiff demo/reference.zip \\
        demo/constant_scale.tgz --color always

The picture in README.md is made so, by ./dev pictures; tests/docs_test.py tells when it is old.
"""

import html
import re
import subprocess
import sys

CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 19, 16
BACKGROUND, FOREGROUND = "#16181d", "#d6d9e0"
# The eight colours of a terminal, plain (30-37) and bright (90-97).
COLOURS = ["#5c6370", "#f0727f", "#8fce7e", "#e5c07b", "#6cb2f7", "#d291e4", "#5cc8d2", "#d6d9e0"]


class Pen:
    """How the next characters look; SGR codes change it."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.colour, self.bold, self.dim = FOREGROUND, False, False

    def obey(self, code):
        if code == 0:
            self.reset()
        elif code == 1:
            self.bold = True
        elif code == 2:
            self.dim = True
        elif code == 22:
            self.bold = self.dim = False
        elif code == 39:
            self.colour = FOREGROUND
        elif code in range(30, 38) or code in range(90, 98):
            self.colour = COLOURS[code % 10]

    def attributes(self):
        weight = ' font-weight="bold"' if self.bold else ""
        opacity = ' opacity="0.6"' if self.dim else ""
        return f'fill="{self.colour}"{weight}{opacity}'


def draw_line(line, y, pen):
    """The runs of one look, each at its own column, so that no font can shift the next."""
    column, runs = 0, []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            for code in part[2:-1].split(";"):
                pen.obey(int(code or 0))
        elif part:
            text = part.strip(" ")
            if text:
                x = MARGIN + CELL_WIDTH * (column + len(part) - len(part.lstrip(" ")))
                runs.append(f'<text x="{x:.1f}" y="{y}" textLength="{CELL_WIDTH * len(text):.1f}" '
                            f"{pen.attributes()}>{html.escape(text)}</text>")
            column += len(part)
    return runs


def draw(prompt, output):
    lines = [f"\x1b[2m$\x1b[0m \x1b[1m{prompt}\x1b[0m", *output.rstrip("\n").split("\n")]
    columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    width, height = columns * CELL_WIDTH + 2 * MARGIN, len(lines) * LINE_HEIGHT + 2 * MARGIN
    pen, runs = Pen(), []
    for number, line in enumerate(lines):
        runs += draw_line(line, MARGIN + LINE_HEIGHT * number + 14, pen)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-size="14" xml:space="preserve" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>', *runs, "</svg>", ""])


def main():
    picture, *command = sys.argv[1:]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    shown = [word for word in command if word not in ("--color", "always")]
    prompt = " ".join(shown).removeprefix("build/")
    with open(picture, "w", encoding="utf-8") as file:
        file.write(draw(prompt, output))


if __name__ == "__main__":
    main()
