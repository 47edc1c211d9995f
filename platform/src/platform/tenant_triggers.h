// tenant_triggers.h: the recurring triggers of a tenant that is removed, or that comes back.
//
// The broker has the triggers; the tenant's database has the subscriptions and campaigns that
// need them.
#ifndef QUEEN_PLATFORM_TENANT_TRIGGERS_H
#define QUEEN_PLATFORM_TENANT_TRIGGERS_H

#include "base/err.h"
#include "platform/platform_int.h"

// Called once, perhaps immediately.  why is NULL on success.
typedef void (*tenant_triggers_cb)(void *ctx, const struct fault *why);

// Removes the tenant's recurring triggers from the broker.  tenant is borrowed until done.
void tenant_triggers_end(struct platform *p, span tenant, tenant_triggers_cb done, void *ctx);
// Creates those of a PostgreSQL tenant again, from its database.  The same holds for tenant.
void tenant_triggers_restore(struct platform *p, span tenant, tenant_triggers_cb done,
                             void *ctx);

#endif
