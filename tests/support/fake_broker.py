#!/usr/bin/env python3
"""A broker in memory, for testing clients: configure, push, pop and ack of the contract.

It can misbehave on request, so that a client's checks are seen to fail:

    --lose N       every Nth message vanishes after it was accepted
    --repeat N     every Nth message is delivered once more
    --reorder N    every Nth message is put behind its successor
    --fail-push N  every Nth push is answered 500 (and was stored)
    --fail-ack N   every Nth ack entry is refused
    --drop-pop N   every Nth pop that found something loses its connection
    --chunked      answers use chunked encoding
    --close        every answer closes its connection

Prints "listening PORT" when ready.
"""
import argparse
import asyncio
import collections
import itertools
import json
import urllib.parse
import uuid


class Every:
    """True on each Nth call; never for 0."""

    def __init__(self, n):
        self.n, self.i = n, 0

    def __call__(self):
        self.i += 1
        return self.n > 0 and self.i % self.n == 0


class Partition:
    def __init__(self, name):
        self.name, self.id, self.log = name, str(uuid.uuid4()), []
        self.cursor = collections.defaultdict(int)  # group -> next position
        self.lease = {}  # group -> (lease id, position after it)
        self.held = None  # kept back by --reorder


class Broker:
    def __init__(self, args):
        self.queues, self.args = {}, args
        self.lose, self.repeat = Every(args.lose), Every(args.repeat)
        self.reorder, self.fail_push = Every(args.reorder), Every(args.fail_push)
        self.fail_ack, self.drop_pop = Every(args.fail_ack), Every(args.drop_pop)
        self.turn, self.configured = itertools.count(), 0
        self.waiters = collections.defaultdict(set)  # queue -> events

    def partition(self, queue, name):
        parts = self.queues.setdefault(queue, {})
        if name not in parts:
            parts[name] = Partition(name)
        return parts[name]

    def configure(self, body):
        self.queues.setdefault(body["queue"], {})
        self.configured += 1
        return 200, {"configured": True, "queue": body["queue"], "options": body["options"]}

    def store(self, part, item):
        message = (item.get("transactionId") or str(uuid.uuid4()), item.get("payload"))
        if self.lose():
            return
        if part.held is None and self.reorder():
            part.held = message
            return
        part.log.append(message)
        if part.held is not None:
            part.log.append(part.held)
            part.held = None
        if self.repeat():
            part.log.append(message)

    def push(self, body):
        out = []
        for i, item in enumerate(body["items"]):
            part = self.partition(item["queue"], item.get("partition") or "Default")
            self.store(part, item)
            out.append({"index": i, "status": "queued", "transaction_id": item["transactionId"],
                        "message_id": str(uuid.uuid4()), "partition_id": part.id,
                        "trace_id": None, "queueName": item["queue"]})
        for queue in {item["queue"] for item in body["items"]}:
            for event in list(self.waiters[queue]):
                event.set()
        if self.fail_push():
            return 500, {"error": "told to fail"}
        return 201, out

    def take(self, queue, name, query):
        group = query.get("consumerGroup", "__QUEUE_MODE__")
        room, most = int(query.get("batch", 1)), int(query.get("partitions", 1))
        auto, lease = query.get("autoAck") == "true", str(uuid.uuid4())
        parts = list(self.queues.get(queue, {}).values())
        start = next(self.turn) % len(parts) if parts else 0
        messages, claimed = [], 0
        for part in parts[start:] + parts[:start]:
            if (name and part.name != name) or group in part.lease or claimed == most or room == 0:
                continue
            at = part.cursor[group]
            if at == len(part.log) and part.held is not None:  # it has no successor
                part.log.append(part.held)
                part.held = None
            found = part.log[at:at + room]
            if not found:
                continue
            claimed += 1
            room -= len(found)
            if auto:
                part.cursor[group] = at + len(found)
            else:
                part.lease[group] = (lease, at, {tx for tx, _ in found})
            messages += [{"id": str(uuid.uuid4()), "transactionId": tx, "traceId": None,
                          "data": data, "producerSub": None, "partitionId": part.id,
                          "partition": part.name, "leaseId": "" if auto else lease,
                          "consumerGroup": group, "queue": queue, "retryCount": 0}
                         for tx, data in found]
        return messages

    async def pop(self, path, query):
        names = [urllib.parse.unquote(p) for p in path.split("/")]
        queue, name = names[5], names[7] if len(names) > 7 else None
        end = asyncio.get_running_loop().time() + int(query.get("timeout", 30000)) / 1000
        while True:
            messages = self.take(queue, name, query)
            left = end - asyncio.get_running_loop().time()
            if messages:
                return 200, {"success": True, "queue": queue, "messages": messages,
                             "partition": messages[0]["partition"]}
            if query.get("wait") != "true" or left <= 0:
                return 204, None
            event = asyncio.Event()
            self.waiters[queue].add(event)
            try:
                await asyncio.wait_for(event.wait(), left)
            except asyncio.TimeoutError:
                pass
            self.waiters[queue].discard(event)

    def ack(self, body):
        group, out = body.get("consumerGroup", "__QUEUE_MODE__"), []
        by_id = {p.id: (q, p) for q, parts in self.queues.items() for p in parts.values()}
        for i, entry in enumerate(body["acknowledgments"]):
            queue, part = by_id.get(entry["partitionId"], (None, None))
            lease = part.lease.get(group) if part else None
            ok = bool(lease) and lease[0] == entry.get("leaseId")
            if ok and self.fail_ack():
                ok = False
            elif ok:
                lease[2].discard(entry["transactionId"])
                part.cursor[group] = max(part.cursor[group], lease[1] + 1)
                lease = part.lease[group] = (lease[0], lease[1] + 1, lease[2])
                if not lease[2]:
                    del part.lease[group]
                    for event in list(self.waiters[queue]):
                        event.set()
            out.append({"index": i, "transactionId": entry["transactionId"], "success": ok,
                        "error": None if ok else "Invalid or expired lease", "dlq": False})
        return 200, out

    async def answer(self, method, target, body):
        url = urllib.parse.urlsplit(target)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        if url.path == "/health":
            return 200, {"status": "healthy", "database": "connected"}
        if url.path == "/configured":  # not of the contract: how often that was done
            return 200, self.configured
        if url.path.startswith("/api/v1/pop/queue/"):
            return await self.pop(url.path, query)
        routes = {"/api/v1/configure": self.configure, "/api/v1/push": self.push,
                  "/api/v1/ack/batch": self.ack}
        if url.path in routes:
            return routes[url.path](json.loads(body))
        return 404, {"error": "not found"}

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = {k.lower(): v.strip() for k, v in
                           (line.split(":", 1) for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                status, reply = await self.answer(method, target, body)
                if target.startswith("/api/v1/pop") and status == 200 and self.drop_pop():
                    break
                writer.write(self.encode(status, reply))
                await writer.drain()
                if self.args.close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def encode(self, status, reply):
        text = b"" if reply is None else json.dumps(reply).encode()
        head = f"HTTP/1.1 {status} X\r\n"
        if self.args.close:
            head += "Connection: close\r\n"
        if status == 204:
            return (head + "\r\n").encode()
        if self.args.chunked:
            middle = len(text) // 2
            pieces = [p for p in (text[:middle], text[middle:]) if p] + [b""]
            return (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + b"".join(
                b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)
        return (head + f"Content-Length: {len(text)}\r\n\r\n").encode() + text


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    for name in ("lose", "repeat", "reorder", "fail-push", "fail-ack", "drop-pop"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--chunked", action="store_true")
    parser.add_argument("--close", action="store_true")
    args = parser.parse_args()
    server = await asyncio.start_server(Broker(args).serve, "127.0.0.1", args.port,
                                        limit=1 << 26, backlog=1024)
    print("listening", server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


asyncio.run(main())
