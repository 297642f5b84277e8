#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes documents below 1 MB that ask for much, and prints for each the commands
that read it: big_inputs.py SOURCE, into the current folder."""
import copy
import gzip
import json
import sys
from pathlib import Path

source = Path(sys.argv[1])
topology = json.loads((source / "share/topologies/4x2-1gbe.json").read_text())
profile = json.loads((source / "share/profiles/six.json").read_text())
mlp = json.loads((source / "share/models/digits-mlp.json").read_text())


def put(name, document, *commands):
    """The first million bytes of the document, and the lines of its commands."""
    if not isinstance(document, str):
        document = json.dumps(document, separators=(",", ":"))
    Path(name).write_text(document[:999_000])
    for command in commands:
        print(command, name)


def levels(sizes):
    ranks = 1
    for size in sizes:
        ranks *= size
    rows = [{**topology["levels"][0], "name": f"l{i}", "size": s} for i, s in enumerate(sizes)]
    return {**topology, "ranks": ranks, "levels": rows}


def costs(tensors, elements=1000, **network):
    made = copy.deepcopy(profile)
    made["model"]["tensors"] = [
        {"name": f"t{i}", "count_elems": elements, "dtype": "f32", "ready_s": 17.0 * (i + 1) / tensors}
        for i in range(tensors)]
    made["network"].update(network)
    return made


def entry(**keys):
    return {"algorithm": "ring", "startup_s": 1, "per_byte_s": 0.25, **keys}


def switches(name, text):
    put(name, text, "gf-topo --import", "gf-topo --table --import")


PLANS = "gf-plan --model resnet50", "gf-plan --model resnet50 --compare"
TOPOLOGIES = {
    "prime": [2**31 - 1], "billion": [10**9], "thirty": [2] * 30, "most": [2**24],
    "more": [2**24 + 1], "primes": [16777213], "twos": [2] * 24, "ones": [1] * 6000,
    "divisors": [2] * 12 + [3] * 7}
for name, sizes in TOPOLOGIES.items():
    put(f"topology-{name}.json", levels(sizes), *PLANS)
    put(f"drawn-{name}.json", levels(sizes), "gf-topo --table --import", "gf-topo --import")

put("tensors.json", costs(9000), "gf-plan", "gf-plan --compare", "gf-plan --policy optimal --lanes 8",
    "gf-plan --policy dear", "gf-plan --explain", "gf-plan --selection topk", "gf-plan --emit ddp")
uneven = costs(14_000, allreduce=[entry(contention=[1, 1.1, 1.2, 1.3, 1.5, 1.6, 1.7], algorithm=name)
                                  for name in ("ring", "rhd")])
for i, tensor in enumerate(uneven["model"]["tensors"]):
    tensor.update(name=f"{i:x}", count_elems=i * 7919 % 100003 + 1, ready_s=round(tensor["ready_s"], 4))
put("uneven.json", uneven, "gf-plan", "gf-plan --explain", "gf-plan --lanes 64")
put("lanes.json", {
    "format": "gf-plan", "version": 1, "ranks": 4, "lanes": 1_000_000,
    "model": {key: value for key, value in profile["model"].items() if key != "tensors"}, "network": profile["network"],
    "tensors": costs(5000)["model"]["tensors"], "messages": [
    {"first": i, "last": i, "mode": "simultaneous" if i else "normal", "release": "ready", "half": "all",
     "algorithm": "ring", "codec": "f32"} for i in range(5000)]}, "gf-sim", "gf-sim --verify")
put("elements.json", costs(8000, 2**40), "gf-plan", "gf-plan --selection csc:chunk_elems=1")
put("gammas.json", costs(6, allreduce=[entry(contention=[1] * 100000)]), "gf-plan",
    "gf-plan --lanes 100000")
put("algorithms.json", costs(6, allreduce=[entry()] * 8000), "gf-plan")
put("lines.json", costs(6, allreduce=[entry(larger=[
    {"from_bytes": i + 1, "startup_s": 1 + i, "per_byte_s": 0.25} for i in range(16000)])]), "gf-plan")

# what stands for more than it holds: aliases of YAML, gzip, a trace beside its plan
def aliases(word, copies, keys=95):
    return (f'a: &a "{"x" * word}"\nm: &m {{{", ".join(f"k{i}: *a" for i in range(keys))}}}\ncluster_default: true\nl: ['
            + ", ".join(["*m"] * copies) + "]")


def packed(name, text, *commands):
    """As much as gzip's bound allows: zeros after the stream count as packed, too."""
    data = gzip.compress(text.encode(), 6)
    assert len(text) < 48_000_000 and len(data) < 990_000
    Path(name).write_bytes(data + bytes(990_000 - len(data)))
    for command in commands:
        print(command, name)


def events(count, event):
    return '{"traceEvents":[' + ",".join(event(i) for i in range(count)) + "]}"


