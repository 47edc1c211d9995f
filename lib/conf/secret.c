// secret.c: see secret.h.
#include "conf/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

enum { MAX_VALUE = 64 * 1024 };

bool conf_has_file(const struct conf_table *t, const struct conf_key *key)
{
    size_t len = strlen(key->name);

    for (unsigned row = 0; row < t->n_keys; row++)
        if (strncmp(t->keys[row].name, key->name, len) == 0 &&
            strcmp(t->keys[row].name + len, "_FILE") == 0)
            return false;
    return key->secret || key->file;
}

static int file_failed(const struct conf_key *key, const char *path, const char *why,
                       struct fault *f)
{
    return fault_set(f, QE_CONF, "%s_FILE: cannot read %.100s: %s", key->name, path, why);
}

static void warn_exposed(const struct conf_key *key, int fd)
{
    struct stat st;

    if (key->secret && fstat(fd, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
        log_warn("conf.secret_exposed",
                 "setting=%s_FILE mode=%03o why=\"other users can read or change the file\"",
                 key->name, (unsigned)st.st_mode & 0777);
}

int conf_read_file(const struct conf_key *key, const char *path, struct arena *a,
                   const char **value, struct fault *f)
{
    char text[MAX_VALUE + 1];
    size_t len = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return file_failed(key, path, strerror(errno), f);
    warn_exposed(key, fd);
    while (n > 0 && len < sizeof text) { // pipes give it in pieces
        n = read(fd, text + len, sizeof text - len);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            len += (size_t)n;
    }
    int error = errno;
    close(fd);
    int rc = 0;
    if (n < 0)
        rc = file_failed(key, path, strerror(error), f);
    else if (len > MAX_VALUE)
        rc = file_failed(key, path, "it is larger than 64 KB", f);
    else if (memchr(text, '\0', len))
        rc = file_failed(key, path, "it contains a NUL byte", f);
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    if (rc == 0 && len == 0)
        rc = file_failed(key, path, "it is empty", f);
    if (rc == 0)
        *value = arena_cstr(a, (span){text, len});
    explicit_bzero(text, sizeof text);
    return rc;
}
