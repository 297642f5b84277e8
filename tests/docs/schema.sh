#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The JSON Schemas that the build makes of records, judged by a validator that is not ours:
# every shipped and every valid document and every example in section 5 of the
# manual passes, and every document that is wrong in structure is refused.
# (tests/unit/test_stream.c shows with the same files that our own readers agree.)
set -u
cd "$(dirname "$0")/../.." || exit 1
python=/usr/bin/python3
"$python" -c 'import jsonschema' 2> /dev/null || {
	echo "python3-jsonschema is not installed"
	exit 77
}
export SCHEMAS=${BUILD:-build}/schema
exec "$python" -W ignore - << 'PYTHON'
import glob, json, os, re, sys
import jsonschema

schemas = {}
for path in sorted(glob.glob("" + os.environ["SCHEMAS"] + "/*.schema.json")):
    with open(path) as f:
        schemas[os.path.basename(path)] = json.load(f)
failures = 0


def complain(text):
    global failures
    failures += 1
    print(text)


validators = {}
for name, schema in schemas.items():
    jsonschema.Draft202012Validator.check_schema(schema)
    resolver = jsonschema.RefResolver(name, schema, store=schemas)
    validators[name.split(".")[0]] = jsonschema.Draft202012Validator(
        schema, resolver=resolver)
if sorted(validators) != ["gf-checkpoint", "gf-model", "gf-plan", "gf-profile",
                          "gf-topology", "gf-training"]:
    complain("want a schema per format, got %s" % list(validators))


def validator_for(document):
    return isinstance(document, dict) and validators.get(document.get("format"))


good = glob.glob("tests/data/valid/*.json")
for folder in ("topologies", "models", "profiles", "plans", "training",
               "examples"):
    good += glob.glob("share/%s/*.json" % folder)
documents = []
for path in sorted(good):
    with open(path) as f:
        documents.append((path, json.load(f)))
for name in sorted(validators):
    path = "%s/man/%s.5" % (os.path.dirname(os.environ["SCHEMAS"]), name)
    with open(path) as f:
        blocks = re.findall(r"^\.Bd -literal\n(\{.*?)^\.Ed$", f.read(),
                            re.M | re.S)
    if not blocks:
        complain("%s: want an example" % path)
    documents += [(path, json.loads(block)) for block in blocks]
# what the facts of selections say of plans, with the other members of a plan that has none
with open("tests/data/valid/plan-pair.json") as f:
    pair = json.load(f)
entries = []
for path in sorted(glob.glob("tests/entries/selection/*.json")):
    with open(path) as f:
        entries.append((path, json.load(f)))
documents += [(path, {**pair, **plan}) for path, facts in entries for plan in facts.get("accepted", [])]
for path, document in documents:
    validator = validator_for(document)
    if not validator:
        complain("%s: want a format of ours" % path)
        continue
    for error in validator.iter_errors(document):
        complain("%s: /%s: %s" % (
            path, "/".join(map(str, error.absolute_path)), error.message[:200]))

bad = []
for path in sorted(glob.glob("tests/data/invalid/structure-*.json")):
    with open(path) as f:
        bad.append((path, json.load(f)))
bad += [(path, {**pair, **row["plan"]}) for path, facts in entries
        for row in facts.get("refused", []) if row.get("structure")]
for path, document in bad:
    validator = validator_for(document)
    if validator and validator.is_valid(document):
        complain("%s: want it refused by its schema" % path)
if len(documents) < 15 or len(bad) < 20:
    complain("only %d valid and %d invalid documents" % (len(documents), len(bad)))
print("%d valid and %d invalid documents, %d failures"
      % (len(documents), len(bad), failures))
sys.exit(failures > 0)
PYTHON
