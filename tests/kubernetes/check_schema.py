#!/usr/bin/python3
"""Checks what kustomize renders of deploy/kubernetes against the types of the Kubernetes API: unknown or missing members, wrong types.

  check_schema.py MODELS    the folder dist/gen/models of the npm package @kubernetes/client-node

Needs kubectl 1.27 or newer, no cluster. Kinds of Prometheus and KEDA are not in the API; tests/e2e/broker/test_kubernetes.py checks them.
"""
import glob
import json
import os
import re
import subprocess
import sys

import yaml

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERSIONS = {"v1": "V1", "apps/v1": "V1", "policy/v1": "V1", "networking.k8s.io/v1": "V1", "autoscaling/v2": "V2"}
FOREIGN = {"ServiceMonitor", "ScaledObject"}
QUANTITY = re.compile(r"^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")


def members_of(models, name):
    """{member: type} of a class, or None."""
    path = os.path.join(models, name + ".js")
    if not os.path.exists(path):
        return None
    with open(path) as f:
        found = re.search(r"\.attributeTypeMap = (\[.*?\n\]|\[\]);", f.read(), re.S)
    return {a["baseName"]: a["type"] for a in json.loads(found.group(1))}


def check(models, value, kind, where):
    """The mistakes of a value that must be of this type."""
    element = re.fullmatch(r"Array<(.*)>", kind)
    by_key = re.fullmatch(r"\{ \[key: string\]: (.*); \}", kind)
    if element:
        if not isinstance(value, list):
            return ["%s must be a list" % where]
        return [m for i, v in enumerate(value) for m in check(models, v, element.group(1), "%s[%d]" % (where, i))]
    if by_key:
        if not isinstance(value, dict):
            return ["%s must be an object" % where]
        if where.endswith((".requests", ".limits")):
            return ["%s.%s is not a quantity" % (where, k) for k, v in value.items() if not QUANTITY.match(str(v))]
        return [m for k, v in value.items() for m in check(models, v, by_key.group(1), where + "." + k)]
    plain = {"string": str, "number": (int, float), "boolean": bool, "IntOrString": (int, str)}.get(kind)
    if plain:
        good = isinstance(value, plain) and (kind == "boolean" or not isinstance(value, bool))
        return [] if good else ["%s must be a %s, not %r" % (where, kind, value)]
    if kind in ("any", "object"):
        return []
    members = members_of(models, kind)
    if members is None:
        return ["%s has the unknown type %s" % (where, kind)]
    if not isinstance(value, dict):
        return ["%s must be an object" % where]
    wrong = ["%s has no member %s" % (where, k) for k in value if k not in members]
    return wrong + [m for k, v in value.items() if k in members for m in check(models, v, members[k], where + "." + k)]


def main():
    models, wrong, checked = sys.argv[1], [], 0
    for path in sorted(glob.glob(os.path.join(REPO, "deploy/kubernetes/*/kustomization.yaml"))):
        folder = os.path.dirname(path)
        rendered = list(yaml.safe_load_all(subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=True).stdout))
        with open(os.path.join(folder, "cpu.yaml") if os.path.basename(folder) == "processors" else os.devnull) as f:
            rendered += [d for d in yaml.safe_load_all(f) if d]  # the alternative to backlog.yaml
        for d in rendered:
            where = "%s: %s %s" % (os.path.basename(folder), d["kind"], d["metadata"]["name"])
            if d["kind"] in FOREIGN:
                continue
            if d["apiVersion"] not in VERSIONS:
                wrong.append("%s: unknown apiVersion %s" % (where, d["apiVersion"]))
                continue
            checked += 1
            wrong += check(models, d, VERSIONS[d["apiVersion"]] + d["kind"], where)
    print("\n".join(wrong) or "%d manifests are valid" % checked)
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
