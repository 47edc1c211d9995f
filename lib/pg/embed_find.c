// embed_find.c: finds PostgreSQL's programs.
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/span.h"
#include "base/str.h"
#include "pg/embed_int.h"

enum { OLDEST = 14 };

struct choice {
    char dir[PATH_MAX - 64];
    int major;
};

// Major version of the server in dir; 0 if it lacks postgres or initdb.
static int version_in(const char *dir)
{
    char command[PATH_MAX + 64], line[128] = "";
    int major = 0;

    if (strchr(dir, '\'') != NULL)
        return 0; // the path is passed to a shell below
    snprintf(command, sizeof command, "%s/initdb", dir);
    if (access(command, X_OK) != 0)
        return 0;
    snprintf(command, sizeof command, "'%s/postgres' --version 2>/dev/null", dir);
    FILE *p = popen(command, "re"); // NOLINT(cert-env33-c): quoted, and no quote inside
    if (p == NULL)
        return 0;
    if (fgets(line, sizeof line, p) != NULL)
        sscanf(line, "postgres (PostgreSQL) %d", &major);
    pclose(p); // the result is in the line
    return major;
}

// A cluster needs a server of its own major version; a new cluster gets the newest.
static void consider(struct choice *best, const char *dir, int wanted_major)
{
    int major = version_in(dir);

    if (major < OLDEST || (wanted_major != 0 && major != wanted_major) || major <= best->major)
        return;
    best->major = major;
    snprintf(best->dir, sizeof best->dir, "%s", dir);
}

static void search_path(struct choice *best, int major)
{
    span rest = span_of(getenv("PATH")), part;

    while (best->major == 0 && str_split(&rest, ':', &part)) {
        if (part.len == 0 || part.ptr[0] != '/')
            continue;
        char *dir = mem_strndup(part.ptr, part.len);
        consider(best, dir, major);
        free(dir);
    }
}

static void search_installed(struct choice *best, int major)
{
    static const char *const patterns[] = {"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
                                           "/usr/local/pgsql/bin"};
    glob_t g;

    for (size_t p = 0; p < countof(patterns); p++) {
        if (glob(patterns[p], 0, NULL, &g) != 0)
            continue;
        for (size_t i = 0; i < g.gl_pathc; i++)
            consider(best, g.gl_pathv[i], major);
        globfree(&g);
    }
}

int embed_find(struct embed *e, const char *wanted, int major, struct fault *f)
{
    struct choice best = {.major = 0};

    if (wanted != NULL && wanted[0] != '\0') {
        consider(&best, wanted, major);
        if (best.major == 0 && version_in(wanted) == 0)
            return fault_set(f, QE_CONF, "QUEEN_PG_BIN=%s has no postgres and initdb", wanted);
        if (best.major == 0 && major == 0)
            return fault_set(f, QE_CONF,
                             "QUEEN_PG_BIN=%s is PostgreSQL %d; it must be at least %d", wanted,
                             version_in(wanted), OLDEST);
    } else {
        search_path(&best, major);
        search_installed(&best, major);
    }
    if (best.major == 0 && major != 0)
        return fault_set(
            f, QE_CONF,
            "%s was created by PostgreSQL %d, which is not installed here: install it, "
            "name it with QUEEN_PG_BIN, or pg_upgrade the cluster",
            e->pg, major);
    if (best.major == 0)
        return fault_set(f, QE_CONF,
                         "no PostgreSQL (%d or newer) found for the embedded database: install "
                         "one, set QUEEN_PG_BIN, or use a server with PG_HOST",
                         OLDEST);
    snprintf(e->bin, sizeof e->bin, "%s", best.dir);
    return 0;
}
