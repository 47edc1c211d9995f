"""A tenant's database with random data, and the expected contents of its read models, computed in Python."""
import datetime
import decimal
import os
import random
import uuid
from collections import Counter

import sqlcore

TENANT_SQL = os.path.join(sqlcore.REPO, "platform", "sql", "tenant")
MODELS = ("customer_attributes", "customer_transactions")
CENT = decimal.Decimal("0.01")
UTC = datetime.timezone.utc


def load(conn):
    sqlcore.load(conn, TENANT_SQL, "crm")


class Writer:
    """Random changes of a tenant's data, each batch one transaction that ends in telling the read models."""

    def __init__(self, conn, seed, customers):
        self.conn, self.random, self.customers = conn, random.Random(seed), customers
        self.rows = {"subscription_account": [], "wallet_account": [], "package_account": []}

    def moment(self):
        return datetime.datetime(2026, 11, 1, tzinfo=UTC) - datetime.timedelta(seconds=self.random.randrange(600 * 86400))

    def money(self):
        return decimal.Decimal(self.random.randrange(1, 20000)) / 100

    def maybe(self, value):
        return value if self.random.random() < 0.9 else None

    def batch(self, n):
        """Reports changed tables and customers as ingestion does; every third time, as people do, only that something changed."""
        of = {k: [] for k in ("customer", "subscription", "wallet", "package", "transaction", "visit", "purchase", "delete", "new")}
        with self.conn.cursor() as cur:
            for _ in range(n):
                customer = self.random.choice(self.customers)
                kind = self.random.choice(("customer", "customer", "subscription", "wallet", "package", "transaction",
                                           "transaction", "visit", "purchase", "delete"))
                if kind == "delete" and self.random.random() < 0.7:
                    kind = "transaction"
                of[kind].append(customer)
                if getattr(self, "_" + kind)(cur, customer):
                    of["new"].append(customer)
            (self._tell_whole if self.random.random() < 0.3 else self._tell_parts)(cur, of)
        self.conn.commit()

    def _tell_whole(self, cur, of):
        attributes = any(of[k] for k in ("customer", "subscription", "wallet", "package", "delete"))
        transactions = any(of[k] for k in ("transaction", "visit", "purchase", "delete"))
        cur.execute("select crm.changed(%s::uuid[], %s, %s)", (list(set(sum(of.values(), []))), attributes, transactions))

    def _tell_parts(self, cur, of):
        cur.execute("select crm.changed_attributes(%s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[])",
                    [of[k] for k in ("delete", "customer", "subscription", "wallet", "package")])
        cur.execute("select crm.changed_transactions(%s::uuid[] || crm.stale_copies(%s::uuid[]), %s::uuid[], %s::uuid[], %s::uuid[])",
                    [of["delete"] + of["new"], of["subscription"], of["transaction"], of["visit"], of["purchase"]])

    def _customer(self, cur, c):
        r = self.random
        cur.execute("""insert into crm.customer (customer_uuid, first_name, email, phone, city, birth_date, tags, created_at, updated_at)
            values (%s, %s, %s, %s, %s, %s, %s, %s, now())
            on conflict (customer_uuid) do update set first_name = excluded.first_name, email = excluded.email,
            phone = excluded.phone, city = excluded.city, birth_date = excluded.birth_date, tags = excluded.tags
            returning xmax = 0""",
                    (c, self.maybe("N%d" % r.randrange(99)), self.maybe("a@b"), self.maybe(""), self.maybe("Rome"),
                     self.maybe(datetime.date(1960 + r.randrange(40), 1 + r.randrange(12), 1 + r.randrange(28))),
                     r.sample(["vip", "new", "lost"], r.randrange(4)), self.moment()))
        return cur.fetchone()[0]

    def _account(self, table, c):
        """The id of a row of this customer: one that is there, or a new one."""
        mine = [i for i, owner in self.rows[table] if owner == c]
        if mine and self.random.random() < 0.5:
            return self.random.choice(mine)
        self.rows[table].append((str(uuid.UUID(int=self.random.getrandbits(128))), c))
        return self.rows[table][-1][0]

    def _upsert(self, cur, table, c, **values):
        values = {"id": self._account(table, c), "customer_id": c, **values, "updated_at": self.moment()}
        cur.execute("insert into crm.%s (%s) values (%s) on conflict (id) do update set %s" % (
            table, ", ".join(values), ", ".join(["%s"] * len(values)),
            ", ".join("%s = excluded.%s" % (k, k) for k in values if k not in ("id", "customer_id"))), list(values.values()))

    def _subscription(self, cur, c):
        r = self.random
        self._upsert(cur, "subscription_account", c, package_id=self.maybe(r.randrange(5)), location_code=self.maybe("L%d" % r.randrange(4)),
                     status=1 + r.randrange(4), price=self.maybe(self.money()), currency=self.maybe("EUR"),
                     billing_period=r.choice(("month", "year")), started_at=self.maybe(self.moment()),
                     next_bill_date=self.maybe(self.moment().date()), cancelled_at=self.maybe(self.moment()))

    def _wallet(self, cur, c):
        r = self.random
        self._upsert(cur, "wallet_account", c, kind=r.choice(("gift", "credit")), balance=self.money() - 50, currency="EUR",
                     status=1 + r.randrange(2), last_topup_at=self.maybe(self.moment()), expires_at=self.maybe(self.moment()))

    def _package(self, cur, c):
        r = self.random
        self._upsert(cur, "package_account", c, package_id=r.randrange(5), location_code=self.maybe("L%d" % r.randrange(4)),
                     status=1 + r.randrange(3), total_units=10, remaining_units=self.maybe(r.randrange(11)),
                     price=self.maybe(self.money()), purchased_at=self.maybe(self.moment()), expires_at=self.maybe(self.moment()))

    def _insert(self, cur, table, **values):
        values = {"id": str(uuid.UUID(int=self.random.getrandbits(128))), **values}
        cur.execute("insert into crm.%s (%s) values (%s)" % (table, ", ".join(values), ", ".join(["%s"] * len(values))),
                    list(values.values()))

    def _transaction(self, cur, c):
        r = self.random
        self._insert(cur, "transaction_log", customer_id=c, location_code=self.maybe("L%d" % r.randrange(4)),
                     kind=r.choice(("sale", "sale", "sale", "refund")), payment_method=self.maybe(r.choice(("card", "cash"))),
                     amount=self.money(), discount=self.maybe(self.money()), tip=self.maybe(decimal.Decimal(0)), created_at=self.moment())

    def _visit(self, cur, c):
        r = self.random
        self._insert(cur, "visit_log", customer_id=c, location_code=self.maybe("L%d" % r.randrange(4)),
                     service=self.maybe("S%d" % r.randrange(3)), duration_minutes=self.maybe(r.randrange(90)),
                     rating=self.maybe(1 + r.randrange(5)), visited_at=self.moment())

    def _purchase(self, cur, c):
        r = self.random
        self._insert(cur, "purchase_log", customer_id=c, product_id=self.maybe(r.randrange(9)), category=self.maybe("C%d" % r.randrange(3)),
                     location_code=self.maybe("L%d" % r.randrange(4)), quantity=self.maybe(1 + r.randrange(3)), amount=self.money(),
                     purchased_at=self.moment())

    def _delete(self, cur, c):
        for table in ("subscription_account", "wallet_account", "package_account", "transaction_log", "visit_log", "purchase_log"):
            cur.execute("delete from crm.%s where customer_id = %%s" % table, (c,))
        cur.execute("delete from crm.customer where customer_uuid = %s", (c,))
        for table in self.rows:
            self.rows[table] = [(i, owner) for i, owner in self.rows[table] if owner != c]


