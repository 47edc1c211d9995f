"""The torture can fail: each of these systems has one defect, and a short run must find it.

The test breaks a function in its database, a setting of its PostgreSQL, or the synced data of the disk (power.c). The
product has no switch for any of it.
"""
import os
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nemesis  # noqa: E402
import torture  # noqa: E402


def rewrite(function, old, new):
    """A function of the database with this text replaced."""
    def prepare(cluster):
        ((text,),) = cluster.sql("select pg_get_functiondef(%s::regproc)", function)
        assert text.count(old) == 1, "%s has changed: %r is there %d times" % (function, old, text.count(old))
        cluster.sql(text.replace(old, new))
    return prepare


def commit_later(cluster):
    """PostgreSQL answers commits that it has not written."""
    for setting in ("synchronous_commit = off", "wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'"):
        cluster.sql("alter system set " + setting)
    cluster.sql("select pg_reload_conf()")


def never_sync(cluster):
    """The broker answers `buffered` before anything is on stable storage."""
    for b in cluster.brokers:
        b.terminate()
        b.env["TORTURE_NO_SYNC"] = "1"
        b.start()


@pytest.mark.parametrize("prepare, faults, found", [
    pytest.param(commit_later, "CrashPostgres", {"lost", "redelivered", "torn"}, id="answered before it is committed"),
    pytest.param(never_sync, "CutPower", {"lost"}, id="buffered before it is synced"),
    pytest.param(rewrite("queen.finish", "greatest(st.cursor_seq, st.lease_last)", "st.lease_last + (random() < 0.05)::int"),
                 "TerminateBackends", {"overtaken", "lost"}, id="a cursor that overtakes"),
    pytest.param(rewrite("queen.claim", "when st.lease_until > v_now then 2", "when st.lease_until > v_now + interval '2.95 s' then 2"),
                 "TerminateBackends", {"two leases"}, id="a lease that ends early"),
    pytest.param(rewrite("queen.claim_work", "* interval '1 second', p_lease[g.target]", "* interval '20 milliseconds', p_lease[g.target]"),
                 "TerminateBackends", {"held twice", "lease lost"}, id="holds of a work queue that end early"),
    pytest.param(rewrite("queen.limit_work", "greatest(p_most - leased", "greatest(p_most + 100 - leased"), "TerminateBackends", {"limit"},
                 id="a work queue that exceeds its limit"),
    pytest.param(rewrite("queen.key_partitions", "array[p_key]", "'{}'"), "TerminateBackends", {"key limit"},
                 id="a key whose priorities have limits of their own"),
    pytest.param(rewrite("queen.settle_work", "and h.until <= v_now then", "and h.until <= v_now + interval '2.9 s' then"), "TerminateBackends",
                 {"lease lost"}, id="a work queue that refuses settlements under a lease"),
    pytest.param(rewrite("queen.settle_work", "coalesce(p_after[i], 0) * interval '1 second'", "interval '0'"), "TerminateBackends", {"early"},
                 id="a work queue that forgets delays"),
    pytest.param(rewrite("queen.settle_work", "from unnest(b_seq, b_hold, b_failed, b_until)",
                         "from (select * from unnest(b_seq, b_hold, b_failed, b_until) where random() > 0.1)"), "TerminateBackends", {"lost"},
                 id="a failure that loses its message"),
    pytest.param(rewrite("queen.push_segments", "if v_near is not null then", "if false then"), "KillBroker", {"doubled"},
                 id="duplicates that are not looked for"),
])
def test_a_broken_system_is_caught(prepare, faults, found):
    assert run(prepare, "--only", faults) & found


def test_a_promoted_standby_lacks_commits(monkeypatch):
    """PromoteLagging loses something, and only its Loss excuses that."""
    monkeypatch.setattr(nemesis.PromoteLagging, "loss", property(lambda self: None, lambda self, value: None), raising=False)
    assert run(None, "--standby", "--only", "PromoteLagging") & {"lost", "redelivered", "torn", "doubled"}


def run(prepare, *more):
    """The rules that a short run finds broken."""
    args = torture.arguments(["--minutes", "0.5", "--round", "30", "--seed", "broken", *more])
    folder = tempfile.mkdtemp(prefix="queen-torture-")
    os.chmod(folder, 0o755)  # PostgreSQL is another user
    broken = torture.run(args, folder, prepare)
    shutil.rmtree(folder, ignore_errors=True)
    return broken
