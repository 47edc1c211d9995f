"""Common parts of all clients of a torture run: a broker, a seed, a history to write, and a phase that ends them."""
import http.client
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import Broker, Client, Postgres, uuid7, wait_until  # noqa: E402,F401  others take them from here

# Phases of a round.  In each, some actors end by themselves: producers when their last push is known, consumers when nothing is left.
RUN, STOP_PUSHING, DRAIN, DRAIN_MADE, GIVE_UP = range(5)

ANSWER_TIMEOUT = 6.0  # seconds beyond what a request may take by itself


def raw_id(text):
    return bytes.fromhex(text.replace("-", ""))


class Actor(threading.Thread):
    """One client. It stays with a broker until that fails, then goes to the next."""

    def __init__(self, name, seed, ports, phase, history):
        super().__init__(name=name)
        self.random = random.Random("%s/%s" % (seed, name))
        self.brokers = [Client("127.0.0.1", port) for port in ports]
        self.at = self.random.randrange(len(ports))
        self.shared_phase, self.history = phase, history
        self.t0 = self.t1 = 0.0
        self.broker = self.at  # which one had the last request
        self.error = None

    @property
    def phase(self):
        return self.shared_phase.value

    def run(self):
        try:
            self.work()
        except BaseException as e:  # a mistake of the program, not of the broker: shown when the round ends
            self.error = e
            raise

    def chance(self, probability):
        return self.random.random() < probability

    def call(self, method, path, body=None, patience=0.0):
        """The answer, or None if there is none or the outcome is unknown.  t0, t1 and broker are the times and the server."""
        self.broker = self.at
        self.t0 = time.monotonic()
        try:
            answer = self.brokers[self.at].request(method, path, body, timeout=ANSWER_TIMEOUT + patience)
        except (OSError, http.client.HTTPException):
            answer = None
        self.t1 = time.monotonic()
        if answer is not None and answer.status < 400:
            return answer
        if answer is not None and answer.status < 500 and answer.status not in (404, 408, 429):
            raise AssertionError("%s %s: %r" % (method, path, answer))
        self.brokers[self.at].forget()
        self.at = (self.at + 1) % len(self.brokers)
        time.sleep(self.random.uniform(0.02, 0.2))
        return None
