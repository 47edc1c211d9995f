"""libqueenclient against a real broker: the examples, as a user runs them."""
import json
import os
import signal
import ssl
import socket
import subprocess
import threading
import time

import pytest

import harness
from harness import REPO, free_port, patience, wait_until

FOLDER = next((f for f in [os.environ.get("QUEEN_EXAMPLES", "")] + [
    os.path.join(REPO, "build", b, "client", "examples") for b in ("release", "debug", "asan")]
    if f and os.path.exists(os.path.join(f, "example_producer"))), None)


def example(name):
    assert FOLDER, "the examples are not built (make, or set QUEEN_EXAMPLES)"
    return os.path.join(FOLDER, "example_" + name)


def produce(url, queue, lines, **kw):
    return subprocess.run([example("producer"), url, queue], input="".join("%s\n" % line for line in lines),
                          capture_output=True, text=True, timeout=60, **kw)


def consume(url, queue, group, idle_ms=400):
    r = subprocess.run([example("consumer"), url, queue, group, str(idle_ms)], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stderr
    return [line.split(" ", 1)[1] for line in r.stdout.splitlines()]


def test_produced_messages_are_consumed_once_and_in_order(broker, queue, group):
    r = produce(broker.url, queue, range(2000))
    assert (r.returncode, r.stdout, r.stderr) == (0, "stored 2000, failed 0\n", "")
    assert consume(broker.url, queue, group) == [str(i) for i in range(2000)]
    assert consume(broker.url, queue, group) == [], "all of it was acknowledged"
    assert consume(broker.url, queue, group + "-2") == [str(i) for i in range(2000)], "another group starts at the beginning"


def test_payloads_arrive_byte_for_byte(broker, queue, group):
    lines = ['{ "a" : 1.10, "a":2 }', '"\\u00e4 é"', "null", "[]", "1e3"]
    assert produce(broker.url, queue, lines).returncode == 0
    assert consume(broker.url, queue, group) == lines


def test_an_invalid_line_is_rejected_and_the_others_are_stored(broker, queue):
    r = produce(broker.url, queue, ["1", "{", "2"])
    assert r.returncode == 0 and r.stdout == "stored 2, failed 0\n"
    assert "the payload is not JSON" in r.stderr


def test_an_interrupted_consumer_gives_everything_back(broker, queue, group):
    """A long poll is open when the signal comes; what is pushed a moment later goes to the next consumer at once."""
    p = subprocess.Popen([example("consumer"), broker.url, queue, group], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, text=True)
    try:
        broker.put(queue, [1, 2])
        assert [p.stdout.readline(), p.stdout.readline()] == ["Default 1\n", "Default 2\n"]
        begin = time.monotonic()
        p.send_signal(signal.SIGTERM)
        assert p.wait(10) == 0
        assert time.monotonic() - begin < patience(1)
    finally:
        p.kill()
        p.wait()
    broker.put(queue, [3])
    assert [m["data"] for m in broker.take(queue, consumerGroup=group, batch=10, wait="true", timeout=3000)] == [3]


def test_an_unreachable_server_is_one_line_of_error(queue):
    r = subprocess.run([example("consumer"), "http://127.0.0.1:%d" % free_port(), queue, "g", "100"],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert "connection refused" in r.stderr.splitlines()[0]


def test_a_producer_outlives_its_broker(make_broker, queue):
    """The broker is killed in the middle and comes back on the same port: every line is stored, once."""
    b = make_broker()
    p = subprocess.Popen([example("producer"), b.url, queue], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    for i in range(500):
        p.stdin.write("%d\n" % i)
    p.stdin.flush()
    wait_until(lambda: b.take(queue, consumerGroup="watch", batch=1), 10, "the first messages arrive")
    b.kill()
    for i in range(500, 1000):
        p.stdin.write("%d\n" % i)
    p.stdin.flush()
    time.sleep(0.3)
    b.start()
    out, err = p.communicate(timeout=60)
    assert (out, err) == ("stored 1000, failed 0\n", "")
    assert sorted(int(x) for x in consume(b.url, queue, "all")) == list(range(1000))


def test_with_two_servers_one_may_be_away(broker, queue, group):
    urls = "http://127.0.0.1:%d,%s" % (free_port(), broker.url)
    r = produce(urls, queue, range(300))
    assert r.stdout == "stored 300, failed 0\n"
    assert consume(urls, queue, group) == [str(i) for i in range(300)]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Files of a certificate and its key, for localhost and signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def tls_front(broker, certificate):
    """TLS in front of the broker, as a proxy would do it."""
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", free_port()))

    def pump(source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                secure = context.wrap_socket(plain, server_side=True)
            except (ssl.SSLError, OSError):
                plain.close()
                continue
            back = socket.create_connection((broker.host, broker.port))
            for ends in ((secure, back), (back, secure)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield "https://localhost:%d" % listener.getsockname()[1], cert
    listener.close()


def test_the_worker_handles_events_and_hands_its_partitions_over(broker, queue, group):
    broker.configure(queue, partitions=4)
    broker.push([{"queue": queue, "partitionKey": "k%d" % i, "payload": i} for i in range(20)])
    p = subprocess.Popen([example("worker"), broker.url, queue, group, "30"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        while sum(line.startswith("event") for line in lines) < 20:
            lines.append(p.stdout.readline())
        p.send_signal(signal.SIGTERM)
        assert p.wait(10) == 0
    finally:
        p.kill()
        p.wait()
    assert sorted(int(line.split()[2]) for line in lines if line.startswith("event")) == list(range(20))
    owners = broker.get("/api/v1/consumer-groups/%s/queues/%s/owners" % (group, queue)).json["owners"]
    assert {o["owner"] for o in owners} == {None} and sum(o["lag"] for o in owners) == 0


def run_request(url, *args):
    return subprocess.run([example("request"), url] + list(args), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)


class Jobs:
    """The example jobs, with its output as it comes."""

    def __init__(self, broker, queue, group, handlers):
        self.lines = []
        self.process = subprocess.Popen([example("jobs"), broker.url, queue, group, str(handlers)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            word, job = line.split(" ", 1)
            self.lines.append((time.time(), word, json.loads(job)))

    def of(self, word):
        return [(at, job["n"]) for at, w, job in list(self.lines) if w == word]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert (self.process.wait(30), self.process.stderr.read()) == (0, "")


def test_many_handlers_share_one_work_queue(broker, queue, group):
    broker.configure(queue, ordering="none", leaseTime=8)
    due = int(time.time()) + 4
    jobs = [{"n": 0, "ms": 17000},  # longer than the lease
            {"n": 1, "notBefore": due},
            {"n": 2, "bad": True}] + [{"n": n, "ms": 100} for n in range(3, 40)]
    assert produce(broker.url, queue, [json.dumps(j, separators=(",", ":")) for j in jobs]).returncode == 0
    worker = Jobs(broker, queue, group, 8)
    try:
        wait_until(lambda: len(worker.of("done")) >= 40, 60, what="40 jobs")
    finally:
        worker.stop()
    done = worker.of("done")
    assert sorted(n for _, n in done) == list(range(40)), "each job is done once"
    assert done[-1][1] == 0 or done[-1][1] == 1, "the others do not wait for the long job, which is in the same partition"
    # How often it was given back depends on the rounding of seconds.
    assert {n for _, n in worker.of("later")} == {1} and next(at for at, n in done if n == 1) >= due
    assert [l["data"]["n"] for l in broker.get("/api/v1/dlq?queue=" + queue).expect(200).json["messages"]] == [2]
    assert broker.pop(queue, consumerGroup=group, batch=100).status == 204


def test_tls_is_verified(tls_front):
    url, cert = tls_front
    good = run_request(url, "GET", "/health", "--ca", cert)
    assert good.returncode == 0 and json.loads(good.stdout)["status"] == "healthy"
    stranger = run_request(url, "GET", "/health")
    assert stranger.returncode == 1 and "self-signed certificate" in stranger.stderr
    other_name = run_request(url.replace("localhost", "127.0.0.1"), "GET", "/health", "--ca", cert)
    assert other_name.returncode == 1 and "mismatch" in other_name.stderr
    assert run_request(url, "GET", "/health", "--insecure").returncode == 0


def tls_request(certificate, answer, end, *args):
    """One request over TLS to a server that sends these bytes and then ends as end(connection) does.  Returns what the example
    did, and the server name that the client requested."""
    cert, key = certificate
    asked = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.sni_callback = lambda conn, name, ctx: asked.append(name)
    listener = socket.create_server(("127.0.0.1", free_port()))

    def serve():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            secure = context.wrap_socket(plain, server_side=True)
            secure.recv(65536)
            secure.sendall(answer)
            end(secure)

    threading.Thread(target=serve, daemon=True).start()
    try:
        r = run_request("https://localhost:%d" % listener.getsockname()[1], "GET", "/", *args)
    finally:
        listener.close()
    return r, asked


def close_properly(secure):
    secure.unwrap().close()


def cut_off(secure):
    """The TCP connection ends without a TLS close_notify, as an attacker on the path can cause it."""
    os.close(secure.detach())


UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[1,2,3]"


def test_an_answer_without_a_length_is_complete_only_if_tls_was_closed(certificate):
    whole, _ = tls_request(certificate, UNTIL_CLOSED, close_properly, "--ca", certificate[0])
    assert (whole.returncode, whole.stdout) == (0, "[1,2,3]\n")
    cut, _ = tls_request(certificate, UNTIL_CLOSED, cut_off, "--ca", certificate[0])
    assert cut.returncode == 1 and "closed in the middle of an answer" in cut.stderr, (cut.stdout, cut.stderr)


def test_the_server_name_is_sent_with_and_without_verification(certificate):
    for args in (("--ca", certificate[0]), ("--insecure",)):
        r, asked = tls_request(certificate, UNTIL_CLOSED, close_properly, *args)
        assert r.returncode == 0 and asked == ["localhost"], (args, asked, r.stderr)


def test_large_answers_and_bodies_are_compressed_on_request(broker, queue):
    text = json.dumps("x" * 100000)
    body = json.dumps({"items": [{"queue": queue, "payload": "x" * 100000}]})
    assert run_request(broker.url, "POST", "/api/v1/push", "--compress", "--body", body).returncode == 0
    r = run_request(broker.url, "GET", "/api/v1/pop/queue/%s" % queue, "--compress")
    assert json.dumps(json.loads(r.stdout)["messages"][0]["data"]) == text


def test_an_error_of_the_server_is_reported_with_its_text(broker):
    r = run_request(broker.url, "POST", "/api/v1/push", "--body", '{"items": 1}')
    assert r.returncode == 1 and r.stderr == "refused (400): items must be an array\n"
