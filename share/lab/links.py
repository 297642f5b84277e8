#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a lab's links carry: payload of TCP, by streams between its hosts.

links.py NAMESPACES HOSTS RACKS RATE TRUNK PART...

Host h is the namespace NAMESPACES-hH with the address 10.77.0.(h + 1). RATE and TRUNK
are bits per second, or 0 for no limit. PARTs are one (a stream from h0 to h1), both
(h1 to h0 as well) and all (each host to the next one). A line of PART_bits_per_s= and
PART_percent= (of RATE or TRUNK), each of its slowest stream, goes to stdout.
"""
import ctypes
import os
import socket
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def new_socket(namespace):
    """A TCP socket of a namespace, where it stays when this thread leaves it."""
    handle = os.open("/run/netns/" + namespace, os.O_RDONLY)
    if libc.setns(handle, CLONE_NEWNET):
        sys.exit(f"links.py: {namespace}: {os.strerror(ctypes.get_errno())}")
    os.close(handle)
    return socket.socket()


def connect(sender, receiver, queue):
    door = new_socket(f"{sys.argv[1]}-h{receiver}")
    door.bind((f"10.77.0.{receiver + 1}", 0))
    door.listen()
    out = new_socket(f"{sys.argv[1]}-h{sender}")
    out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, queue)
    out.settimeout(5)
    out.connect(door.getsockname())
    out.settimeout(None)
    return out, door.accept()[0]


def send(out):
    try:
        while True:
            out.sendall(bytes(65536))
    except OSError:
        pass


def receive(into, counts, i):
    room = bytearray(262144)
    try:
        while got := into.recv_into(room):
            counts[i] += got
    except OSError:
        pass


def carry(pairs, slowest):
    """Bits per second of each stream while all of them send."""
    # a slow link needs time for some packets, and no long queue
    window = min(max(.25, 1e6 / slowest), 4) if slowest else .25
    queue = int(min(max(slowest / 8 * .02, 16384), 131072)) if slowest else 131072
    ends = [connect(*pair, queue) for pair in pairs]
    counts = [0] * len(pairs)
    threads = [threading.Thread(target=send, args=(out,)) for out, _ in ends]
    threads += [threading.Thread(target=receive, args=(into, counts, i)) for i, (_, into) in enumerate(ends)]
    for thread in threads:
        thread.start()
    time.sleep(window / 4)
    before, begun = list(counts), time.monotonic()
    time.sleep(window)
    after, took = list(counts), time.monotonic() - begun
    for end in sum(ends, ()):
        end.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    time.sleep(32 * queue / slowest if slowest else 0)  # what is in the queues yet
    return [8 * (a - b) / took for a, b in zip(after, before)]


def main():
    hosts, racks, rate, trunk = int(sys.argv[2]), int(sys.argv[3]), *map(float, sys.argv[4:6])
    slowest = min(rate, trunk) if racks > 1 else rate
    parts = {"one": [(0, 1)], "both": [(0, 1), (1, 0)], "all": [(h, (h + 1) % hosts) for h in range(hosts)]}
    for part in sys.argv[6:]:
        best = [rate if a * racks // hosts == b * racks // hosts else slowest for a, b in parts[part]]
        share, bits = min((s / (b or s or 1), s) for s, b in zip(carry(parts[part], slowest), best))
        print(f"{part}_bits_per_s={bits:.0f} {part}_percent={100 * share:.1f}", end=" ")
    print()


main()
