"""platform/docs/events/*.json and the rules in C agree: the files are the output of the rules, and of many events, valid and invalid, both give
the same verdict.

    test_schemas.py PRINT_SCHEMAS CHECK_EVENTS platform/docs/events
"""
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from datetime import date, datetime, timedelta
from decimal import Decimal

import jsonschema

PRINT, CHECK, DOCS = sys.argv[1:4]
random.seed(7)


def load(path):
    with open(path) as f:
        return json.load(f, parse_float=Decimal)


def number(text):
    """Exact; 5.0 is an integer in JSON Schema, but not for the validator if it is a Decimal."""
    d = Decimal(text)
    return int(d) if d == d.to_integral_value() else d


class Raw(float):
    """A number that is written as it stands here."""
    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __repr__(self):
        return self.text


def dump(value):
    if isinstance(value, dict):
        return "{%s}" % ",".join("%s:%s" % (json.dumps(k), dump(v)) for k, v in value.items())
    if isinstance(value, list):
        return "[%s]" % ",".join(dump(v) for v in value)
    return value.text if isinstance(value, Raw) else json.dumps(value)


UUID = "0190c2f0-5b7e-7000-8A11-2b3c4d5e6f70"
TIMES = ["2026-11-16T04:05:06Z", "1900-01-01 00:00+15:59", "2199-12-31t23:59:59,999999999z", "2026-02-28T10:00:00.5-0730", "2024-02-29T00:00+01",
         "1899-12-31T00:00:00Z", "2200-01-01T00:00:00Z", "2026-11-16T04:05:06", "2026-13-01T00:00:00Z", "2026-11-16T24:00:00Z", "", "now",
         "2026-11-16T04:05:60Z", "2026-11-16T04:05:06.Z", "2026-11-16T04:05:06+16:00", "2026-11-16T04:05:06+01:", "2026-11-16"]
DATES = ["2026-11-16", "1900-01-01", "2199-12-31", "1899-12-31", "2200-01-01", "2026-00-10", "2026-1-1", "2026-11-16T00:00Z", "2026-04-31", "2023-02-29"]
NUMBERS = [Raw(t) for t in ("0", "1", "5", "5.0", "50e-1", "6", "-1", "0.01", "0.001", "-0.01", "2147483647", "2147483648", "9999999999.99", "10000000000",
                            "999999999999.99", "1000000000000.00", "-999999999999.99", "1.005", "1e3", "1E-2", "1e-3", "100000", "100001", "1000001", "123456.78")]
WORDS = ["active", "paused", "past_due", "cancelled", "frozen", "used_up", "expired", "sale", "refund", "Active", ""]
ODD = [None, True, False, [], {}, ["a"], [1], ["x" * 101], ["ü" * 100], ["t"] * 64, ["t"] * 65, "x" * 60, "x" * 61, "ü" * 200, "x" * 201, "\U0001f600" * 30, "x" * 4001,
       UUID, UUID.lower(), UUID[:-1], UUID + "0", "\"\\\u0007"]
EVERYTHING = TIMES + DATES + NUMBERS + WORDS + ODD


def good(schema):
    """A value that the schema of a member takes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if "pattern" in schema:
        return UUID if "{8}" in schema["pattern"] else DATES[0] if schema.get("format") == "date" else TIMES[0]
    return {"string": "text", "integer": 1, "number": Raw("12.5"), "boolean": True, "array": ["a"]}[kind]


def event(schema, optional):
    data = schema["properties"]["data"]
    return {"tenant": "acme", "id": UUID, "type": schema["title"], "at": TIMES[0],
            "data": {k: good(v) for k, v in data["properties"].items() if k in data["required"] or optional}}


def variants(schema):
    for optional in (True, False):
        whole = event(schema, optional)
        yield whole
        for member in whole:
            e = copy.deepcopy(whole)
            del e[member]
            yield e
            for value in random.sample(EVERYTHING, 12) + (TIMES if member == "at" else []):
                if member not in ("type", "data"):
                    yield {**whole, member: value}
        yield {**whole, "trace": "of others"}
        for member in schema["properties"]["data"]["properties"]:
            for value in EVERYTHING:
                yield {**whole, "data": {**whole["data"], member: value}}
            yield {**whole, "data": {k: v for k, v in whole["data"].items() if k != member}}
        yield {**whole, "data": {**whole["data"], "customerId": UUID}}


def is_in_range(text):
    """JSON Schema has no zones: a time must be from 1900 to 2199 in UTC."""
    m = re.fullmatch(r"(.{10})[ tT](\d\d):(\d\d).*?([+-])(\d\d):?(\d\d)?", text)
    if not m:
        return True  # a date, or a time in UTC
    offset = timedelta(hours=int(m[5]), minutes=int(m[6] or 0)) * (1 if m[4] == "+" else -1)
    utc = datetime.fromisoformat("%s %s:%s" % m.group(1, 2, 3)) - offset
    return 1900 <= utc.year <= 2199


def in_calendar(schema, e):
    """JSON Schema has no calendar: days that do not exist are refused all the same."""
    members = schema["properties"]["data"]["properties"]
    days = [e["data"].get(name) for name, m in members.items() if "(19|20|21)" in m.get("pattern", "")]
    for value in [e["at"]] + [d for d in days if d is not None]:
        try:
            date.fromisoformat(value[:10])
        except ValueError:
            return False
        if not is_in_range(value):
            return False
    return True


class Schemas(unittest.TestCase):
    def test_the_files_are_what_the_rules_print(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PRINT, folder], check=True)
            self.assertEqual(sorted(os.listdir(folder)), sorted(f for f in os.listdir(DOCS) if f.endswith(".json")))
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as a, open(os.path.join(DOCS, name)) as b:
                    self.assertEqual(a.read(), b.read(), "%s is stale: run print_schemas platform/docs/events" % name)

    def test_both_give_the_same_verdict(self):
        seen = {True: 0, False: 0}
        for name in sorted(os.listdir(DOCS)):
            schema = load(os.path.join(DOCS, name))
            jsonschema.Draft7Validator.check_schema(json.loads(json.dumps(schema, default=float)))
            validator = jsonschema.Draft7Validator(schema)
            lines = [dump(e) for e in variants(schema)]
            said = subprocess.run([CHECK], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout.splitlines()
            self.assertEqual(len(said), len(lines))
            for line, verdict in zip(lines, said):
                e = json.loads(line, parse_float=number)
                expected = validator.is_valid(e) and in_calendar(schema, e)
                self.assertEqual(verdict == "ok", expected, "%s\n%s" % (line, verdict))
                seen[expected] += 1
        self.assertGreater(min(seen.values()), 1000, seen)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
