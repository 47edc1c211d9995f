"""Events made at random, and what a tenant's tables must be after them: computed one event after the other, the slow and simple way."""
import random
import uuid
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

SUBSCRIPTION = ["active", "paused", "past_due", "cancelled"]
WALLET = ["active", "frozen"]
PACKAGE = ["active", "used_up", "expired"]
TABLES = ["customer", "subscription_account", "wallet_account", "package_account", "transaction_log", "visit_log", "purchase_log"]
CUSTOMER_TEXTS = ["first_name", "last_name", "email", "phone", "gender", "city", "postal_code", "country", "language", "source",
                  "home_location", "note"]


def money(rng, low=0, high=50000):
    return rng.randrange(low, high) / 100


class Maker:
    """Random events of one tenant, in an order that makes sense of nothing: the model has to cope with that, too."""

    def __init__(self, tenant, seed, customers=20):
        self.tenant, self.rng = tenant, random.Random("%s-%s" % (tenant, seed))
        self.customers = [self.uuid() for _ in range(customers)]
        # The events of an account share a partition, so it stays with one customer.
        self.accounts = {kind: {c: [self.uuid() for _ in range(2)] for c in self.customers} for kind in ("s", "w", "p")}
        self.now = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=13)

    def uuid(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def time(self):
        """Of the last days, in no order."""
        return (self.now + timedelta(milliseconds=self.rng.randrange(10 ** 9))).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def maybe(self, data, **values):
        for name, value in values.items():
            if self.rng.random() < 0.7:
                data[name] = value if self.rng.random() < 0.9 else None
        return data

    def event(self, kind=None):
        r = self.rng
        c = r.choice(self.customers)
        kind = kind or r.choices(["customer.upserted", "customer.patched", "customer.deleted", "subscription.changed", "wallet.changed", "wallet.adjusted", "package.changed",
                                  "transaction.recorded", "visit.recorded", "purchase.recorded"], [10, 6, 1, 8, 5, 15, 8, 25, 15, 13])[0]
        data = {"customer_id": c}
        if kind in ("customer.upserted", "customer.patched"):
            self.maybe(data, birth_date="19%02d-0%d-1%d" % (r.randrange(100), r.randrange(1, 10), r.randrange(10)),
                       tags=r.sample(["vip", "new", "Ünïcode", "a,b", "{}", "\"q\""], r.randrange(4)), email_opt_in=r.random() < 0.5, sms_opt_in=True, is_blocked=False,
                       **{t: r.choice(["Ann", "Bob \\ \"x\"", "O'Hara", "", "Zoë 😀", "line\nbreak"]) for t in CUSTOMER_TEXTS})
        elif kind == "subscription.changed":
            data.update(id=r.choice(self.accounts["s"][c]), status=r.choice(SUBSCRIPTION))
            self.maybe(data, package_id=r.randrange(99), location_code="L%d" % r.randrange(9), price=money(r), currency="EUR", billing_period="month",
                       started_at=self.time(), next_bill_date="2026-12-01", cancelled_at=self.time())
        elif kind == "wallet.changed":
            data.update(id=r.choice(self.accounts["w"][c]), status=r.choice(WALLET), balance=money(r, -1000))
            self.maybe(data, kind="gift", currency="EUR", last_topup_at=self.time(), expires_at=self.time())
        elif kind == "wallet.adjusted":
            data.update(id=r.choice(self.accounts["w"][c]), delta=money(r, -20000, 20000))
        elif kind == "package.changed":
            data.update(id=r.choice(self.accounts["p"][c]), status=r.choice(PACKAGE))
            self.maybe(data, package_id=r.randrange(99), location_code="L1", total_units=10, remaining_units=r.randrange(11), price=money(r),
                       purchased_at=self.time(), expires_at=self.time())
        elif kind == "transaction.recorded":
            data.update(id=self.uuid(), kind=r.choice(["sale", "refund"]), amount=money(r))
            self.maybe(data, location_code="L2", payment_method="card", discount=money(r), tip=money(r))
        elif kind == "visit.recorded":
            data.update(id=self.uuid())
            self.maybe(data, location_code="L3", service="cut", duration_minutes=r.randrange(200), rating=r.randrange(1, 6))
        elif kind == "purchase.recorded":
            data.update(id=self.uuid(), amount=money(r, -5000))
            self.maybe(data, product_id=r.randrange(1000), category="hair", location_code="L4", quantity=r.randrange(5))
        return {"tenant": self.tenant, "id": self.uuid(), "type": kind, "at": self.time(), "data": data}


def parse_time(text):
    return text and datetime.fromisoformat(text.replace("Z", "+00:00"))


def parse_date(text):
    return text and date.fromisoformat(text)


def cents(value):
    return None if value is None else Decimal(str(value)).quantize(Decimal("0.01"))


class Model:
    """The tables of one tenant."""

    def __init__(self):
        self.tables = {t: {} for t in TABLES[:4]}
        self.logs = {t: [] for t in TABLES[4:]}
        self.seen = set()

    def apply(self, e):
        if e["id"] in self.seen:
            return
        self.seen.add(e["id"])
        getattr(self, e["type"].replace(".", "_"))(e["data"], parse_time(e["at"]))

    def is_late(self, table, key, at):
        """A newer event has written the row."""
        old = self.tables[table].get(key)
        return old is not None and at < old["updated_at"]

    def customer_patched(self, d, at):
        old = self.tables["customer"].get(d["customer_id"], {})
        self.customer_upserted({**{k: str(v) if k == "birth_date" and v else v for k, v in old.items()}, **d}, at)

    def customer_upserted(self, d, at):
        if self.is_late("customer", d["customer_id"], at):
            return
        old = self.tables["customer"].get(d["customer_id"])
        self.tables["customer"][d["customer_id"]] = {
            **{t: d.get(t) for t in CUSTOMER_TEXTS}, "customer_uuid": d["customer_id"], "birth_date": parse_date(d.get("birth_date")),
            "tags": d.get("tags") or [], **{b: bool(d.get(b)) for b in ("email_opt_in", "sms_opt_in", "is_blocked")},
            "created_at": old["created_at"] if old else at, "updated_at": at}

    def customer_deleted(self, d, at):
        c = d["customer_id"]
        self.tables["customer"].pop(c, None)
        for t in TABLES[1:4]:
            self.tables[t] = {k: r for k, r in self.tables[t].items() if r["customer_id"] != c}
        for t in self.logs:
            self.logs[t] = [r for r in self.logs[t] if r["customer_id"] != c]

    def account(self, table, d, at, words, times, **more):
        if self.is_late(table, d["id"], at) and "status" in self.tables[table][d["id"]]:
            return
        row = {k: v for k, v in d.items()}
        row.update({t: parse_time(d.get(t)) for t in times}, status=words.index(d["status"]) + 1, updated_at=at, **more)
        self.tables[table][d["id"]] = row

    def subscription_changed(self, d, at):
        self.account("subscription_account", d, at, SUBSCRIPTION, ["started_at", "cancelled_at"], price=cents(d.get("price")),
                     next_bill_date=parse_date(d.get("next_bill_date")))

    def wallet_changed(self, d, at):
        self.account("wallet_account", d, at, WALLET, ["last_topup_at", "expires_at"], balance=cents(d["balance"]))

    def wallet_adjusted(self, d, at):
        row = self.tables["wallet_account"].setdefault(d["id"], {"id": d["id"], "balance": Decimal("0.00"), "updated_at": at})
        if "status" not in row:
            row["customer_id"], row["updated_at"] = d["customer_id"], max(at, row["updated_at"])
        row["balance"] += cents(d["delta"])
        if cents(d["delta"]) > 0:
            row["last_topup_at"] = max(at, row.get("last_topup_at") or at)

    def package_changed(self, d, at):
        self.account("package_account", d, at, PACKAGE, ["purchased_at", "expires_at"], price=cents(d.get("price")))

    def transaction_recorded(self, d, at):
        self.logs["transaction_log"].append({**d, "created_at": at, **{m: cents(d.get(m)) for m in ("amount", "discount", "tip")}})

    def visit_recorded(self, d, at):
        self.logs["visit_log"].append({**d, "visited_at": at})

    def purchase_recorded(self, d, at):
        self.logs["purchase_log"].append({**d, "purchased_at": at, "amount": cents(d["amount"])})

    def rows(self, table):
        """Rows without what is empty, in an order of their own."""
        rows = self.tables[table].values() if table in self.tables else self.logs[table]
        return sorted((tidy(r) for r in rows), key=repr)


def tidy(row):
    return tuple(sorted((k, str(v) if isinstance(v, uuid.UUID) else v) for k, v in row.items() if v is not None))


def read_rows(cursor, table, schema="crm."):
    """The same of a real table."""
    cursor.execute("select * from %s%s" % (schema, table))
    names = [d[0] for d in cursor.description]
    hidden = {"id"} if table == "customer" else {"previous_customer_id"}
    return sorted((tidy({n: v for n, v in zip(names, row) if n not in hidden}) for row in cursor.fetchall()), key=repr)


def differences(cursor, model, schema="crm."):
    """'' or what is different."""
    out = []
    for table in TABLES:
        have, want = read_rows(cursor, table, schema), model.rows(table)
        if have != want:
            missing, extra = [r for r in want if r not in have], [r for r in have if r not in want]
            out.append("%s: %d rows, should be %d\nmissing %s\nextra %s" % (table, len(have), len(want), missing[:2], extra[:2]))
    return "\n".join(out)


def live_differences(cursor):
    """How many rows of the live read models differ from the write model; None: a model is not built yet."""
    cursor.execute("select count(*) filter (where live_version is not null) from crm.read_model")
    if cursor.fetchone()[0] < 2:
        return None
    cursor.execute("select sum((crm.check_live(model, null)).differing) from crm.read_model")
    return cursor.fetchone()[0]
