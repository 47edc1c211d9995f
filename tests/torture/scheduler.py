"""Pushes messages that are to be delivered later, each after a time of its own."""
import time

from actor import GIVE_UP, RUN
from history import OK, UNKNOWN, Schedule
from producer import Producer

LONGEST_DELAY = 6.0


class Scheduler(Producer):
    """A request is repeated until it is known, like any push: its messages are scheduled once."""

    def work(self):
        while self.phase == RUN:
            partition = self.random.choice(sorted(self.next))
            first, count = self.next[partition], self.random.choice((1, 5, 20))
            self.next[partition] += count
            items = [{**self.item(partition, n), "delaySeconds": round(self.random.uniform(0.1, LONGEST_DELAY), 3)}
                     for n in range(first, first + count)]
            while not self.schedule(partition, first, items) and self.phase < GIVE_UP:
                pass
            time.sleep(count / self.rate)

    def schedule(self, partition, first, items):
        answer = self.call("POST", "/api/v1/push", {"items": items})
        for n, item in enumerate(items, first):
            self.history.add(Schedule("schedule", self.t0, self.t1, self.queue, partition, self.name, n, item["delaySeconds"],
                                      self.broker, UNKNOWN if answer is None else OK))
        return answer is not None
