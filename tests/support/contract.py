"""Compares every answer in the tests with docs/reference/openapi.

The harness hands over each answer; the first few per route and status are kept, and checked when the session ends. Objects may
have only the members that the document names, unless it has `additionalProperties: true`.
"""
import glob
import json
import os
import re
import sys
import threading
from urllib.parse import urlsplit

import jsonschema

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPO, "tools"))
from embed_openapi import document  # noqa: E402

KEPT = 50  # samples per route and status

formats = jsonschema.FormatChecker(formats=())


@formats.checks("uuid")
def is_uuid(text):
    return not isinstance(text, str) or bool(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text))


@formats.checks("date-time")
def is_time(text):
    return not isinstance(text, str) or bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", text))


_lock = threading.Lock()
_samples = {}  # (method, template, status, book) -> [(path, content type, body)]
_books = {}  # folder -> (document, templates): the broker's, and the platform's


def book(name):
    if name not in _books:
        doc = document(glob.glob(os.path.join(REPO, name, "*.yaml")))
        close(doc)
        # Literal segments win over parameters, as in lib/http/route.c.
        templates = sorted(((re.compile("^" + re.sub(r"\\{\w+\\}", "[^/]+", re.escape(t)) + "$"), t) for t in doc["paths"]),
                           key=lambda x: [s.startswith("{") for s in x[1].split("/")])
        _books[name] = doc, templates
    return _books[name]


def load(name="docs/reference/openapi"):
    return book(name)[0]


def close(node):
    """Objects with named members have no others."""
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict) and node.get("type") == "object":
            node.setdefault("additionalProperties", False)
        for value in node.values():
            close(value)
    elif isinstance(node, list):
        for value in node:
            close(value)


def template_of(path, name="docs/reference/openapi"):
    for pattern, template in book(name)[1]:
        if pattern.match(path):
            return template
    return None


def record(method, target, status, headers, body, name="docs/reference/openapi"):
    template = template_of(urlsplit(target).path, name)
    verb = "get" if method == "HEAD" else method.lower()
    if template is None or verb not in load(name)["paths"][template]:
        return  # 404 and 405 have tests of their own
    key = (verb, template, status, name)
    with _lock:
        kept = _samples.setdefault(key, [])
        if len(kept) < KEPT:
            kept.append((target, headers.get("content-type", ""), headers.get("content-encoding"), body if method != "HEAD" else None))


def resolve(node, name="docs/reference/openapi"):
    while "$ref" in node:
        target = load(name)
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        node = target
    return node


def check(key, sample):
    """None, or what is wrong."""
    verb, template, status, name = (*key, "docs/reference/openapi")[:4]
    target, content_type, coding, body = sample
    responses = load(name)["paths"][template][verb]["responses"]
    response = responses.get(str(status)) or (responses.get("default") if status >= 400 else None)
    if response is None:
        return "status %d is not documented" % status
    content = resolve(response, name).get("content", {})
    if body is None or coding:
        return None
    if not body:
        return None if not content or status >= 400 and status == 204 else "no body"
    kind = content_type.split(";")[0].strip()
    if kind not in content:
        return "content type %r is not documented" % kind
    if not kind.endswith("json"):
        return None
    try:
        value = json.loads(body)
    except ValueError as e:
        return "no JSON: %s in %r" % (e, body)
    return misfit(content[kind].get("schema", {}), value, name)


def misfit(schema, value, name="docs/reference/openapi"):
    """None, or where and how the value differs from the schema."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": load(name)["components"], **schema}
    validator = jsonschema.Draft202012Validator(schema, format_checker=formats)
    errors = sorted(validator.iter_errors(value), key=lambda e: list(map(str, e.path)))
    if errors:
        e = jsonschema.exceptions.best_match(errors[:1])
        return "at /%s: %s" % ("/".join(map(str, e.path)), e.message[:300])
    return None


def verdict():
    """Sentences about all answers that are not as documented."""
    wrong = []
    for key in sorted(_samples):
        for sample in _samples[key]:
            fault = check(key, sample)
            if fault:
                wrong.append("%s %s -> %d: %s\n    %s" % (key[0].upper(), key[1], key[2], fault, sample[0]))
                break
    return wrong


def seen():
    return set(_samples)
