"""JSON web tokens for tests."""
import base64
import hashlib
import hmac
import json
import time

SECRET = "a secret of the tests, long enough for a hash"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(claims=None, secret=SECRET, header=None, sign=None, **more):
    """A token; sign(bytes) makes another signature than HS256."""
    head = {"alg": "HS256", "typ": "JWT", **(header or {})}
    body = {"sub": "tester", "role": "admin", "exp": int(time.time()) + 600} if claims is None else claims
    text = "%s.%s" % (b64(json.dumps(head).encode()), b64(json.dumps({**body, **more}).encode()))
    if sign is None:
        def sign(data):
            return hmac.new(secret.encode(), data, hashlib.sha256).digest()
    return text + "." + b64(sign(text.encode()))


def bearer(t):
    return {"Authorization": "Bearer " + t}
