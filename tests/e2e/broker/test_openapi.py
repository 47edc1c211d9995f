"""The document at /openapi.json.  contract.py compares the answers with it at the end of every session."""
import re

import contract


def test_the_document_is_served_to_everyone(broker):
    r = broker.get("/openapi.json").expect(200)
    doc = r.json
    assert doc["openapi"].startswith("3.1") and doc["info"]["title"] == "Queen"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", doc["info"]["version"])
    assert doc["info"]["version"] == broker.get("/health").json["version"]
    assert set(doc["paths"]) == set(contract.load()["paths"])


def test_every_reference_leads_somewhere(broker):
    doc = broker.get("/openapi.json").json

    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                target = doc
                for part in node["$ref"][2:].split("/"):
                    target = target[part]
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)
    walk(doc)


def contents(node, where=""):
    """(where, media type object) of all bodies in the document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "content" and isinstance(value, dict):
                for kind, content in value.items():
                    yield "%s %s" % (where, kind), content
            else:
                yield from contents(value, where + "/" + key)


def test_every_example_matches_its_schema():
    seen = 0
    for where, content in contents(contract.load()):
        if "example" not in content:
            assert not where.endswith("application/json"), "%s has no example" % where
            continue
        seen += 1
        assert contract.misfit(content["schema"], content["example"]) is None, where
    assert seen > 100


def test_a_wrong_answer_would_be_noticed():
    key, good = ("get", "/live", 200), b'{"status":"live"}'
    assert contract.check(key, ("/live", "application/json", None, good)) is None
    for bad in (b'{"status":1}', b"{}", b'{"status":"live","more":1}', b"[]"):
        assert contract.check(key, ("/live", "application/json", None, bad))
    for schema, bad in (("Uuid", "6F0D1F5E"), ("Time", "yesterday"), ("MaybeTime", 1), ("Count", -1), ("Count", 1.5)):
        assert contract.misfit({"$ref": "#/components/schemas/" + schema}, bad)
    assert contract.check(("get", "/live", 202), ("/live", "application/json", None, good)) == "status 202 is not documented"
    assert contract.check(key, ("/live", "text/html", None, good)) == "content type 'text/html' is not documented"
