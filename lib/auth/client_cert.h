// client_cert.h: the roles of client certificates (QUEEN_TLS_CLIENT_ROLES).
#ifndef QUEEN_AUTH_CLIENT_CERT_H
#define QUEEN_AUTH_CLIENT_CERT_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"
#include "http/route.h"

// "name=role, name=role": roles are admin, read-write and read-only; "*" is any name.
MUST_USE int client_roles_check(const char *list, struct fault *f);
// names: of a certificate, separated by NUL. The first rule that fits counts; *name is the name
// that it fits. False: no rule fits.
bool client_roles_find(const char *list, span names, span *name, enum http_access *level);

#endif
