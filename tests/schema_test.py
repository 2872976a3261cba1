#!/usr/bin/env python3
"""Holds real reports to docs/report.schema.json, which is made from src/report/wire.h.

The checker knows the words of JSON Schema that the file uses, and fails on any other. A key that
the schema does not have is an error here, though users may meet one in a later version.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
PROGRAM = os.path.abspath(os.environ.get("TENSORDIFF", ROOT / "build/tensordiff"))
SCHEMA = json.loads((ROOT / "docs/report.schema.json").read_text())
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required",
         "items", "enum", "anyOf", "minimum"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "integer": int, "number": (int, float)}


def problems(value, schema, where="report"):
    """Sentences about what in the value is not as the schema says."""
    assert schema.keys() <= KNOWN, f"{where}: {schema.keys() - KNOWN}"
    if "$ref" in schema:
        target = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return problems(value, target, where)
    if "anyOf" in schema:
        tried = [problems(value, each, where) for each in schema["anyOf"]]
        return [] if [] in tried else tried[0]
    if "enum" in schema:
        known = value in schema["enum"]
        return [] if known else [f"{where}: {value!r} is none of {schema['enum']}"]
    kind = TYPES[schema["type"]]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if "minimum" in schema and value < schema["minimum"]:
        return [f"{where}: {value} is less than {schema['minimum']}"]
    found = []
    for i, item in enumerate(value if isinstance(value, list) and "items" in schema else []):
        found += problems(item, schema["items"], f"{where}[{i}]")
    if "properties" not in schema:
        return found
    found += [f"{where}: {key} is missing" for key in schema["required"] if key not in value]
    for key, member in value.items():
        if key in schema["properties"]:
            found += problems(member, schema["properties"][key], f"{where}.{key}")
        else:
            found.append(f"{where}: {key} is not in the schema")
    return found


def report(*arguments):
    ran = subprocess.run([PROGRAM, *arguments, "-o", "report", "--no-config"], cwd=DATA,
                         capture_output=True, text=True, timeout=120)
    return json.loads(ran.stdout)


class Schema(unittest.TestCase):
    def test_real_reports_are_as_it_says(self):
        pair = ["formats/pair_f32_a.pth", "formats/pair_f32_b.pth"]
        with tempfile.TemporaryDirectory() as folder:
            earlier = pathlib.Path(folder) / "earlier.json"
            earlier.write_text(json.dumps(report(*pair, "--epsilon", "0")))
            cases = {
                "a dump with a mistake": ["parity/reference.zip", "parity/constant_scale.tgz"],
                "NaN": ["parity/reference.zip", "parity/nan_rows.tar.gz"],
                "what was tried": ["parity/reference.zip", "parity/nan_rows.tar.gz", "--explain"],
                "identical": [pair[0], pair[0]],
                "shapes alone": [*pair, "--shape-only"],
                "a baseline": [*pair, "--epsilon", "0", "--baseline", str(earlier)],
                "analyses": [*pair, "--memory-analysis", "--change-summary"],
                "one input": ["parity/reference.zip", "--single"],
                "a conversion": ["gguf/port_hf.safetensors", "gguf/port_f16.gguf"],
                "nothing in common": [pair[0], "parity/reference.zip"],
                "hostile": ["formats/malicious_reduce.pt", "formats/malicious_reduce.pt"],
            }
            for name, arguments in cases.items():
                with self.subTest(name):
                    self.assertEqual(problems(report(*arguments), SCHEMA), [])

    def test_it_can_fail(self):
        good = report("formats/pair_f32_a.pth", "formats/pair_f32_b.pth")
        self.assertEqual(problems(good, SCHEMA), [])
        for change in (
            lambda it: it.pop("summary"),
            lambda it: it["summary"].update(verdict="fine"),
            lambda it: it["summary"].update(pairs=-1),
            lambda it: it["pairs"][0].update(extra=1),
            lambda it: it["pairs"][0]["diff"].update(cosine="high"),
            lambda it: it["pairs"][0]["diff"].update(compared=True),
            lambda it: it["pairs"][0]["shape"].append("x"),
            lambda it: it.update(schema="tensordiff.report/1"),
        ):
            bad = json.loads(json.dumps(good))
            change(bad)
            self.assertEqual(len(problems(bad, SCHEMA)), 1, problems(bad, SCHEMA))


if __name__ == "__main__":
    unittest.main()
