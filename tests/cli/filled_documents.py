#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fills one place of a shipped document until the file has nearly a megabyte, and runs
the commands that read it: a list of JSON, an object's keys, a line of a text; with
entries that are alike, or whose names and numbers rise or fall. What other programs
write may be packed by gzip: then the file has nearly a megabyte when it is packed, and
as much inside as gzip's bound allows. The answer must be one of the exit statuses,
within 5 s of a processor, 512 MB and few words.

    tests/cli/filled_documents.py SOURCE [--seed N] [--cases N | --seconds S]

Without a limit each place of each kind of document is filled in each way, in an order
drawn from the seed. It works in the current folder, where what failed stays.
"""
import argparse, copy, gzip, json, os, random, re, shutil, sys, time
from pathlib import Path

from bounded import judge
from hostile_documents import MOST_BYTES, inputs, places, prepare

UNPACKED, ENTRIES = 48_000_000, 1_900_000  # of a megabyte of gzip: lib/base/gunzip.c
REPORT = ["gf-report {}", "gf-report --plan plan.json {}", "gf-profile --import {}", "gf-sim --without-stragglers {} plan.json"]


def vary(value, i, way):
    """The entry's i-th copy: names and numbers differ, but for alike ones."""
    if way == "alike":
        return value
    i = i if way == "rising" else 1_000_000 - i
    if isinstance(value, dict):
        return {k: vary(v, i, "rising") if k != "format" else v for k, v in value.items()}
    if isinstance(value, list):
        return [vary(v, i, "rising") for v in value]
    if isinstance(value, str):
        return f"{value}{i}"
    return value + i if type(value) in (int, float) else value


def vary_names(value, i, way):
    """Only what is called a name, an id or a rank differs."""
    if isinstance(value, dict):
        return {k: vary(v, i, way) if k in ("name", "pid", "id", "rank", "tid", "sequence", "coll_sn") else vary_names(v, i, way)
                for k, v in value.items()}
    return [vary_names(v, i, way) for v in value] if isinstance(value, list) else value


def most(size, entries, packed):
    return max(2, min(UNPACKED // size, ENTRIES // max(1, entries)) if packed else MOST_BYTES // size)


def dump(value):
    return json.dumps(value, separators=(",", ":"))


def fill_json(root, at, way, packed):
    """The text, or None where nothing is to be filled."""
    root = copy.deepcopy(root)
    parent, value = None, root
    for key in at:
        parent, value = value, value[key]
    size = len(dump(root))
    if isinstance(value, list) and value:
        inside = dump(value[-1])
        n = most(len(inside) + 8, len(re.findall(r"[{\[<,=]", inside)) + 1, packed)
        n = n if packed else max(2, (MOST_BYTES - size) // (len(inside) + 8))
        change, last = vary_names if way == "names" else vary, value[-1]
        new = "[" + ",".join([dump(v) for v in value] + [dump(change(last, i, way)) for i in range(n)]) + "]"
    elif isinstance(value, dict) and way == "rising":
        n = most(12, 1, packed) if packed else (MOST_BYTES - size) // 14
        new = dump(value)[:-1] + ("," if value else "") + ",".join(f'"k{i}":1' for i in range(n)) + "}"
    elif isinstance(value, str) and way == "alike":
        new = dump(value + "x" * (MOST_BYTES - size))
    elif type(value) in (int, float) and way == "alike":
        new = "1" * (MOST_BYTES - size)
    else:
        return None
    if parent is None:
        return new
    parent[at[-1]] = "\u1234"
    return dump(root).replace('"\\u1234"', new)


def fill_text(text, at, way, packed):
    lines = text.splitlines(True)
    line = lines[at]
    n = most(len(line) + 2, len(re.findall(r"[{\[<,=]", line)), packed)
    if way == "word":
        words = line.split(" ")
        middle = len(words) // 2
        words[middle] = words[middle].rstrip() * (900_000 // max(1, len(words[middle])))
        more = [" ".join(words)]
    elif way == "list":
        more = [line.rstrip() + ("," + line.split("=")[-1].strip()) * min(n, 450_000 // len(line)) + "\n"]
    elif way == "alike":
        more = [line] * n
    else:
        step = 1 if way == "rising" else -1
        start = 0 if step > 0 else n
        pattern = re.compile(r"\d+" if re.search(r"\d", line) else r"\b[A-Za-z]+\b(?=[^A-Za-z]*$)")
        more = [pattern.sub(lambda m: f"{m.group() if not m.group().isdigit() else ''}{start + step * i}", line)
                for i in range(n)]
    return "".join(lines[:at + 1]) + "".join(more) + "".join(lines[at + 1:])


def shape(path):
    return "/".join("*" if isinstance(key, int) else key for key in path)


def cases(source):
    """(document's path, commands, root or text, place, way, packed)"""
    seen = set()
    for path, commands in inputs(source):
        foreign = any(f in path.parts for f in ("import", "topologies", "hwloc")) and "share" not in path.parts
        commands = REPORT if path.name == "trace.json" else commands
        foreign |= path.name == "trace.json"
        text = path.read_text(errors="replace")
        try:
            root = json.loads(text)
            kind = path.name if foreign else " ".join(commands)
            where = {(kind, shape(at)): at for at in reversed(list(places(root)))}
            ways = "alike", "rising", "falling", "names"
        except ValueError:
            root, kind = None, path.name
            where = {(kind, re.sub(r"[0-9a-fA-F.]+", "0", line)): i for i, line in enumerate(text.splitlines())}
            ways = "alike", "rising", "falling", "word", "list"
        for key, at in where.items():
            if key in seen:
                continue
            seen.add(key)
            for way in ways:
                for packed in (False, True) if foreign and way not in ("word", "list") else (False,):
                    yield path, commands, root if root is not None else text, at, way, packed


def written(name, root, at, way, packed):
    """False: there is nothing to fill. In a process of its own: what starts a command
    counts as the command's memory."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    text = (fill_text if isinstance(root, str) else fill_json)(root, at, way, packed)
    if text is None:
        os._exit(1)
    data = text.encode()
    if packed:
        data = gzip.compress(data[:UNPACKED], 6)
        data += bytes(max(0, MOST_BYTES - len(data)))  # as on a tape
    Path(name).write_bytes(data)
    os._exit(len(data) > 1_000_000)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("source", type=Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=10**9)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--only", default="", help="a part of the document's name")
    o = p.parse_args()
    began, bad, runs, done = time.monotonic(), 0, 0, 0
    prepare()
    every = [c for c in cases(o.source) if o.only in c[0].name]
    random.Random(o.seed).shuffle(every)
    for path, commands, root, at, way, packed in every:
        if done >= o.cases or time.monotonic() - began > o.seconds:
            break
        name = "filled" + path.suffix
        if not written(name, root, at, way, packed):
            continue
        done += 1
        for command in commands:
            runs += 1
            wrong = judge(command.format(name).split())
            if wrong:
                bad += 1
                kept = f"filled-{bad}{path.suffix}"
                shutil.copy(name, kept)
                print(f"{command.format(kept)}: {wrong}\n    {path.name}: {at if isinstance(at, int) else shape(at)} {way}"
                      f"{', packed' if packed else ''}", flush=True)
    print(f"{done} documents, {runs} runs, {bad} failed, seed {o.seed}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
