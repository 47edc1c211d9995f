"""Segments as a person would work them out with paper: customers and their rows as Python lists, one filter at a time.

The oracle of test_segment_paths.py.  It uses no SQL, read models or compiler. Its value of an
attribute follows the description in platform/docs/segments.md.
"""
import collections
import datetime
import decimal
import random
import uuid

UTC = datetime.timezone.utc
LOCATIONS = ["LOC_A", "LOC_B", "LOC_C", None]


def cents(x, places=2):
    return None if x is None else decimal.Decimal(x).quantize(decimal.Decimal(1).scaleb(-places), decimal.ROUND_HALF_UP)


# ---- data ----

def generate(seed, customers, now):
    """Tables of the write model as lists of dicts.  Times keep clear of the edges of days and windows."""
    r = random.Random(seed)
    tables = collections.defaultdict(list)

    def ago(days):
        day = now.date() - datetime.timedelta(days=r.choice([0, 1, 2, 3, 6, 8, 15, 28, 31, 45, 88, 95, 200, 400][:days]))
        at = datetime.datetime.combine(day, datetime.time(0, 0), UTC) + datetime.timedelta(minutes=r.randrange(5, 1400))
        return min(at, now - datetime.timedelta(minutes=1))

    def maybe(value, chance=0.8):
        return value if r.random() < chance else None

    for n in range(customers):
        who = str(uuid.UUID(int=r.getrandbits(128)))
        tables["customer"].append(dict(
            customer_uuid=who, first_name=maybe("First%d" % (n % 7)), last_name="Last%d" % (n % 11),
            email=r.choice(["c%d@Example.org" % n, "", None]), phone=maybe("+49 %d" % n), gender=r.choice(["female", "male", None]),
            city=r.choice(["Berlin", "Bonn", "bonn", "O'Hara; --", None]), postal_code=maybe("1%04d" % n), country=r.choice(["DE", "AT"]),
            language=maybe("de"), source=r.choice(["web", "app", None]), home_location=r.choice(LOCATIONS),
            note=r.choice(["has an Allergy", "nothing", None]),
            birth_date=maybe(datetime.date(1950 + r.randrange(55), r.randrange(1, 13), r.randrange(1, 28))),
            tags=r.choice([[], ["vip"], ["new", "trial"], ["vip", "new"]]), email_opt_in=r.random() < 0.5, sms_opt_in=r.random() < 0.3,
            is_blocked=r.random() < 0.1, created_at=ago(14), updated_at=ago(3)))
        for _ in range(r.choice([0, 0, 1, 1, 2, 3])):
            tables["subscription_account"].append(dict(
                id=str(uuid.uuid4()), customer_id=who, package_id=maybe(r.randrange(4)), location_code=r.choice(LOCATIONS),
                status=r.choice([1, 1, 2, 3, 4, None]), price=maybe(decimal.Decimal(r.randrange(0, 9000)) / 100), currency=maybe("EUR"),
                billing_period=r.choice(["month", "year", None]), started_at=maybe(ago(14)),
                next_bill_date=maybe(now.date() + datetime.timedelta(days=r.choice([-40, -2, 0, 1, 5, 29, 31, 60]))),
                cancelled_at=maybe(ago(10), 0.3), updated_at=now))
        for _ in range(r.choice([0, 0, 1, 2])):
            tables["wallet_account"].append(dict(
                id=str(uuid.uuid4()), customer_id=who, kind=r.choice(["credit", "gift", None]),
                balance=decimal.Decimal(r.choice([0, 1, 4999, 5000, 5001, 20000, -500])) / 100, currency=maybe("EUR"),
                last_topup_at=maybe(ago(10)), expires_at=maybe(now + datetime.timedelta(days=r.choice([2, 20, 50]), hours=3)),
                status=r.choice([1, 1, 2, None]), updated_at=now))
        for _ in range(r.choice([0, 0, 1, 3])):
            tables["package_account"].append(dict(
                id=str(uuid.uuid4()), customer_id=who, package_id=maybe(r.randrange(5)), location_code=r.choice(LOCATIONS),
                status=r.choice([1, 2, 3, None]), total_units=maybe(10), remaining_units=maybe(r.randrange(11)),
                price=maybe(decimal.Decimal(r.randrange(1, 20000)) / 100), purchased_at=maybe(ago(14)),
                expires_at=maybe(now + datetime.timedelta(days=r.choice([2, 20, 50]), hours=3)), updated_at=now))
        for _ in range(r.choice([0, 0, 1, 2, 4, 13])):
            tables["transaction_log"].append(dict(
                id=str(uuid.uuid4()), customer_id=who, location_code=r.choice(LOCATIONS), kind=r.choice(["sale", "sale", "refund"]),
                payment_method=r.choice(["card", "cash", None]), amount=decimal.Decimal(r.randrange(1, 30000)) / 100,
                discount=maybe(decimal.Decimal(r.choice([0, 5])), 0.3), tip=maybe(decimal.Decimal(2), 0.3), created_at=ago(14)))
        for _ in range(r.choice([0, 0, 1, 2, 5, 12])):
            tables["visit_log"].append(dict(
                id=str(uuid.uuid4()), customer_id=who, location_code=r.choice(LOCATIONS), service=r.choice(["cut", "spa", None]),
                duration_minutes=maybe(r.randrange(10, 90)), rating=maybe(r.randrange(1, 6), 0.4), visited_at=ago(14)))
        for _ in range(r.choice([0, 0, 1, 3, 11])):
            tables["purchase_log"].append(dict(
                id=str(uuid.uuid4()), customer_id=who, product_id=maybe(r.randrange(6)), category=r.choice(["hair", "skin", None]),
                location_code=r.choice(LOCATIONS), quantity=maybe(r.randrange(1, 4)), amount=decimal.Decimal(r.randrange(1, 9000)) / 100,
                purchased_at=ago(14)))
    return tables


