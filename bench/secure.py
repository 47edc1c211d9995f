#!/usr/bin/python3
"""The cost of security: keys, tokens and TLS.

    bench/secure.py [--seconds 10] [--rounds 3]

64 connections push one message a request, without anything, with an API key, with a token (HS256), with TLS, and with TLS and a key; in turn,
`--rounds` times, the median of each is shown.  Then full handshakes per second, with and without tickets (`openssl s_time`), with a P-256 certificate.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from rig import Rig

import harness
from tokens import SECRET, token

CLIENTS = 64
QUEEN = os.path.join(harness.REPO, "build", "queen")


def certificate(folder):
    cert, key = os.path.join(folder, "tls.pem"), os.path.join(folder, "tls.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return cert, key


def run(rig, seconds, url=None, bearer=None, ca=None):
    args = [QUEEN, "bench", "-w", "push", "-c", str(CLIENTS), "-d", str(seconds), "--quiet", "--json", "-", "--pid", str(rig.broker.process.pid),
            "--url", url or "http://127.0.0.1:%d" % rig.broker.port] + (["--ca-file", ca] if ca else [])
    done = subprocess.run(args, capture_output=True, text=True, env={**os.environ, "QUEEN_TOKEN": bearer or ""})
    if done.returncode != 0:
        sys.exit("queen bench failed: " + done.stderr)
    r = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
    return r["pushPerSecond"], r["pushMs"]["p50"], r["cpuBrokerPerM"]


def handshakes(port, ca, how, seconds):
    done = subprocess.run(["openssl", "s_time", "-connect", "localhost:%d" % port, "-CAfile", ca, how, "-time", str(seconds)],
                          capture_output=True, text=True)
    return float(re.search(r"([0-9.]+) connections in \d+ real seconds", done.stdout.replace("; ", " ")).group(1)) / seconds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cert, key_file = certificate(folder)
        admin = os.path.join(folder, "admin.key")
        bearer = json.loads(subprocess.run([QUEEN, "init", admin], check=True, capture_output=True, text=True).stdout)["key"]
        tls_port = harness.free_port()
        tls = {"QUEEN_TLS_CERT": cert, "QUEEN_TLS_KEY": key_file, "QUEEN_TLS_PORT": str(tls_port)}
        open_rig = Rig(tls)
        guarded = Rig({"QUEEN_ADMIN_KEY_FILE": admin, "JWT_ENABLED": "true", "JWT_SECRET": SECRET, "QUEEN_TLS_PORT": "0"})
        https = "https://localhost:%d" % tls_port
        rows = {"plain HTTP": lambda: run(open_rig, args.seconds), "TLS": lambda: run(open_rig, args.seconds, https, ca=cert),
                "API key": lambda: run(guarded, args.seconds, bearer=bearer), "token (HS256)": lambda: run(guarded, args.seconds, bearer=token())}
        try:
            results = {name: [] for name in rows}
            for _ in range(args.rounds):
                for name, row in rows.items():
                    results[name].append(row())
            print("| %d connections, one message a push | messages/s | p50 ms | CPU of the broker, s per million |" % CLIENTS)
            print("| --- | --- | --- | --- |")
            for name, values in results.items():
                print("| %s | %.0f | %.1f | %.1f |" % (name, *(statistics.median(column) for column in zip(*values))))
            for how, name in (("-new", "full"), ("-reuse", "with tickets")):
                print("handshakes/s, one client, %s: %.0f" % (name, handshakes(tls_port, cert, how, args.seconds)))
        finally:
            open_rig.close()
            guarded.close()


if __name__ == "__main__":
    main()
