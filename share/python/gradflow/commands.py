# SPDX-License-Identifier: BSD-3-Clause
"""gradflow's commands: those of the wheel, else of the installation, else PATH's."""
import os
import shutil
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDERS = (os.path.join(_HERE, "bin"), os.path.join(_HERE, "..", "..", "..", "..", "bin"))


def find(name):
    """The command's path. FileNotFoundError: there is none."""
    path = shutil.which(name, path=os.pathsep.join(_FOLDERS)) or shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"{name}: want it in PATH (make install), or a gradflow from "
                                "a wheel, found neither")
    return path


def main():
    """Becomes the command by whose name a wheel's script was called."""
    name = os.path.basename(sys.argv[0])
    os.execv(os.path.join(_FOLDERS[0], name), [name, *sys.argv[1:]])