# --- the same in Python ---------------------------------------------------------------------------------------------

def _set(rows, column, only=lambda r: True):
    return sorted({r[column] for r in rows if r[column] is not None and only(r)})


def _sum(rows, column, only=lambda r: True):
    return sum((r[column] for r in rows if r[column] is not None and only(r)), 0)


def _some(rows, column, what, only=lambda r: True):
    values = [r[column] for r in rows if r[column] is not None and only(r)]
    return what(values) if values else None


def _mean(values, digits="0.01"):
    return (sum(map(decimal.Decimal, values)) / len(values)).quantize(decimal.Decimal(digits), decimal.ROUND_HALF_UP)


def _newest(rows, column):
    return sorted(rows, key=lambda r: (r[column], uuid.UUID(str(r["id"])).bytes), reverse=True)


def _favourite(rows, column):
    values = Counter(r[column] for r in rows if r[column] is not None)
    return min(values, key=lambda v: (-values[v], v)) if values else None


def _days(rows, column):
    return [r[column].astimezone(UTC).date() for r in _newest(rows, column)][:10] or []


def attributes(c, subscriptions, wallets, packages):
    active, due = (lambda r: r["status"] == 1), (lambda r: r["status"] in (1, 3))
    return {
        "first_name": c["first_name"], "city": c["city"], "tags": c["tags"], "has_email": bool(c["email"]), "has_phone": bool(c["phone"]),
        "birthday": c["birth_date"] and c["birth_date"].month * 100 + c["birth_date"].day,
        "is_active_subscriber": any(map(active, subscriptions)), "subscription_count": len(subscriptions),
        "active_subscription_count": sum(map(active, subscriptions)),
        "paused_subscription_count": sum(r["status"] == 2 for r in subscriptions),
        "past_due_subscription_count": sum(r["status"] == 3 for r in subscriptions),
        "cancelled_subscription_count": sum(r["status"] == 4 for r in subscriptions),
        "location_codes": _set(subscriptions, "location_code"), "package_ids": _set(subscriptions, "package_id"),
        "active_location_codes": _set(subscriptions, "location_code", active), "active_package_ids": _set(subscriptions, "package_id", active),
        "billing_periods": _set(subscriptions, "billing_period"), "subscription_currencies": _set(subscriptions, "currency"),
        "active_subscription_price": _sum(subscriptions, "price", active), "highest_subscription_price": _some(subscriptions, "price", max),
        "average_subscription_price": _some(subscriptions, "price", _mean), "first_subscribed_at": _some(subscriptions, "started_at", min),
        "last_subscribed_at": _some(subscriptions, "started_at", max), "next_bill_date": _some(subscriptions, "next_bill_date", min, due),
        "last_cancelled_at": _some(subscriptions, "cancelled_at", max),
        "wallet_count": len(wallets), "active_wallet_count": sum(map(active, wallets)),
        "frozen_wallet_count": sum(r["status"] == 2 for r in wallets), "wallet_balance": _sum(wallets, "balance"),
        "active_wallet_balance": _sum(wallets, "balance", active), "highest_wallet_balance": _some(wallets, "balance", max),
        "lowest_wallet_balance": _some(wallets, "balance", min), "wallet_kinds": _set(wallets, "kind"),
        "wallet_currencies": _set(wallets, "currency"), "last_topup_at": _some(wallets, "last_topup_at", max),
        "wallet_expires_at": _some(wallets, "expires_at", min, lambda r: r["balance"] > 0),
        "package_count": len(packages), "active_package_count": sum(map(active, packages)),
        "used_up_package_count": sum(r["status"] == 2 for r in packages), "expired_package_count": sum(r["status"] == 3 for r in packages),
        "package_units": _sum(packages, "total_units"), "package_units_left": _sum(packages, "remaining_units", active),
        "package_spend": _sum(packages, "price"), "average_package_price": _some(packages, "price", _mean),
        "bought_package_ids": _set(packages, "package_id"), "active_bought_package_ids": _set(packages, "package_id", active),
        "package_location_codes": _set(packages, "location_code"), "first_package_at": _some(packages, "purchased_at", min),
        "last_package_at": _some(packages, "purchased_at", max),
        "package_expires_at": _some(packages, "expires_at", min, lambda r: active(r) and (r["remaining_units"] or 0) > 0),
    }


