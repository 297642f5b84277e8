#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands on standard input, one a line, and names those that end by a
signal, say too much, or take more than 5 s or 512 MB. Processor time counts, and twice as
much is allowed, since work on the other half of a core lengthens it; and memory in use:
MPI and hwloc map more."""
import os
import resource
import signal
import subprocess
import sys

SECONDS, MEGABYTES = 10, 512


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    signal.alarm(300)  # waits for nothing for good


def judge(command):
    """None, or what is wrong."""
    with open("out.txt", "wb") as out, open("err.txt", "wb") as err:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=err, preexec_fn=limit)
        _, status, used = os.wait4(child.pid, 0)
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
    status = os.waitstatus_to_exitcode(status)
    with open("err.txt", errors="replace") as err:
        text = err.read()
    if status not in (0, 1, 2, 3) or seconds > SECONDS or megabytes > MEGABYTES or len(text) > 3000:
        return f"status {status}, {seconds:.1f} s, {megabytes} MB, {text[:200]}"
    return None


def main():
    failed = 0
    for line in sys.stdin:
        command = line.strip().replace(": ", ":")
        wrong = judge(command.split())
        if wrong:
            failed = 1
            print(f"{command}: {wrong}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
