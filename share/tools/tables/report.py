# SPDX-License-Identifier: BSD-3-Clause
"""Sections of tables that set a paper's number beside ours, with the error and a word.

The words say only how far apart the two numbers are; the text below a table says why.
"""
import math
import os
import subprocess
import tempfile
import textwrap

from setup import SHARE, Refused

CLOSE = 0.10  # up to here: "yes"
ROUGH = 0.25  # up to here: "roughly"; beyond: "no"
WORDS = ("yes", "roughly", "no")
KINDS = ("svg", "pdf", "png", "csv")


def wrap(text, first="", rest=""):
    return textwrap.fill(text, 78, initial_indent=first, subsequent_indent=rest,
                         break_long_words=False, break_on_hyphens=False) + "\n"


def columns(rows):
    """Cells in columns; numbers to the right."""
    numbers = [all(not c or c == "-" or c.lstrip("+-")[:1].isdigit() for c in column[1:])
               for column in zip(*rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ("  ".join(cell.rjust(w) if right else cell.ljust(w)
                       for cell, w, right in zip(row, widths, numbers)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def verdict(counts, theirs, ours, decimals, word=None):
    """The cells of a row; counts the word, unless it is given."""
    if theirs is None:
        return "-", f"{ours:.{decimals}f}", "-", "-"
    error = (ours - theirs) / theirs
    error = 0 if abs(error) < 0.0005 else error  # no "-0.0"
    if not word:
        # Half a unit of the last place: 10.0 % as printed counts as 10 %.
        word = WORDS[sum(abs(error) >= limit + 0.0005 for limit in (CLOSE, ROUGH))]
        counts[word] += 1
    return f"{theirs:.{decimals}f}", f"{ours:.{decimals}f}", f"{100 * error:+.1f} %", word


class Report:
    """The report, as text that grows; folders: where pictures go, by kind."""

    def __init__(self, folders):
        self.folders = folders
        self.body = ""
        self.counts = []

    def blank(self):
        if not self.body.endswith("\n\n"):
            self.body += "\n"

    def section(self, paper):
        p = paper.text
        self.body += f"\n{'=' * 78}\n{p['paper']}\n\n"
        self.body += wrap(f"{p['title']}. {p['authors']}, {p['venue']} {p['year']}.")
        if p["not_given"]:
            self.body += "\nThe paper does not give\n"
        for line in p["not_given"]:
            self.body += wrap(line, "- ", "  ")
        self.blank()

    def table(self, name, subject, rows):
        """Rows: what, the paper's number or None, ours, digits[, "fitted" or "itself"]."""
        self.blank()
        self.body += wrap(f"{name}: {subject}")
        cells = [("", "paper", "gradflow", "error", "reproduced")]
        counts = dict.fromkeys(WORDS, 0)
        for what, *row in rows:
            cells.append((f"  {what}", *verdict(counts, *row)))
        self.counts.append((name, counts))
        self.body += columns(cells)

    def say(self, text):
        self.body += wrap(text, "  ", "  ")

    def picture(self, name, script, heading, rows, **variables):
        """The numbers of a picture as a CSV file, and drawn by a script of share/plots."""
        cells = [[f"{c:.12g}" if isinstance(c, (int, float)) else c for c in row]
                 for row in rows]
        numbers = "".join(",".join(line) + "\n" for line in [heading, *cells])
        for kind in KINDS:
            if not self.folders.get(kind):
                continue
            path = os.path.join(self.folders[kind], f"{name}.{kind}")
            try:
                with open(path, "wb") as f:
                    if kind == "csv":
                        f.write(numbers.encode())
                    else:
                        draw(f, kind, script, numbers, variables)
            except OSError as e:
                raise Refused(f"{path}: {e.strerror}", 3) from None
            self.body += f"  picture: {name}.{kind}\n"

    def curves(self, name, points, **variables):
        """Points (series, style, x, y); a paper's has the colour of its curve."""
        self.picture(name, "curves", ("series", "style", "x", "y"), points, series="series",
                     style="style", **variables)

    def text(self):
        intro = wrap(f'The papers\' tables beside gradflow\'s predictions. "yes" means within '
                     f'{100 * CLOSE:.0f} %, "roughly" within {100 * ROUGH:.0f} %, "no" further '
                     f'off; below each table stands what the prediction rests on and, where it '
                     f'fails, why. "itself" compares a paper with itself, and does not count. '
                     f'Layer times are those of gf-profile --estimate=flops PROFILE '
                     f'("even": --estimate=even), with the times of single GPUs in '
                     f'share/profiles; gf-plan --policy NAME --lanes K makes the predictions from '
                     f'that profile and the network of the table.')
        summary = [(name, *map(str, c.values())) for name, c in self.counts if any(c.values())]
        return intro + "\n" + columns([("table", *WORDS), *summary]) + self.body


def paper_point(series, x, y):
    return f"{series} (paper)", "points", x, y


def draw(out, kind, script, numbers, variables):
    """gnuplot's picture; -d: no file of the user's that it would read by itself."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as data:
        data.write(numbers)
        data.flush()
        wanted = {"data": data.name, "out": kind, **variables}
        quote = "'"
        text = "".join(
            f"{name}={value};" if isinstance(value, (int, float)) and not math.isnan(value)
            else f"{name}='{value.replace(quote, 2 * quote)}';"
            for name, value in wanted.items())
        try:
            subprocess.run(["gnuplot", "-d", "-e", text,
                            os.path.join(SHARE, "plots", script + ".gp")],
                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                           check=True)
        except FileNotFoundError:
            raise Refused("want gnuplot to draw (Debian: gnuplot-nox)", 3) from None
        except subprocess.CalledProcessError as e:
            said = e.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise Refused(f"gnuplot: {said or 'failed'}", 3) from None