# ---- attributes ----

def having(rows, **conditions):
    return [row for row in rows if all(row[k] == v for k, v in conditions.items())]


def values(rows, column):
    return [row[column] for row in rows if row[column] is not None]


def distinct(rows, column):
    return set(values(rows, column))


def average(numbers, places=2):
    return cents(sum(map(decimal.Decimal, numbers)) / len(numbers), places) if numbers else None


def newest(rows, column, at):
    return max(rows, key=lambda row: (row[at], uuid.UUID(row["id"]).bytes))[column] if rows else None


def commonest(texts):
    return min(set(texts), key=lambda t: (-texts.count(t), t)) if texts else None


def attributes_of(customer, mine, today):
    """All values of a customer, by attribute."""
    subs, wallets, packages = mine["subscription_account"], mine["wallet_account"], mine["package_account"]
    log, visits, bought = mine["transaction_log"], mine["visit_log"], mine["purchase_log"]
    sales, refunds = having(log, kind="sale"), having(log, kind="refund")
    born = customer["birth_date"]
    a = {k: v for k, v in customer.items() if k != "customer_uuid"}
    a.update(
        tags=set(customer["tags"]), has_email=bool(customer["email"]), has_phone=bool(customer["phone"]),
        birthday=born and born.month * 100 + born.day,
        age=born and today.year - born.year - ((today.month, today.day) < (born.month, born.day)),
        is_active_subscriber=bool(having(subs, status=1)), subscription_count=len(subs),
        active_subscription_count=len(having(subs, status=1)), paused_subscription_count=len(having(subs, status=2)),
        past_due_subscription_count=len(having(subs, status=3)), cancelled_subscription_count=len(having(subs, status=4)),
        location_codes=distinct(subs, "location_code"), package_ids=distinct(subs, "package_id"),
        active_location_codes=distinct(having(subs, status=1), "location_code"),
        active_package_ids=distinct(having(subs, status=1), "package_id"),
        billing_periods=distinct(subs, "billing_period"), subscription_currencies=distinct(subs, "currency"),
        active_subscription_price=sum(values(having(subs, status=1), "price")),
        highest_subscription_price=max(values(subs, "price"), default=None), average_subscription_price=average(values(subs, "price")),
        first_subscribed_at=min(values(subs, "started_at"), default=None), last_subscribed_at=max(values(subs, "started_at"), default=None),
        next_bill_date=min(values([s for s in subs if s["status"] in (1, 3)], "next_bill_date"), default=None),
        last_cancelled_at=max(values(subs, "cancelled_at"), default=None),
        wallet_count=len(wallets), active_wallet_count=len(having(wallets, status=1)), frozen_wallet_count=len(having(wallets, status=2)),
        wallet_balance=sum(values(wallets, "balance")), active_wallet_balance=sum(values(having(wallets, status=1), "balance")),
        highest_wallet_balance=max(values(wallets, "balance"), default=None),
        lowest_wallet_balance=min(values(wallets, "balance"), default=None),
        wallet_kinds=distinct(wallets, "kind"), wallet_currencies=distinct(wallets, "currency"),
        last_topup_at=max(values(wallets, "last_topup_at"), default=None),
        wallet_expires_at=min(values([w for w in wallets if w["balance"] > 0], "expires_at"), default=None),
        package_count=len(packages), active_package_count=len(having(packages, status=1)),
        used_up_package_count=len(having(packages, status=2)), expired_package_count=len(having(packages, status=3)),
        package_units=sum(values(packages, "total_units")), package_units_left=sum(values(having(packages, status=1), "remaining_units")),
        package_spend=sum(values(packages, "price")), average_package_price=average(values(packages, "price")),
        bought_package_ids=distinct(packages, "package_id"), active_bought_package_ids=distinct(having(packages, status=1), "package_id"),
        package_location_codes=distinct(packages, "location_code"),
        first_package_at=min(values(packages, "purchased_at"), default=None), last_package_at=max(values(packages, "purchased_at"), default=None),
        package_expires_at=min(values([p for p in packages if p["status"] == 1 and (p["remaining_units"] or 0) > 0], "expires_at"), default=None),
        transaction_count=len(log), sale_count=len(sales), refund_count=len(refunds),
        discounted_sale_count=len([s for s in sales if (s["discount"] or 0) > 0]), tipped_sale_count=len([s for s in sales if (s["tip"] or 0) > 0]),
        total_spent=sum(values(sales, "amount")), total_refunded=sum(values(refunds, "amount")),
        net_spent=sum(values(sales, "amount")) - sum(values(refunds, "amount")),
        total_discount=sum(values(sales, "discount")), total_tip=sum(values(sales, "tip")), average_sale=average(values(sales, "amount")),
        largest_sale=max(values(sales, "amount"), default=None), smallest_sale=min(values(sales, "amount"), default=None),
        first_transaction_at=min(values(log, "created_at"), default=None), last_transaction_at=max(values(log, "created_at"), default=None),
        last_sale_at=max(values(sales, "created_at"), default=None), last_refund_at=max(values(refunds, "created_at"), default=None),
        last_transaction_location=newest(log, "location_code", "created_at"), last_payment_method=newest(log, "payment_method", "created_at"),
        transaction_locations=distinct(log, "location_code"), payment_methods=distinct(log, "payment_method"),
        visit_count=len(visits), rated_visit_count=len(values(visits, "rating")), average_rating=average(values(visits, "rating")),
        lowest_rating=min(values(visits, "rating"), default=None),
        last_rating=newest(visits, "rating", "visited_at"),
        visit_minutes=sum(values(visits, "duration_minutes")), average_visit_minutes=average(values(visits, "duration_minutes"), 1),
        first_visit_at=min(values(visits, "visited_at"), default=None), last_visit_at=max(values(visits, "visited_at"), default=None),
        last_visit_location=newest(visits, "location_code", "visited_at"), last_service=newest(visits, "service", "visited_at"),
        favourite_location=commonest(values(visits, "location_code")), favourite_service=commonest(values(visits, "service")),
        visit_locations=distinct(visits, "location_code"), services=distinct(visits, "service"),
        purchase_count=len(bought), purchased_units=sum(values(bought, "quantity")), purchase_spend=sum(values(bought, "amount")),
        average_purchase=average(values(bought, "amount")), largest_purchase=max(values(bought, "amount"), default=None),
        first_purchase_at=min(values(bought, "purchased_at"), default=None), last_purchase_at=max(values(bought, "purchased_at"), default=None),
        last_product_id=newest(bought, "product_id", "purchased_at"), last_category=newest(bought, "category", "purchased_at"),
        favourite_category=commonest(values(bought, "category")), product_ids=distinct(bought, "product_id"),
        purchase_categories=distinct(bought, "category"), purchase_locations=distinct(bought, "location_code"))
    return a


