"""Every documented route with each header missing, empty and repeated.

The routes come from the OpenAPI document, which a unit test compares with the route table. The headers come from the
sources: every name that the server looks up. A new route or a new header is covered without a change here.
"""
import glob
import json
import os
import re
import socket

import contract

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# llhttp and the connection code read these by themselves.
OF_THE_PARSER = {"authorization", "host", "connection", "content-length", "transfer-encoding", "upgrade", "expect"}
# A change to one of these may end the connection, so it gets a connection of its own.
ENDS_THE_CONNECTION = OF_THE_PARSER | {"content-encoding"}
VALUES = {
    "host": "h", "connection": "keep-alive", "upgrade": "h2c", "expect": "100-continue",
    "content-encoding": "identity", "accept-encoding": "gzip;q=0.5, identity", "accept": "application/cloudevents+json",
    "content-type": "application/json; charset=utf-8", "x-request-id": "matrix-1", "authorization": "Bearer a.b.c",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b", "if-none-match": '"x"',
    "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/matrix", "ce-type": "test",
}
# Valid bodies of these would start a migration or stop the traffic of the whole server.
WITHOUT_EXAMPLE = re.compile("migration|maintenance")


def names_in_sources():
    """Headers that some part of the server looks up."""
    found = set()
    for path in [p for top in ("lib", "broker/src", "platform/src") for p in glob.glob(os.path.join(REPO, top, "**", "*.c"), recursive=True)]:
        with open(path) as f:
            text = f.read()
        found |= {n.lower() for n in re.findall(r'http_req_header\([^;{}]*?SPAN\("([\w-]+)"\)', text)}
        if path.endswith("http/parser.c"):
            found |= {n.lower() for n in re.findall(r'str_eq_nocase\(name, SPAN\("([\w-]+)"\)\)', text)}
    return found


def headers():
    return sorted(names_in_sources() | OF_THE_PARSER | {"ce-id", "ce-source", "ce-type"})


def example_of(operation, book):
    content = contract.resolve(operation.get("requestBody", {}), book).get("content", {})
    for kind in content.values():
        if "example" in kind:
            return kind["example"]
    return {}


def routes(book="docs/reference/openapi", **params):
    """(method, path, body) of every operation; params fill the path, everything else is called x."""
    for template, operations in sorted(contract.load(book)["paths"].items()):
        for method, operation in sorted(operations.items()):
            if method not in ("get", "post", "put", "patch", "delete"):
                continue
            known = {} if method == "delete" else params
            path = re.sub(r"\{(\w+)\}", lambda m: known.get(m.group(1), "x"), template)
            body = {} if WITHOUT_EXAMPLE.search(template) else example_of(operation, book)
            yield method.upper(), path, b"" if method == "get" else json.dumps(body).encode()


def request(method, path, body, lines):
    head = "".join("%s: %s\r\n" % line for line in lines)
    return ("%s %s HTTP/1.1\r\n%s\r\n" % (method, path, head)).encode() + body


def variants(method, path, body):
    """(what was done, the request, whether it needs a connection of its own)."""
    full = {name: VALUES.get(name, "x") for name in headers()}
    del full["transfer-encoding"], full["upgrade"], full["expect"]  # added one at a time below
    full["content-length"] = str(len(body))
    for event in (False, True):  # a CloudEvent in binary mode takes another way through a push
        lines = {k: v for k, v in full.items() if event or not k.startswith("ce-")}
        for name in sorted(lines if event is False else (n for n in lines if n.startswith("ce-") or n == "content-type")):
            alone = name in ENDS_THE_CONNECTION
            others = [(k, v) for k, v in lines.items() if k != name]
            yield "no " + name, request(method, path, body, others), alone
            yield "empty " + name, request(method, path, body, others + [(name, "")]), alone
            yield "repeated " + name, request(method, path, body, others + [(name, lines[name])] * 2), alone
    for name in ("transfer-encoding", "upgrade", "expect"):
        for value in ("", VALUES.get(name, "chunked")):
            lines = [(k, v) for k, v in full.items() if not k.startswith("ce-")]
            yield "%s: %s" % (name, value), request(method, path, body, lines + [(name, value)]), True
            yield "%s: %s twice" % (name, value), request(method, path, body, lines + [(name, value)] * 2), True


def talk(server, data):
    """The statuses of all answers until the server closes, or until nothing more can come."""
    with socket.create_connection((server.host, server.port), timeout=60) as s:
        s.sendall(data)
        said = b""
        while True:
            try:
                piece = s.recv(1 << 16)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return [int(x) for x in re.findall(rb"HTTP/1\.1 (\d{3}) ", said)], said
            said += piece


def run(server, book="docs/reference/openapi", **params):
    """Sends all of it; a sentence about every answer that is missing or a server error."""
    last = b"GET /live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    wrong, sent = [], 0
    for method, path, body in routes(book, **params):
        together = []
        for what, data, alone in variants(method, path, body):
            sent += 1
            if not alone:
                together.append(data)
                continue
            statuses, said = talk(server, data + last)
            if not statuses or any(s >= 500 and s != 503 for s in statuses):
                wrong.append("%s %s with %s: %s %r" % (method, path, what, statuses, said[:300]))
        statuses, said = talk(server, b"".join(together) + last)
        if len(statuses) != len(together) + 1 or any(s >= 500 and s != 503 for s in statuses):
            wrong.append("%s %s: %d requests, answers %s" % (method, path, len(together) + 1, statuses))
        if not server.alive:
            wrong.append("the process ended after %s %s" % (method, path))
            break
    return sent, wrong
