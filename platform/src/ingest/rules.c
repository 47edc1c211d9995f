// rules.c: the tables of event types and their fields.
#include "ingest/rules.h"

#include "base/attrs.h"

#define UUID(n)                                         \
    {                                                   \
        .name = n, .kind = FIELD_UUID, .required = true \
    }
#define TEXT(n, max_)                              \
    {                                              \
        .name = n, .kind = FIELD_TEXT, .max = max_ \
    }
#define INT(n, min_, max_)                                     \
    {                                                          \
        .name = n, .kind = FIELD_INT, .min = min_, .max = max_ \
    }
#define MONEY(n, min_, max_)                                     \
    {                                                            \
        .name = n, .kind = FIELD_MONEY, .min = min_, .max = max_ \
    }
#define BOOL(n)                       \
    {                                 \
        .name = n, .kind = FIELD_BOOL \
    }
#define DATE(n)                       \
    {                                 \
        .name = n, .kind = FIELD_DATE \
    }
#define TIME(n)                       \
    {                                 \
        .name = n, .kind = FIELD_TIME \
    }
#define STATUS(n, words)                                                                      \
    {                                                                                         \
        .name = n, .kind = FIELD_CHOICE, .required = true, .choices = words, .numbered = true \
    }

// In hundredths: the ranges of numeric(12,2) and numeric(14,2).
#define PRICE  INT64_C(999999999999)
#define WEALTH INT64_C(99999999999999)

static const char *const subscription_status[] = {"active", "paused", "past_due", "cancelled",
                                                  NULL};
static const char *const wallet_status[] = {"active", "frozen", NULL};
static const char *const package_status[] = {"active", "used_up", "expired", NULL};
static const char *const transaction_kind[] = {"sale", "refund", NULL};

static const struct event_field customer[] = {
    UUID("customer_id"),
    TEXT("first_name", 200),
    TEXT("last_name", 200),
    TEXT("email", 320),
    TEXT("phone", 50),
    TEXT("gender", 30),
    TEXT("city", 200),
    TEXT("postal_code", 30),
    TEXT("country", 60),
    TEXT("language", 30),
    TEXT("source", 100),
    TEXT("home_location", 60),
    TEXT("note", 4000),
    DATE("birth_date"),
    {.name = "tags", .kind = FIELD_TAGS, .max = 100},
    BOOL("email_opt_in"),
    BOOL("sms_opt_in"),
    BOOL("is_blocked"),
};

static const struct event_field deleted[] = {UUID("customer_id")};

static const struct event_field subscription[] = {
    UUID("customer_id"),
    UUID("id"),
    INT("package_id", 0, INT32_MAX),
    TEXT("location_code", 60),
    STATUS("status", subscription_status),
    MONEY("price", 0, PRICE),
    TEXT("currency", 10),
    TEXT("billing_period", 30),
    TIME("started_at"),
    DATE("next_bill_date"),
    TIME("cancelled_at"),
};

static const struct event_field wallet[] = {
    UUID("customer_id"),
    UUID("id"),
    TEXT("kind", 60),
    {.name = "balance", .kind = FIELD_MONEY, .required = true, .min = -WEALTH, .max = WEALTH},
    TEXT("currency", 10),
    TIME("last_topup_at"),
    TIME("expires_at"),
    STATUS("status", wallet_status),
};

static const struct event_field adjustment[] = {
    UUID("customer_id"),
    UUID("id"),
    {.name = "delta", .kind = FIELD_MONEY, .required = true, .min = -PRICE, .max = PRICE},
};

static const struct event_field package[] = {
    UUID("customer_id"),
    UUID("id"),
    INT("package_id", 0, INT32_MAX),
    TEXT("location_code", 60),
    STATUS("status", package_status),
    INT("total_units", 0, INT32_MAX),
    INT("remaining_units", 0, INT32_MAX),
    MONEY("price", 0, PRICE),
    TIME("purchased_at"),
    TIME("expires_at"),
};

static const struct event_field transaction[] = {
    UUID("customer_id"),
    UUID("id"),
    TEXT("location_code", 60),
    {.name = "kind", .kind = FIELD_CHOICE, .required = true, .choices = transaction_kind},
    TEXT("payment_method", 60),
    {.name = "amount", .kind = FIELD_MONEY, .required = true, .max = PRICE},
    MONEY("discount", 0, PRICE),
    MONEY("tip", 0, PRICE),
};

static const struct event_field visit[] = {
    UUID("customer_id"),
    UUID("id"),
    TEXT("location_code", 60),
    TEXT("service", 200),
    INT("duration_minutes", 0, 100000),
    INT("rating", 1, 5),
};

static const struct event_field purchase[] = {
    UUID("customer_id"),
    UUID("id"),
    INT("product_id", 0, INT32_MAX),
    TEXT("category", 200),
    TEXT("location_code", 60),
    INT("quantity", 0, 1000000),
    {.name = "amount", .kind = FIELD_MONEY, .required = true, .min = -PRICE, .max = PRICE},
};

#define FIELDS(table) .fields = table, .n_fields = countof(table)

const struct event_type event_types[] = {
    {.name = "customer.upserted",
     .about = "A customer was created or changed. Contains the whole record.",
     .table = TABLE_CUSTOMERS,
     FIELDS(customer)},
    {.name = "customer.patched",
     .about =
         "Some members of a customer changed. Absent members stay as they are; null empties "
         "one.",
     .table = TABLE_PATCHES,
     .patches = true,
     FIELDS(customer)},
    {.name = "customer.deleted",
     .about = "A customer and all of its data are deleted.",
     .table = TABLE_NONE,
     FIELDS(deleted)},
    {.name = "subscription.changed",
     .about = "A subscription was created or changed. Contains the whole record.",
     .table = TABLE_SUBSCRIPTIONS,
     FIELDS(subscription)},
    {.name = "wallet.changed",
     .about = "A wallet was created or changed. Contains the whole record.",
     .table = TABLE_WALLETS,
     FIELDS(wallet)},
    {.name = "wallet.adjusted",
     .about = "An amount was added to or subtracted from the balance of a wallet.",
     .table = TABLE_ADJUSTMENTS,
     FIELDS(adjustment)},
    {.name = "package.changed",
     .about = "A package was bought, used or changed. Contains the whole record.",
     .table = TABLE_PACKAGES,
     FIELDS(package)},
    {.name = "transaction.recorded",
     .about = "A sale or a refund.",
     .table = TABLE_TRANSACTIONS,
     .appends = true,
     FIELDS(transaction)},
    {.name = "visit.recorded",
     .about = "A customer visited a location.",
     .table = TABLE_VISITS,
     .appends = true,
     FIELDS(visit)},
    {.name = "purchase.recorded",
     .about = "A product was sold.",
     .table = TABLE_PURCHASES,
     .appends = true,
     FIELDS(purchase)},
};
const unsigned n_event_types = countof(event_types);

const struct event_type *event_type_find(span name)
{
    for (unsigned i = 0; i < n_event_types; i++)
        if (span_eq(name, span_of(event_types[i].name)))
            return &event_types[i];
    return NULL;
}