# ---- filters ----

WINDOWED = {"transaction_count": ("transaction_log", "created_at"), "visit_count": ("visit_log", "visited_at"),
            "purchase_count": ("purchase_log", "purchased_at")}


class People:
    """The customers of a tenant, ready for queries."""

    def __init__(self, tables, now):
        self.now, self.today = now, now.date()
        by_customer = collections.defaultdict(lambda: collections.defaultdict(list))
        for table, rows in tables.items():
            for row in rows:
                if table != "customer":
                    by_customer[row["customer_id"]][table].append(row)
        self.rows = {c["customer_uuid"]: by_customer[c["customer_uuid"]] for c in tables["customer"]}
        self.known = {c["customer_uuid"]: attributes_of(c, by_customer[c["customer_uuid"]], self.today) for c in tables["customer"]}

    def inside(self, tree):
        return {who for who in self.known if self.holds(who, tree)}

    def holds(self, who, tree):
        if "and" in tree:
            return all(self.holds(who, t) for t in tree["and"])
        if "or" in tree:
            return any(self.holds(who, t) for t in tree["or"])
        if "not" in tree:
            return not self.holds(who, tree["not"])
        return not tree or self.passes(who, tree)

    def passes(self, who, leaf):
        opposites = {"ne": "eq", "not_in": "in", "is_not_set": "is_set", "not_contains": "contains", "none": "any",
                     "not_in_last_days": "in_last_days"}
        op = leaf["operator"]
        if op in opposites:
            return not self.passes(who, {**leaf, "operator": opposites[op]})
        have = self.known[who][leaf["attribute"]]
        if "withinDays" in leaf:
            table, at = WINDOWED[leaf["attribute"]]
            first = self.today - datetime.timedelta(days=leaf["withinDays"] - 1)
            have = len([row for row in self.rows[who][table] if row[at].date() >= first])
        if op == "is_set":
            return bool(have) if isinstance(have, set) else have is not None
        if have is None:
            return False
        want = leaf["value"]
        if op in ("in_last_days", "in_next_days"):
            now, day = (self.now, datetime.timedelta(days=1)) if isinstance(have, datetime.datetime) else \
                       (self.today, datetime.timedelta(days=1))
            return now - want * day < have <= now if op == "in_last_days" else now <= have < now + want * day
        if op == "any":
            return bool(have & set(want))
        if op == "all":
            return have >= set(want)
        if op in ("contains", "starts_with"):
            return want.lower() in have.lower() if op == "contains" else have.lower().startswith(want.lower())
        if op == "in":
            return have in want
        if op == "between":
            low, high = (comparable(have, w) for w in want)
            return low <= have <= high
        want = comparable(have, want)
        return {"eq": have == want, "gt": op == "gt" and have > want, "gte": op == "gte" and have >= want,
                "lt": op == "lt" and have < want, "lte": op == "lte" and have <= want}[op]


