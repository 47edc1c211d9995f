"""One filter, three meanings in SQL, and what it means on paper: all four are the same, for any filter over any data."""
import random

import naive
from segment_rig import Tenant, ask, rig  # noqa: F401

SEED = 7
TREES = 120


def catalogue(rig):
    status, answer = ask(rig.platform, "GET", "/api/v1/segments/attributes")
    assert status == 200
    return answer


def uuids(tenant, tree, path, limit=50):
    found, after = [], 0
    while after is not None:
        page = tenant.expect(200, "POST", "/segments/preview", {"filter": tree, "path": path, "limit": limit, "after": after})
        assert page["path"] == path
        found += [c["customer"] for c in page["customers"]]
        after = page["next"]
    assert len(found) == len(set(found))
    return set(found)


def test_all_paths_agree_with_a_naive_evaluation(rig):  # noqa: F811
    tenant = Tenant(rig, "paths")
    now = tenant.sql("select now()")[0][0].astimezone(naive.UTC)
    tables = naive.generate(SEED, 120, now)
    tenant.write(tables)
    tenant.build()
    people = naive.People(tables, now)
    everything = catalogue(rig)
    r = random.Random(SEED)
    cutting = 0

    # every attribute at least once, then trees of them
    leaves = []
    for a in everything["attributes"]:
        leaves.append(naive.random_leaf(r, {**everything, "attributes": [a]}, people))
    for i, tree in enumerate(leaves + [naive.random_tree(r, everything, people) for _ in range(TREES)]):
        expected = people.inside(tree)
        cutting += 0 < len(expected) < len(people.known)
        for path in ("live", "views", "fallback"):
            status, answer = tenant.ask("POST", "/segments/count", {"filter": tree, "path": path, "maxAgeMs": 0})
            if status == 409 and path != "fallback":
                continue  # free text, or more than read models remember
            assert (status, answer.get("count"), answer.get("path")) == (200, len(expected), path), (tree, answer)
        if i % 10 == 0:
            assert uuids(tenant, tree, "fallback") == expected, tree
            status, answer = tenant.ask("POST", "/segments/preview", {"filter": tree, "path": "live", "limit": 1000})
            assert status == 409 or {c["customer"] for c in answer["customers"]} == expected, tree
        if i % 15 == 0:
            who = r.choice(sorted(people.known))
            told = tenant.expect(200, "POST", "/segments/explain", {"filter": tree, "customer": who})
            assert (told["inSegment"], told["inWriteModel"]) == (people.holds(who, tree),) * 2, (tree, told)
            for leaf in told["filters"]:
                verdict = people.passes(who, leaf["filter"])
                assert (leaf["verdict"], leaf["writeModel"]["verdict"]) == (verdict, verdict), (leaf, who)
    assert cutting > (len(leaves) + TREES) / 2  # the questions were worth asking
