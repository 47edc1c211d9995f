"""Every route of the platform x identity x defect (../../support/access_matrix.py)."""
import json
import subprocess

import harness
from access_matrix import Matrix, Site


def test_every_route_with_every_identity_and_every_defect(make_platform, tmp_path):
    site = Site(tmp_path, harness.free_port())
    path = str(tmp_path / "admin.key")
    key = json.loads(subprocess.run([harness.BIN, "init", path], check=True, capture_output=True, text=True).stdout)["key"]
    p = make_platform(QUEEN_ADMIN_KEY_FILE=path, **site.env)
    matrix = Matrix(p, site, "platform/docs/openapi", key)
    sent, wrong = matrix.run()
    assert not wrong, "%d of %d\n%s" % (len(wrong), sent, "\n".join(wrong[:40]))
    assert len(matrix.routes) > 20 and sent > 80 * len(matrix.routes)