def comparable(have, want):
    if isinstance(have, datetime.datetime):
        return datetime.datetime.fromisoformat(want.replace("Z", "+00:00"))
    if isinstance(have, datetime.date):
        return datetime.date.fromisoformat(want)
    if isinstance(have, decimal.Decimal) or isinstance(want, float):
        return decimal.Decimal(str(want))
    return want


# ---- questions ----

def random_leaf(r, catalogue, people):
    """A filter whose value is likely to cut through the data: somebody's own, or a bit beside it."""
    a = r.choice(catalogue["attributes"])
    op = r.choice(a["operators"])
    kind = next(o["value"] for o in catalogue["operators"] if o["name"] == op)
    leaf = {"attribute": a["name"], "operator": op}
    if kind == "none":
        return leaf
    if kind == "days":
        return {**leaf, "value": r.choice([1, 2, 7, 30, 90, 365])}

    def one():
        mine = r.choice(list(people.known.values()))[a["name"]]
        t = a["type"]
        if t == "boolean":
            return r.random() < 0.5
        if t == "integer":
            return (mine or 0) + r.choice([-1, 0, 0, 1])
        if t == "number":
            return round(float(mine or 0) + r.choice([-0.01, 0, 0, 1]), 2)
        if t == "text":
            text = mine or r.choice(["x", "'; drop table crm.customer; --", "\\", "%", "\u00e9"])
            return text if op not in ("contains", "starts_with") else text[: r.randrange(1, len(text) + 1)] if text else "a"
        if t == "date":
            return (mine or people.today).isoformat()
        return ((mine or people.now) + datetime.timedelta(seconds=r.choice([-3600, 3600]))).strftime("%Y-%m-%dT%H:%M:%SZ")

    if a["type"] in ("texts", "integers"):
        pool = sorted(set().union(*(k[a["name"]] for k in people.known.values()))) or (["x"] if a["type"] == "texts" else [1])
        return {**leaf, "value": [r.choice(pool) for _ in range(r.randrange(1, 4))]}
    leaf["value"] = one() if kind == "one" else sorted([one(), one()]) if kind == "two" else [one() for _ in range(r.randrange(1, 4))]
    if a["name"] in WINDOWED and op in ("gte", "gt", "lt", "lte", "eq", "ne", "between", "in", "not_in") and r.random() < 0.5:
        leaf["withinDays"] = r.choice([1, 2, 7, 30, 90, 365])
    return leaf


def random_tree(r, catalogue, people, depth=0):
    kind = r.random()
    if depth >= 3 or kind < 0.45:
        return random_leaf(r, catalogue, people)
    if kind < 0.6:
        return {"not": random_tree(r, catalogue, people, depth + 1)}
    return {"and" if kind < 0.8 else "or": [random_tree(r, catalogue, people, depth + 1) for _ in range(r.randrange(1, 4))]}
