# SPDX-License-Identifier: BSD-3-Clause
"""gradflow's commands: those of the wheel, else of the installation, else PATH's."""
import os
import shutil
import subprocess
import sys

NAMES = ("gf-topo", "gf-profile", "gf-plan", "gf-sim", "gf-report")  # of a wheel
_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDERS = (os.path.join(_HERE, "bin"), os.path.join(_HERE, "..", "..", "..", "..", "bin"))


def find(name):
    """The command's path. FileNotFoundError: there is none."""
    path = shutil.which(name, path=os.pathsep.join(_FOLDERS)) or shutil.which(name)
    if path is None:
        raise FileNotFoundError(f"{name}: want it in PATH (make install), or a gradflow from "
                                "a wheel, found neither")
    return path


def environment():
    """Of the commands. The UCX that a wheel brings would load the modules of the machine's, and
    these a second UCX."""
    own = os.path.join(_HERE, "..", "gradflow.libs")
    return {"UCX_MODULE_DIR": own, **os.environ} if os.path.isdir(own) else dict(os.environ)


def run(command):
    """What the command of gradflow's prints. ValueError: it failed, and why."""
    done = subprocess.run([find(command[0]), "-q", *command[1:]],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=environment())
    if done.returncode:
        raise ValueError(done.stderr.strip() or f"{command[0]}: status {done.returncode}")
    return done.stdout


def main():
    """Becomes the command by whose name a wheel's script was called."""
    name = os.path.basename(sys.argv[0])
    os.execve(os.path.join(_FOLDERS[0], name), [name, *sys.argv[1:]], environment())
