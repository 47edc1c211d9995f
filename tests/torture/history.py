"""The events seen by the clients of a torture run: one tuple per event, in one file per process.

Times are seconds of CLOCK_MONOTONIC, the same for all processes of the machine: `t0` before a request was sent, `t1` after
its answer was read (or given up). The effect in the database happened between the two. Message ids are 16 bytes.

OUTCOMES
  ok        done, according to the answer
  rejected  not done, according to the answer
  unknown   no answer, or one (429, 5xx) after which it may have been done or not

A message is known by (producer, n), which is its payload. Producers number from 0 in each partition.
"""
import collections
import marshal
import os

OK, REJECTED, UNKNOWN = "ok", "rejected", "unknown"

# One request, or the part of it that goes to one partition: messages first .. first + count - 1 of this producer.
# stored: "queued" (in the database), "buffered" (in the files of `broker`), "" (unknown).  ids: their message ids if queued.
Push = collections.namedtuple("Push", "kind t0 t1 queue partition producer first count broker outcome stored ids")
# A delivery of one partition.  auto: acknowledged on delivery.  messages: [(producer, n, id)].
Pop = collections.namedtuple("Pop", "kind t0 t1 queue partition group broker lease auto messages")
# A pop that got no answer: up to `batch` messages may have been taken.
LostPop = collections.namedtuple("LostPop", "kind t0 t1 queue group broker auto batch")
# An acknowledgement of one partition's messages.  through: the last message that the group has passed if it is done (None: it passes
# nothing).  ends: it ends the lease, or may.
Ack = collections.namedtuple("Ack", "kind t0 t1 queue partition group lease through ends outcome")
Renew = collections.namedtuple("Renew", "kind t0 t1 lease seconds outcome")
# All messages of a lease acknowledged and others pushed, together: sources are their ids, made the (queue, partition, producer, n).
Txn = collections.namedtuple("Txn", "kind t0 t1 queue partition group lease sources made outcome")
# A message that is to be delivered `delay` seconds after its push.
Schedule = collections.namedtuple("Schedule", "kind t0 t1 queue partition producer n delay broker outcome")
# Of a queue whose failures are retried later.  A delivery: [(producer, n, attempt)]; the acknowledgement of each of its messages:
# [(producer, n, attempt, failed, dead)], dead as answered.
Try = collections.namedtuple("Try", "kind t0 t1 queue partition group broker lease messages")
Verdict = collections.namedtuple("Verdict", "kind t0 t1 queue partition group lease messages outcome")
# Of a work queue.  A delivery; and a request that settles messages under its lease: [(id, status, retryAfter, outcome)].  A Renew of one
# message has (lease, id) for its lease.
Take = collections.namedtuple("Take", "kind t0 t1 queue partition group broker lease messages")
Settle = collections.namedtuple("Settle", "kind t0 t1 queue partition group lease messages")
# A fault: its kind, when it began and when it was over.
Fault = collections.namedtuple("Fault", "kind t0 t1 name target")
# The database lost the end of its commits: those after some moment between t0 and t1.
Loss = collections.namedtuple("Loss", "kind t0 t1")


def key_of(partition):
    """The concurrencyKey of a partition of a work queue: "a~p7" has priority 7."""
    return partition[:-3] if partition[-3:-1] == "~p" else partition


KINDS = {"push": Push, "pop": Pop, "lostpop": LostPop, "ack": Ack, "renew": Renew, "txn": Txn, "schedule": Schedule, "try": Try,
         "verdict": Verdict, "take": Take, "settle": Settle,
         "fault": Fault, "loss": Loss}


class Writer:
    """One file; threads of a process may share it."""

    def __init__(self, path):
        self.file = open(path, "wb", buffering=1 << 14)

    def add(self, event):
        self.file.write(marshal.dumps(tuple(event)))  # one call, so that the interpreter's lock keeps it whole

    def close(self):
        self.file.close()


def read(folder):
    """All events of a folder, by the time they began."""
    events = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".history"):
            continue
        path = os.path.join(folder, name)
        size = os.path.getsize(path)
        with open(path, "rb") as f:
            while f.tell() < size:
                row = marshal.load(f)
                events.append(KINDS[row[0]](*row))
    events.sort(key=lambda e: e.t0)
    return events
