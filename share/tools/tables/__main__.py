# SPDX-License-Identifier: BSD-3-Clause
"""The papers' tables beside gradflow's predictions, as text and as pictures.

`make tables` runs this folder, with gradflow's commands and gf-figures on PATH.
"""
import argparse
import sys

sys.dont_write_bytecode = True  # beside these sources, which are installed

import asc_wfbp
import blueconnect
import gradientflow
import gtopk
import pipe_sgd
from report import KINDS, Report
from setup import Refused

SECTIONS = (asc_wfbp, gradientflow, gtopk, pipe_sgd, blueconnect)


def main():
    parser = argparse.ArgumentParser(prog="gf-tables", description=__doc__.splitlines()[0])
    for kind in KINDS:
        parser.add_argument(f"--{kind}", metavar="DIR",
                            help="write the numbers of the pictures into this folder"
                            if kind == "csv" else "write the pictures into this folder, too")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write to FILE instead of standard output")
    args, extra = parser.parse_known_args()
    try:
        if extra:
            raise Refused(f'want no argument, got "{extra[0]}"')
        report = Report(vars(args))
        for section in SECTIONS:
            section.write(report)
        try:
            out = open(args.output, "w", encoding="utf-8") if args.output else sys.stdout
            with out:
                out.write(report.text())
        except OSError as e:
            raise Refused(f"{args.output or 'standard output'}: {e.strerror}", 3) from None
    except Refused as e:
        print(f"gf-tables: {e}", file=sys.stderr)
        return e.status
    return 0


sys.exit(main())
