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


def listed(names):
    return sorted(n for n in names.split(",") if n)


def schema_members(doc, operation):
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = doc["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return sorted(schema.get("properties", {}))


OPERATIONS = ["push", "pop", "read", "read-encrypted", "configure", "configure-storage", "delete", "admin"]


def permission_text(permission):
    """As in the documents: "push, pop: body"; "admin"."""
    target, bits = permission.split(" ")
    names = [name for i, name in enumerate(OPERATIONS) if int(bits) >> i & 1]
    return "%s: %s" % (", ".join(names), target) if names else target


def check_permission(verb, path, access, permission, names, wrong):
    """A route names the permission that a sender with rules needs, and has the parameter that the check reads."""
    target, bits = permission.split(" ")
    query = names[-1].split(",")
    if access != "public" and (target in ("admin", "free")) != (bits == "0"):
        wrong.append("%s %s: target %s with the operations %s" % (verb, path, target, bits))
    if target == "admin" and access not in ("admin", "public") and path not in ADMIN_FOR_RULES:
        wrong.append("%s %s: declare .target and .need" % (verb, path))
    if target == "tenant" and "/:tenant" not in path or target == "path" and "/:queue" not in path or target in ("query",) and "queue" not in query:
        wrong.append("%s %s: target %s without a parameter queue" % (verb, path, target))


# Reports about a process or about all tenants, which a sender with rules cannot read.
ADMIN_FOR_RULES = {"/api/v1/status/buffers", "/api/v1/tenants", "/api/v1/read-models", "/api/v1/pools", "/api/v1/events/held"}


def main():
    program, *files = sys.argv[1:]
    doc = document(files)
    wrong = []
    compiled, needs = {}, {}
    for line in subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        verb, path, access, *names = line.split("\t")
        if names[0] != "?":  # the permission that a sender with rules needs
            permission = names.pop(0)
            needs[(verb, re.sub(r":(\w+)", r"{\1}", path))] = permission
            check_permission(verb, path, ACCESS[int(access)], permission, names, wrong)
        compiled[(verb, re.sub(r":(\w+)", r"{\1}", path))] = (ACCESS[int(access)], *names)
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
        access, body, members, query = compiled[(verb, path)]
        name = "%s %s" % (verb, path)
        if access != "public" and (verb, path) in needs and operation.get("x-permission") != permission_text(needs[(verb, path)]):
            wrong.append("%s: x-permission should be %s" % (name, permission_text(needs[(verb, path)])))
        if operation.get("x-access") != access:
            wrong.append("%s: x-access should be %s" % (name, access))
        if not operation.get("operationId") or not operation.get("summary") or not set(operation.get("tags", ["?"])) <= tags:
            wrong.append("%s: needs an operationId, a summary and tags that the document knows" % name)
        if ids.setdefault(operation.get("operationId"), name) != name:
            wrong.append("%s: operationId is that of %s" % (name, ids[operation.get("operationId")]))
        # A request that needs a token can be refused; the body of a request can be malformed or too large.
        due = {"401", "403", "default"} if access != "public" else set()
        due |= {"400", "413", "415"} if "requestBody" in operation else set()
        if due - set(operation["responses"]):
            wrong.append("%s: answers %s are missing" % (name, sorted(due - set(operation["responses"]))))
        found = list(parameters(doc, item, operation))
        if sorted(n for where, n in found if where == "path") != sorted(re.findall(r"{(\w+)}", path)):
            wrong.append("%s: path parameters differ" % name)
        documented_query = sorted(n for where, n in found if where == "query")
        if documented_query != listed(query):
            wrong.append("%s: takes the query parameters %s, %s are documented" % (name, listed(query), documented_query))
        if body != "?":
            if (body == "must") != bool(operation.get("requestBody", {}).get("required")):
                wrong.append("%s: body is %s" % (name, body))
            if body != "none" and schema_members(doc, operation) != listed(members):
                wrong.append("%s: reads the members %s, %s are documented" % (name, listed(members), schema_members(doc, operation)))
    print("\n".join(wrong) or "%d routes" % len(compiled))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
