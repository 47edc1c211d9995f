"""Every route x identity x defect (access_matrix.py)."""
import ssl

import pytest

import harness
from access_matrix import Matrix, Site
from test_api_keys import Guarded, init


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("matrix"), harness.free_port())


@pytest.mark.one_broker
def test_every_route_with_every_identity_and_every_defect(pg, site, make_broker, tmp_path):
    path, key = init(tmp_path)
    b = make_broker(database=pg.create_database("access_matrix"), NUM_WORKERS=1, QUEEN_ADMIN_KEY_FILE=path, **site.env)
    made = {role: Guarded(b, key).create(role, name=role)["key"] for role in ("read-only", "read-write", "admin")}
    gone = Guarded(b, key).create("admin", name="gone")["key"]
    Guarded(b, key).revoke("gone").expect(200)
    Guarded(b, key).call(key, "POST", "/api/v1/push", {"items": [{"queue": "matrix", "payload": 1}]}).expect(201)
    before = Guarded(b, key).call(key, path="/api/v1/keys").expect(200).json
    matrix = Matrix(b, site, "docs/reference/openapi", key, made)
    matrix.check("defect", [("revoked key", r, r.request(["Authorization: Bearer " + gone])) for r in matrix.routes], matrix.refused)
    sent, wrong = matrix.run()
    assert not wrong, "%d of %d\n%s" % (len(wrong), sent, "\n".join(wrong[:40]))
    assert len(matrix.routes) > 80 and sent > 80 * len(matrix.routes)
    assert [k["name"] for k in Guarded(b, key).call(key, path="/api/v1/keys").expect(200).json["keys"]] == [k["name"] for k in before["keys"]]
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with site.connect(site.outsider) as s:
            s.sendall(b"GET /api/v1/resources/queues HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not s.recv(100):
                raise ConnectionError
