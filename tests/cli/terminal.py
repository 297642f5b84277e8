#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""terminal.py COLUMNS COMMAND...: its output is a terminal of that width."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
child = subprocess.Popen(sys.argv[2:], stdout=theirs, env=environment)
os.close(theirs)
try:
    while part := os.read(ours, 4096):
        sys.stdout.buffer.write(part.replace(b"\r\n", b"\n"))
except OSError:  # the last writer has gone
    pass
sys.exit(child.wait())
