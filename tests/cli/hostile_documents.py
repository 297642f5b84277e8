#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Changes shipped documents in one or two places, and runs the commands that read
them: numbers out of all proportion, lists repeated up to a megabyte, values of
another type, keys and lines that are missing. The answer must be one of the exit
statuses, within 5 s of a processor, 512 MB of memory and few words.

    tests/cli/hostile_documents.py SOURCE [--seed N] [--cases N | --seconds S]

It works in the current folder. What failed stays there as failed-N.
"""
import argparse, copy, json, random, re, shutil, subprocess, sys, time
from pathlib import Path

from bounded import judge

NUMBERS = [0, -1, 1, 2, 0.5, 1e-308, 1e308, 2**31 - 1, 2**31, 2**53, 2**24, 16777213, 10**6, 1000, 1e15, -1e15]
WORDS = ["", "x" * 900_000, "a/b", "../../etc/passwd", "\u202e\x1b[31m", "ring", "f32", "%s%n"]
MOST_BYTES = 950_000

PLAN = ["gf-sim {}", "gf-sim --steps {}", "gf-sim --verify {}", "gf-sim --jitter 0.1:runs=20 {}",
        "gf-sim --slow 1:2 --table {}", "gf-sim --slow-link 1:10 {}", "gf-sim --ranks 8,64,1024 --replan --table {}",
        "gf-plan --explain {}", "gf-plan --compare {}", "gf-plan --refine trace.json {}", "gf-train -q --steps 1 --plan {}",
        "gf-allreduce -q -n 1 --plan {}"]
PROFILE = ["gf-plan {}", "gf-plan --compare {}", "gf-plan --policy optimal --lanes 4 {}", "gf-plan --explain {}",
           "gf-plan --policy dear {}", "gf-plan --compare --over systems,codecs {}", "gf-sim --costs {} plan.json",
           "gf-profile --import {}"]
TOPOLOGY = ["gf-plan {}", "gf-plan --model resnet20 --gpu v100 {}", "gf-plan --model resnet20 --gpu v100 --compare {}",
            "gf-topo --table --import {}", "gf-topo --import {}",
            "gf-sim --costs {} plan.json"]
MODEL = ["gf-plan --gpu v100 --model {} 4x2-1gbe", "gf-profile --estimate --flops 1e12 --model {}"]
TRAINED = MODEL + ["gf-train -q --device cpu --steps 1 --model {}"]
TRACE = ["gf-plan --refine {} plan.json", "gf-report --plan plan.json {}", "gf-report {}"]


def prepare():
    """plan.json, trace.json, pairs.json, which stand beside what is changed."""
    with open("plan.json", "wb") as f:
        subprocess.run(["gf-plan", "-q", "--gpu", "v100", "--model", "resnet20", "4x2-1gbe"], stdout=f, check=True)
    subprocess.run("gf-sim -q --jitter 0.1:runs=5 --trace trace.json plan.json > /dev/null", shell=True, check=True)
    Path("pairs.json").write_text("".join(json.dumps(
        {"from_rank": i, "to_rank": (i + 1) % 8, "rate_bytes_per_s": 1e8, "slow": i == 3}) + "\n" for i in range(8)))


def inputs(source):
    """(file, commands)"""
    pair = json.loads((source / "tests/data/valid/plan-pair.json").read_text())
    for facts in sorted(source.glob("tests/entries/selection/*.json")):
        for plan in json.loads(facts.read_text()).get("accepted", [])[:1]:
            Path(f"plan-{facts.stem}.json").write_text(json.dumps({**pair, **plan}))
            yield Path(f"plan-{facts.stem}.json"), PLAN
    for pattern, commands in (
            ("tests/data/valid/plan-*.json", PLAN), ("tests/data/valid/profile-*.json", PROFILE),
            ("tests/data/valid/topology-*.json", TOPOLOGY), ("share/topologies/*.json", TOPOLOGY),
            ("share/models/digits-*.json", TRAINED), ("share/models/gpt*.json", MODEL), ("share/models/lstm*.json", MODEL),
            ("share/models/resnet18.json", MODEL), ("share/training/*.json", ["gf-train -q --steps 1 --training {}"]),
            ("tests/data/import/*", ["gf-profile --import {}", "gf-profile --passes forward=1s --import {}"]),
            ("tests/data/topologies/*", ["gf-topo --import {}", "gf-topo --table --import {}"]),
            ("tests/data/hwloc/*", ["gf-topo --import hwloc:{}"])):
        for path in sorted(source.glob(pattern)):
            if path.stat().st_size < 1_000_000:
                yield path, commands
    yield Path("trace.json"), TRACE
    yield Path("pairs.json"), ["gf-sim --pairs {} plan.json"]


def places(value, at=()):
    """Paths of all values below it."""
    yield at
    for key, inside in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inside, at + (key,))


def change_value(rng, root, at):
    """What was done, in words."""
    parent = root
    for key in at[:-1]:
        parent = parent[key]
    old, how = parent[at[-1]], rng.random()
    if how < 0.08:
        del parent[at[-1]]
        return "removed"
    if how < 0.16:
        new = rng.choice([None, True, [], {}, "x", 1, [[]], {"x": 1}])
    elif isinstance(old, (int, float)) and not isinstance(old, bool):
        new = rng.choice(NUMBERS + [old * 10**rng.randrange(1, 12)])
    elif isinstance(old, list) and old:
        size = len(json.dumps(old))
        times = max(1, int(10**rng.uniform(3, 6)) // size)
        new = [copy.deepcopy(x) for x in (old * times)[:200_000]]
        if rng.random() < .5:
            for i, x in enumerate(new):  # names that differ
                if isinstance(x, dict) and "name" in x:
                    x["name"] = f"n{i}"
    elif isinstance(old, dict):
        new = {**old, **{f"k{i}": 1 for i in range(int(10**rng.uniform(0, 4.5)))}}
    else:
        new = rng.choice(WORDS)
    parent[at[-1]] = new
    return f"{str(new)[:60]} ({len(str(new))})"


def change_json(rng, root):
    root, words = copy.deepcopy(root), []
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.choice(list(places(root))[1:] or [()])
        if at:
            words.append(f"/{'/'.join(map(str, at))} {change_value(rng, root, at)}")
    return json.dumps(root), ", ".join(words)


def change_text(rng, text):
    lines = text.splitlines(True) or [""]
    i, how = rng.randrange(len(lines)), rng.random()
    numbers = list(re.finditer(r"\d+(\.\d+)?", text))
    if how < 0.4 and numbers:
        n, new = rng.choice(numbers), str(rng.choice(NUMBERS))
        return text[:n.start()] + new + text[n.end():], f"{n.group()} at {n.start()} is {new}"
    if how < 0.6:
        return "".join(lines[:i] + lines[i + 1:]), f"without line {i + 1}"
    if how < 0.8:
        times = int(10**rng.uniform(2, 6)) // max(1, len(lines[i]))
        return "".join(lines[:i] + lines[i:i + 1] * times + lines[i:]), f"line {i + 1} {times} times"
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    times = int(10**rng.uniform(1, 6)) // max(1, b - a)
    return text[:a] + text[a:b] * times + text[b:], f"bytes {a} to {b} {times} times"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("source", type=Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=10**9)
    p.add_argument("--seconds", type=float, default=1e9)
    o = p.parse_args()
    rng, bad, runs, began = random.Random(o.seed), 0, 0, time.monotonic()
    prepare()
    documents = []
    for path, commands in inputs(o.source):
        text = path.read_text(errors="replace")
        try:
            documents.append((path, commands, text, json.loads(text)))
        except ValueError:
            documents.append((path, commands, text, None))
    case = 0
    while case < o.cases and time.monotonic() - began < o.seconds:
        case += 1
        path, commands, text, root = rng.choice(documents)
        changed, what = change_json(rng, root) if root is not None and rng.random() < .9 else change_text(rng, text)
        name = "case" + path.suffix
        Path(name).write_text(changed[:MOST_BYTES])
        for command in commands:
            runs += 1
            wrong = judge(command.format(name).split())
            if wrong:
                bad += 1
                kept = f"failed-{bad}{path.suffix}"
                shutil.copy(name, kept)
                print(f"{command.format(kept)}: {wrong}\n    {path.name}: {what}", flush=True)
    print(f"{case} documents, {runs} runs, {bad} failed, seed {o.seed}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
