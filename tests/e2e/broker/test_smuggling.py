"""Requests that two parties could parse differently: each must be rejected, and nothing after it read.

Raw sockets only: a decent client cannot send these."""
import re
import socket

import pytest

POST = b"POST /api/v1/push HTTP/1.1\r\nHost: h\r\n"
# A request hidden behind the ambiguous one; it must never be answered.
HIDDEN = b"GET /health HTTP/1.1\r\nHost: hidden\r\n\r\n"

PROBES = {
    "content length and transfer encoding": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "transfer encoding and content length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two content lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "list of content lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "signed content length": POST + b"Content-Length: +2\r\n\r\n{}",
    "negative content length": POST + b"Content-Length: -2\r\n\r\n{}",
    "hexadecimal content length": POST + b"Content-Length: 0x2\r\n\r\n{}",
    "content length that overflows": POST + b"Content-Length: 18446744073709551618\r\n\r\n{}",
    "empty content length": POST + b"Content-Length:\r\n\r\n",
    "unknown transfer coding": POST + b"Transfer-Encoding: cow\r\n\r\n0\r\n\r\n",
    "coding that only contains chunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked is not the last coding": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "another coding before chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two transfer encodings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "transfer encoding in 1.0": b"POST /api/v1/push HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded transfer encoding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "folded header": POST + b"X: a\r\n\tb\r\nContent-Length: 0\r\n\r\n",
    "space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "bare CR in a header": POST + b"X: a\rContent-Length: 2\r\n\r\n{}",
    "bare LF line ends": b"POST /api/v1/push HTTP/1.1\nHost: h\nContent-Length: 0\n\n",
    "NUL in a header": POST + b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
    "no host": b"POST /api/v1/push HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "two hosts": POST + b"Host: other\r\nContent-Length: 0\r\n\r\n",
    "chunk longer than it says": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "chunk size that is no number": POST + b"Transfer-Encoding: chunked\r\n\r\n2x\r\n{}\r\n0\r\n\r\n",
    "chunk size that overflows": POST + b"Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
    "bare LF after a chunk size": POST + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
    "CR in a chunk extension": POST + b"Transfer-Encoding: chunked\r\n\r\n2;a\rb\r\n{}\r\n0\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "unknown version": b"GET /health HTTP/1.9\r\nHost: h\r\n\r\n",
}


def talk(broker, request, split=False):
    """Everything the server sends until it closes."""
    with socket.create_connection((broker.host, broker.port), timeout=5) as s:
        if split:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(request)):
                try:
                    s.sendall(request[i:i + 1])
                except OSError:
                    break  # refused before its end
        else:
            s.sendall(request)
        said = b""
        while True:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            said += piece
        return said


@pytest.mark.parametrize("split", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("name", PROBES)
def test_ambiguous_request_is_refused_and_ends_the_connection(broker, name, split):
    said = talk(broker, PROBES[name] + HIDDEN, split)
    statuses = re.findall(rb"HTTP/1\.1 (\d{3}) ", said)
    assert len(statuses) == 1, said
    assert statuses[0] in (b"400", b"501", b"505"), said
    assert b"Connection: close" in said
    assert b'{"error":' in said


def test_the_probe_itself_works(broker):
    """Without the trick both requests are answered: the tests above can fail."""
    said = talk(broker, b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n" +
                HIDDEN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert len(re.findall(rb"HTTP/1\.1 200 ", said)) == 2


def test_an_error_does_not_touch_other_connections(broker):
    with socket.create_connection((broker.host, broker.port), timeout=5) as other:
        other.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n")
        talk(broker, PROBES["two hosts"])
        other.sendall(b"\r\n")
        assert other.recv(65536).startswith(b"HTTP/1.1 200")
