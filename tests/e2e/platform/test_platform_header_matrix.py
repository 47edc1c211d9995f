"""No header that is missing, empty or repeated may harm the platform (../header_matrix.py)."""
import header_matrix


def test_every_route_survives_every_header_missing_empty_and_repeated(platform, tenant):
    sent, wrong = header_matrix.run(platform, "platform/docs/openapi", tenant=tenant)
    assert not wrong, "\n".join(wrong)
    assert sent > 500
    platform.get("/ready").expect(200)
