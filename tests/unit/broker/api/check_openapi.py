#!/usr/bin/python3
"""docs/reference/openapi against the compiled table of routes (dump_routes.c): neither has what the other lacks.

    check_openapi.py DUMP_PROGRAM FILE...
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "tools"))
from embed_openapi import document  # noqa: E402

ACCESS = ["public", "read-only", "read-write", "admin"]


def parameters(doc, item, operation):
    for p in item.get("parameters", []) + operation.get("parameters", []):
        if "$ref" in p:
            p = doc["components"]["parameters"][p["$ref"].rsplit("/", 1)[1]]
        yield p["in"], p["name"]


def main():
    program, *files = sys.argv[1:]
    doc = document(files)
    wrong = []
    compiled = {}
    for line in subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        verb, path, access, *report = line.split("\t")
        compiled[(verb, re.sub(r":(\w+)", r"{\1}", path))] = (ACCESS[int(access)], report)
    documented = {(verb, path) for path, item in doc["paths"].items() for verb in item if verb != "parameters"}
    for verb, path in sorted(set(compiled) - documented):
        wrong.append("not documented: %s %s" % (verb, path))
    for verb, path in sorted(documented - set(compiled)):
        wrong.append("no such route: %s %s" % (verb, path))

    ids = {}
    tags = {t["name"] for t in doc["tags"]}
    for verb, path in sorted(documented & set(compiled)):
        item = doc["paths"][path]
        operation = item[verb]
        access, report = compiled[(verb, path)]
        name = "%s %s" % (verb, path)
        if operation.get("x-access") != access:
            wrong.append("%s: x-access should be %s" % (name, access))
        if not operation.get("operationId") or not operation.get("summary") or not set(operation.get("tags", ["?"])) <= tags:
            wrong.append("%s: needs an operationId, a summary and tags that the document knows" % name)
        if ids.setdefault(operation.get("operationId"), name) != name:
            wrong.append("%s: operationId is that of %s" % (name, ids[operation.get("operationId")]))
        # What a token guards can be refused; the body of a request can be malformed or too large.
        due = {"401", "403", "default"} if access != "public" else set()
        due |= {"400", "413", "415"} if "requestBody" in operation else set()
        if due - set(operation["responses"]):
            wrong.append("%s: answers %s are missing" % (name, sorted(due - set(operation["responses"]))))
        found = list(parameters(doc, item, operation))
        if sorted(n for where, n in found if where == "path") != sorted(re.findall(r"{(\w+)}", path)):
            wrong.append("%s: path parameters differ" % name)
        if report and report[0] == "report":
            body, query = report[1], report[2:]
            told = sorted(n for where, n in found if where == "query")
            if told != sorted(query):
                wrong.append("%s: takes the query parameters %s, %s are documented" % (name, sorted(query), told))
            if (body == "must") != bool(operation.get("requestBody", {}).get("required")):
                wrong.append("%s: body is %s" % (name, body))
    print("\n".join(wrong) or "%d routes" % len(compiled))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
