"""A platform process, and everything around it that events need."""
import json
import urllib.error
import urllib.request

import psycopg2

import process


class Platform(process.Platform):
    """A platform that takes events in, with short pauses for those that are held."""

    def __init__(self, pg, queen_url, port=None, database="platform", **env):
        super().__init__({"PLATFORM_PG_HOST": pg.host, "PLATFORM_PG_PORT": pg.port, "PLATFORM_PG_USER": pg.user, "PLATFORM_PG_PASSWORD": "x",
                          "PLATFORM_PG_DB": database, "QUEEN_URL": queen_url, "PLATFORM_HELD_BASE_MS": 200, "PLATFORM_HELD_CAP_MS": 1000, **env},
                         port=port)

    def ask(self, method, path, body=None, timeout=30):
        """(status, JSON), also of an answer that is an error."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as r:
                return r.status, json.load(r)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)

    def send(self, tenant, events):
        status, answer = self.ask("POST", "/api/v1/tenants/%s/events" % tenant, events)
        assert status == 202 and answer["refused"] == 0, answer
        return answer

    def held(self):
        status, answer = self.ask("GET", "/api/v1/events/held")
        assert status == 200, answer
        return {t["tenant"]: t for t in answer["tenants"]}

    def numbers(self):
        return self.ask("GET", "/metrics")[1]["events"]


def tenant_cursor(pg, tenant):
    connection = psycopg2.connect(host=pg.host, port=pg.port, user=pg.user, dbname="tenant_" + tenant)
    connection.autocommit = True
    return connection.cursor()
