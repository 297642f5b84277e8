# SPDX-License-Identifier: BSD-3-Clause
"""python -m gradflow: what is installed, and where. The status is 1 if a part is missing."""
import importlib
import sys

from . import __version__, commands

missing = 0
parts = {name: lambda name=name: commands.find(name) for name in commands.NAMES}
parts["PyTorch"] = lambda: importlib.import_module("torch").__version__
parts["libgradflow"] = lambda: importlib.import_module("gradflow.library").described()
print(f"gradflow {__version__}")
for part, found in parts.items():
    try:
        text = found()
    except (ImportError, OSError) as e:
        text, missing = f"missing: {e}", 1
    print(f"{part:12} {text}")
sys.exit(missing)