def forward(i):
    return f'{{"ph":"X","cat":"forward","name":"f","pid":0,"ts":{2 * i},"dur":1}}'


for name, text in {"word": aliases(2000, 10_000), "words": aliases(100_000, 50_000), "keys": aliases(1, 50_000),
                   "lists": "cluster_default: x\na: &a [" + "x," * 900 + "]\n" + "".join(
                       f"b{i}: &b{i} [{f'*{chr(97)}' + ''.join(', *a' for _ in range(900))}]\n" for i in range(90)),
                   "tags": "".join(f"%TAG !{i}! tag:{i}\n" for i in range(40_000)) + "---\ncluster_default: x\n",
                   "dashes": "cluster_default: x\n" + "- " * 400_000}.items():
    put(f"aliases-{name}.yaml", text, "gf-topo --import slurm:", "gf-topo --import astra-sim:")
packed("elements.xml.gz", '<system version="1"><cpu>' + "<a/>" * 1_900_000 + "</cpu></system>", "gf-topo --import")
packed("objects.json.gz", '{"traceEvents":[' + "{}," * 900_000 + "{}]}", "gf-profile --import", "gf-report")
packed("lines.conf.gz", "SwitchName=a Nodes=n[0-3]\n" + "#\n" * 20_000_000, "gf-topo --import")
packed("rows.csv.gz", "name,count_elems,ready_s\n" + "t,1,1\n" * 900_000, "gf-profile --passes forward=1s --import")
packed("blank.log.gz", "# OSU MPI Allreduce Latency Test v7.0\n" + "\n" * 45_000_000, "gf-profile --ranks 4 --import")
packed("sizes.log.gz", "# OSU MPI Allreduce Latency Test v7.0\n# Size       Avg Latency(us)\n" + "".join(
    f"{4 * i} 1\n" for i in range(200_000, 0, -1)), "gf-profile --ranks 4 --import")
packed("processes.json.gz", events(190_000, lambda i: forward(0).replace('"pid":0', f'"pid":{i * 7 % 190_000}')), "gf-report")
packed("tables.log.gz", ("#  Rank  0 Group  0 Pid  1 on  a device  0\n#  Rank  1 Group  0 Pid  1 on  b device  0\n"
                         "8 8 a sum 1 1 1 0 1 1 1 0\n") * 300_000, "gf-profile --import")

put("many-plan.json", {
    "format": "gf-plan", "version": 1, "ranks": 4, "lanes": 1, "network": profile["network"],
    "model": {key: value for key, value in profile["model"].items() if key != "tensors"},
    "tensors": costs(4000)["model"]["tensors"], "messages": [
        {"first": i, "last": i, "mode": "normal", "release": "ready", "half": "all", "algorithm": "ring", "codec": "f32"}
        for i in range(4000)]}, "gf-sim")
put("steps-trace.json", events(17_000, forward))
put("places-trace.json", events(8000, lambda i: f'{forward(i)},{{"ph":"i","cat":"ready","name":"t3999","pid":0,"ts":{2 * i}}}'))
put("names-trace.json", events(16_000, lambda i: forward(i) if i < 2 else f'{{"ph":"i","cat":"ready","name":"x{i}","pid":0,"ts":1}}'))
for name in "steps", "places", "names":
    print(f"gf-report --plan many-plan.json {name}-trace.json")
    print(f"gf-plan --refine {name}-trace.json many-plan.json")

READERS = ("gf-plan", "gf-sim", "gf-topo --import", "gf-profile --import", "gf-train --steps 1 --plan",
           "gf-train --steps 1 --model")
put("deep.json", "[" * 900_000, *READERS)
put("nested.json", '{"a":' * 190_000, *READERS)
rule = {"format": "gf-plan", "version": 1, "rule": {
    "threshold_bytes": 1, "lanes": 1, "algorithms": [{"min_bytes": 0, "algorithm": "ring"}]}}
put("plans.json", "".join(json.dumps({**rule, "rule": {**rule["rule"], "threshold_bytes": i + 1}}) for i in range(6000)),
    "gf-sim")
put("keys.json", "{" + ",".join(f'"k{i}":1' for i in range(80_000)) + "}", *READERS)
put("many.json", "{}" * 499_000, *READERS)

switches("long.conf", f"SwitchName=s0 Nodes={'a' * 3000}[0-99999]\n")
switches("product.conf", "SwitchName=s0 Nodes=a[0-99][0-99][0-99][0-99]\n")
switches("range.conf", "SwitchName=s0 Nodes=a[0-16777215]\n")
switches("twice.conf", "SwitchName=s0 Nodes=" + ",".join(["a[0-500]"] * 20_000) + "\n")
switches("chain.conf", "".join(f"SwitchName=s{i + 1} Switches=s{i}\n" for i in range(25_000)) +
         "SwitchName=s0 Nodes=h[0-1]\n")