def transactions(c, subscriptions, log, visits, purchases):
    sale, refund = (lambda r: r["kind"] == "sale"), (lambda r: r["kind"] == "refund")
    last, last_visit, last_purchase = _newest(log, "created_at")[:1], _newest(visits, "visited_at")[:1], _newest(purchases, "purchased_at")[:1]

    def of(row, column):
        return row[0][column] if row else None
    return {
        "is_active_subscriber": any(r["status"] == 1 for r in subscriptions), "few_location_codes": _set(subscriptions, "location_code"),
        "transaction_count": len(log), "sale_count": sum(map(sale, log)), "refund_count": sum(map(refund, log)),
        "discounted_sale_count": sum(sale(r) and (r["discount"] or 0) > 0 for r in log),
        "tipped_sale_count": sum(sale(r) and (r["tip"] or 0) > 0 for r in log),
        "total_spent": _sum(log, "amount", sale), "total_refunded": _sum(log, "amount", refund),
        "net_spent": _sum(log, "amount", sale) - _sum(log, "amount", refund), "total_discount": _sum(log, "discount", sale),
        "total_tip": _sum(log, "tip", sale), "average_sale": _some(log, "amount", _mean, sale), "largest_sale": _some(log, "amount", max, sale),
        "smallest_sale": _some(log, "amount", min, sale), "first_transaction_at": _some(log, "created_at", min),
        "last_transaction_at": _some(log, "created_at", max), "last_sale_at": _some(log, "created_at", max, sale),
        "last_refund_at": _some(log, "created_at", max, refund), "last_transaction_location": of(last, "location_code"),
        "last_payment_method": of(last, "payment_method"), "transaction_locations": _set(log, "location_code"),
        "payment_methods": _set(log, "payment_method"), "last_transaction_days": _days(log, "created_at"),
        "third_last_transaction_on": (_days(log, "created_at") + [None] * 3)[2],
        "visit_count": len(visits), "rated_visit_count": sum(r["rating"] is not None for r in visits),
        "average_rating": _some(visits, "rating", _mean), "lowest_rating": _some(visits, "rating", min), "last_rating": of(last_visit, "rating"),
        "visit_minutes": _sum(visits, "duration_minutes"),
        "average_visit_minutes": _some(visits, "duration_minutes", lambda v: _mean(v, "0.1")),
        "first_visit_at": _some(visits, "visited_at", min), "last_visit_at": _some(visits, "visited_at", max),
        "last_visit_location": of(last_visit, "location_code"), "last_service": of(last_visit, "service"),
        "favourite_location": _favourite(visits, "location_code"), "favourite_service": _favourite(visits, "service"),
        "visit_locations": _set(visits, "location_code"), "services": _set(visits, "service"), "last_visit_days": _days(visits, "visited_at"),
        "purchase_count": len(purchases), "purchased_units": _sum(purchases, "quantity"), "purchase_spend": _sum(purchases, "amount"),
        "average_purchase": _some(purchases, "amount", _mean), "largest_purchase": _some(purchases, "amount", max),
        "first_purchase_at": _some(purchases, "purchased_at", min), "last_purchase_at": _some(purchases, "purchased_at", max),
        "last_product_id": of(last_purchase, "product_id"), "last_category": of(last_purchase, "category"),
        "favourite_category": _favourite(purchases, "category"), "product_ids": _set(purchases, "product_id"),
        "purchase_categories": _set(purchases, "category"), "purchase_locations": _set(purchases, "location_code"),
        "last_purchase_days": _days(purchases, "purchased_at"),
    }
