// row.c: a tenant's row, its password, its connection string.
#include "tenant/row.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { SECRET_BYTES = 4096 };

static char *row_copy_text(const char *text)
{
    return text ? mem_strndup(text, strlen(text)) : NULL;
}

void tenant_row_copy(struct tenant_row *to, const struct tenant_row *from)
{
    *to = *from;
    to->url = row_copy_text(from->url);
    to->database = row_copy_text(from->database);
    to->credential = row_copy_text(from->credential);
}

void tenant_row_deinit(struct tenant_row *r)
{
    free(r->url);
    free(r->database);
    free(r->credential);
    r->url = r->database = r->credential = NULL;
}

static bool text_eq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

// Compares all columns: after a restore of the control database, a revision may belong to
// another row.
bool tenant_row_eq(const struct tenant_row *a, const struct tenant_row *b)
{
    return strcmp(a->name, b->name) == 0 && a->kind == b->kind && text_eq(a->url, b->url) &&
           text_eq(a->database, b->database) && text_eq(a->credential, b->credential) &&
           a->made == b->made && a->revision == b->revision && a->added_us == b->added_us;
}

bool tenant_is_name(span name)
{
    if (name.len == 0 || name.len > TENANT_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!word && (i == 0 || (c != '-' && c != '_')))
            return false;
    }
    return true;
}

// Both paths are resolved: ".." and symbolic links must not lead out of the folder.
static bool is_inside(const char *dir, const char *path, char real[PATH_MAX])
{
    char real_dir[PATH_MAX];

    if (realpath(dir, real_dir) == NULL || realpath(path, real) == NULL)
        return false;
    size_t n = strlen(real_dir);
    return strncmp(real, real_dir, n) == 0 && (real[n] == '/' || n == 1);
}

static int read_file(const char *dir, const char *path, char **secret, struct fault *f)
{
    char text[SECRET_BYTES], real[PATH_MAX];

    if (access(path, F_OK) == 0 && !is_inside(dir, path, real))
        return fault_set(f, QE_CONF,
                         "credential file:%.120s: is not in PLATFORM_CREDENTIAL_DIR", path);
    if (realpath(path, real) == NULL)
        return fault_set(f, QE_CONF, "credential file:%.120s: %s", path, strerror(errno));
    // Not a FIFO or device, which would block.
    int fd = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    int error = errno;

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return fault_set(f, QE_CONF, "credential file:%.120s: %s", path, strerror(error));
    if (n == sizeof text)
        return fault_set(f, QE_CONF, "credential file:%.120s: too long", path);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r')) // editors append a newline
        n--;
    *secret = mem_strndup(text, (size_t)n);
    return 0;
}

int credential_check(const struct tenant_auth *auth, const char *credential, struct fault *f)
{
    size_t prefix = strlen(auth->env_prefix), dir = strlen(auth->dir);

    if (credential && strncmp(credential, "file:", 5) == 0 &&
        (dir == 0 || strncmp(credential + 5, auth->dir, dir) != 0 ||
         strstr(credential, "/../") != NULL))
        return fault_set(f, QE_BAD_PARAM,
                         "credential must be a file in the folder PLATFORM_CREDENTIAL_DIR");
    if (credential && strncmp(credential, "env:", 4) == 0 &&
        (prefix == 0 || strncmp(credential + 4, auth->env_prefix, prefix) != 0))
        return fault_set(
            f, QE_BAD_PARAM, "credential must be a variable that begins with %.60s",
            prefix == 0 ? "PLATFORM_CREDENTIAL_ENV_PREFIX, which is empty" : auth->env_prefix);
    return 0;
}

int credential_read(const struct tenant_auth *auth, const char *credential, char **password,
                    struct fault *f)
{
    *password = NULL;
    if (!credential)
        return 0;
    // Also here: the row may be older than the settings.
    if (credential_check(auth, credential, f) != 0)
        return f->code = QE_CONF;
    if (strncmp(credential, "file:", 5) == 0)
        return read_file(auth->dir, credential + 5, password, f);
    if (strncmp(credential, "env:", 4) == 0) {
        const char *value = getenv(credential + 4);
        if (!value)
            return fault_set(f, QE_CONF, "credential %.120s: no such variable", credential);
        *password = row_copy_text(value);
        return 0;
    }
    *password =
        row_copy_text(strncmp(credential, "text:", 5) == 0 ? credential + 5 : credential);
    return 0;
}

int tenant_conninfo(const struct tenant_row *r, const struct database *home,
                    const struct tenant_auth *auth, const struct pg_conninfo *like,
                    char **conninfo, struct fault *f)
{
    struct pg_conninfo info = *like;
    char *password;
    int rc = credential_read(auth, r->credential, &password, f);

    *conninfo = NULL;
    if (rc != 0)
        return rc;
    if (r->url) {
        info.password = password;
        info.bind_password = !auth->any;
        info.ssl_root_cert = auth->ssl_root_cert;
        *conninfo = pg_conninfo_of_url(r->url, &info, f);
    } else {
        struct pg_conninfo place = database_place(home, false);
        info.hosts = place.hosts;
        info.port = place.port;
        info.user = place.user;
        info.password = place.password;
        info.sslmode = place.sslmode;
        info.ssl_root_cert = place.ssl_root_cert;
        info.db = r->database;
        *conninfo = pg_conninfo_format(&info);
    }
    free(password);
    return *conninfo ? 0 : QE_BAD_PARAM;
}

int tenant_place(const struct tenant_row *r, const struct tenant_auth *auth,
                 struct my_place *place, struct fault *f)
{
    char *password;
    int rc = credential_read(auth, r->credential, &password, f);

    if (rc == 0)
        rc = my_place_parse(r->url, place, f);
    if (rc == 0) {
        place->password = password; // stored addresses contain none
        place->any_auth = auth->any;
        place->tls_ca = auth->ssl_root_cert;
    } else {
        free(password);
    }
    return rc;
}
