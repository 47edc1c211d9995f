"""A collector of OpenTelemetry traces that keeps what it gets."""
import http.server
import json
import threading

import harness


class Collector:
    """Listens on self.port. status: of its answers; hold: an Event that answers wait for, or None."""

    def __init__(self, port=None, status=200, hold=None):
        self.port = port or harness.free_port()
        self.status, self.hold = status, hold
        self.requests = []  # (path, headers, body)
        self.lock = threading.Lock()

    def __enter__(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.hold:
                    collector.hold.wait()
                with collector.lock:
                    collector.requests.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def spans(self):
        with self.lock:
            return [span for _, _, body in self.requests for resource in body["resourceSpans"]
                    for scope in resource["scopeSpans"] for span in scope["spans"]]

    def wait_for(self, name, n=1):
        """The first n spans of that name."""
        def probe():
            found = [s for s in self.spans() if s["name"] == name]
            return found[:n] if len(found) >= n else None
        return harness.wait_until(probe, 20, "%d spans %s" % (n, name))


def attributes(span):
    return {a["key"]: list(a["value"].values())[0] for a in span["attributes"]}