switches("tree.conf", "".join(f"SwitchName={'s' * 25}{i} " + (
    f"Nodes=h{i}" if i > 7999 else f"Switches={'s' * 25}{2 * i + 1},{'s' * 25}{2 * i + 2}") + "\n" for i in range(16_000)))
switches("hosts.conf", f"SwitchName=s0 Nodes={'h' * 200}[0-131070]\n")
switches("flat.conf", "".join(f"SwitchName=s{i} Nodes=h{i}\n" for i in range(25_000)) +
         "SwitchName=top Switches=s[0-24999]\n")

GPU = '<pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="80"/></pci>'
for name, inside in {
        "attributes": "<cpu " + " ".join(f'a{i}="1"' for i in range(70_000)) + "/>",
        "deep": "<pci>" * 100_000, "gpus": "<cpu>" + GPU * 11_000 + "</cpu>",
        "comment": "<!--" + "-" * 900_000}.items():
    put(f"nccl-{name}.xml", f'<system version="1">{inside}</system>', "gf-topo --import", "gf-topo --import nccl:")
OBJECT = '<object type="{}" os_index="{}" pci_busid="0:{:x}:{:x}.{}" pci_type="0302 [1:1]">{}</object>'


def machine(objects):
    return ('<topology version="2.0"><object type="Machine" nodeset="0x1"><object type="PU"/><object type="Bridge">' +
            "".join(objects) + "</object></object></topology>")


def function(i, inside=""):
    return OBJECT.format("PCIDev", i, i // 256 % 256, i // 8 % 32, i % 8, inside)


PORT = '<object type="OSDev" name="a" osdev_type="3"/>'
for name, objects in {
        "pairs": [function(i, PORT if i % 2 else "") for i in range(7000)],
        "one": [function(i, PORT) for i in range(6000)],
        "nodes": [OBJECT.format("NUMANode", i, 0, 0, 0, "") for i in range(5000)] + [function(i) for i in range(4000)],
        "ports": ['<object type="OSDev" name="a" osdev_type="3">', *(
            f'<info name="Port{i}State" value="1"/>' for i in range(20_000)), "</object>"]}.items():
    put(f"hwloc-{name}.xml", machine(objects), "gf-topo --import", "gf-topo --table --import")
put("laughs.xml", '<!DOCTYPE topology [<!ENTITY b0 "aaaaaaaaaa">' + "".join(
    f'<!ENTITY b{i + 1} "{f"&b{i};" * 10}">' for i in range(20)) + "]><topology>&b20;</topology>",
    "gf-topo --import hwloc:")
for size in 2**31 - 1, 16777213:
    put(f"astra-{size}.yml", f"topology: [ Ring ]\nnpus_count: [ {size} ]\nbandwidth: [ 1.0 ]\nlatency: [ 1.0 ]\n",
        "gf-topo --import astra-sim:")
put("dimensions.yml", "".join(f"{key}: [ {', '.join([value] * 40_000)} ]\n" for key, value in (
    ("topology", "Ring"), ("npus_count", "2"), ("bandwidth", "1.0"), ("latency", "1.0"))),
    "gf-topo --import astra-sim:")

put("ready.csv", "name,count_elems,ready_s\n" + "".join(f"t{i},1000,{i}\n" for i in range(60_000)),
    "gf-profile --passes forward=1s --import")
put("wide.csv", "x," * 499_000, "gf-profile --import")
put("quote.csv", '"' + "x" * 900_000, "gf-profile --import")
put("kineto.json", {"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 1,
     "tid": 2, "ts": i, "dur": 2 * (7000 - i)} for i in range(7000)]}, "gf-profile --import")
put("gradients.json", {"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1, "tid": 2, "ts": 0, "dur": 99999}] + [
    {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: " + name, "pid": 1, "tid": 2,
     "ts": 9 + 3 * i, "dur": 1} for i, name in enumerate(["AddmmBackward0"] + 6000 * ["torch::autograd::AccumulateGrad"])]},
    "gf-profile --imported params=names.csv --import")
put("names.csv", "name,count_elems\n" + "a,2\n" * 6000 + "b,0\n" * 240_000)

wide = copy.deepcopy(mlp)
wide["layers"][0]["outputs"] = 2_000_000_000
for layers in 4900, 20_000:
    put(f"lstm-{layers}.json", {**mlp, "input": [64], "classes": 4, "layers": [
        {"name": "e", "type": "embedding", "entries": 128, "outputs": 4}] + [
        {"name": f"{i}", "type": "lstm", "outputs": 4} for i in range(layers)]},
        "gf-plan --gpu v100 4x2-1gbe --model", "gf-profile --estimate --flops 1e12 --model")
put("wide.json", wide, "gf-plan topology-most.json --model", "gf-profile --estimate --flops 1e12 --model",
    "gf-train --device cpu --steps 1 --model")
