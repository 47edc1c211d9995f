"""A broker estimates PostgreSQL's clock for delays that it has to compute itself."""
import os
import time

import harness


def test_a_slow_answer_does_not_move_the_clock(pg):
    """A delay that a broker adds to its estimate, because it buffers the message, is not shortened by a call that took long."""
    name = "clock_%d" % os.getpid()
    pg.create_database(name)
    harness.end(harness.begin({**pg.env(name), "NUM_WORKERS": "1"}))  # creates the tables
    with pg.connect(autocommit=False, database=name) as conn, conn.cursor() as cur:
        cur.execute("lock table queen.worker_metrics in exclusive mode")
        broker = harness.begin({**pg.env(name), "NUM_WORKERS": "1", "METRICS_AGGREGATE_INTERVAL_S": "60", "DB_LOCK_TIMEOUT": "60000"})

        def waits():
            with pg.connect(database=name) as other, other.cursor() as c:
                c.execute("select count(*) from pg_locks where not granted and relation = 'queen.worker_metrics'::regclass")
                return c.fetchone()[0]
        harness.wait_until(waits, 60, "the call that reads the clock waits")
        time.sleep(4)  # it has read PostgreSQL's clock, and answers four seconds later
        cur.execute("select count(*) from queen.worker_metrics")
        before = cur.fetchone()[0]
        conn.commit()
        harness.wait_until(lambda: cur.execute("select count(*) from queen.worker_metrics") or cur.fetchone()[0] > before, 60, "recorded")
        conn.commit()

        harness.wait_until(lambda: broker.post("/api/v1/system/maintenance", {"enabled": True}).json["maintenanceMode"], 20, "maintenance")
        asked = time.time()
        assert broker.push([{"queue": "q", "payload": 1, "delaySeconds": 600}]).expect(201).json[0]["status"] == "buffered"
        broker.post("/api/v1/system/maintenance", {"enabled": False}).expect(200)

        def due():
            conn.commit()
            cur.execute("select extract(epoch from due_at) from queen.scheduled")
            return cur.fetchone()
        at = float(harness.wait_until(due, 60, "the message is stored")[0])
        assert at >= asked + 600 - 0.5
        harness.end(broker, clean_exit=True)
