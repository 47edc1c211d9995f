// file.c: reads and replaces small files.
#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read(const char *path, struct buf *out, bool *exists, struct fault *f)
{
    FILE *file = fopen(path, "re");
    char chunk[4096];
    size_t n;

    if (exists)
        *exists = file != NULL;
    if (!file)
        return errno == ENOENT
                   ? 0
                   : fault_set(f, QE_CONF, "cannot read %s: %s", path, strerror(errno));
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        buf_put_bytes(out, chunk, n);
    bool failed = ferror(file);
    fclose(file);
    return failed ? fault_set(f, QE_CONF, "cannot read %s", path) : 0;
}

static bool write_all(int fd, span text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0)
            return false;
        text = (span){text.ptr + n, text.len - (size_t)n};
    }
    return true;
}

int file_replace(const char *path, span text, mode_t mode, struct fault *f)
{
    struct buf fresh = {0};

    buf_printf(&fresh, "%s.new", path);
    buf_putc(&fresh, '\0');
    int fd = open(fresh.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    bool ok = fd >= 0 && fchmod(fd, mode) == 0 && write_all(fd, text);
    if (fd >= 0 && close(fd) != 0)
        ok = false;
    ok = ok && rename(fresh.ptr, path) == 0;
    buf_free(&fresh);
    return ok ? 0 : fault_set(f, QE_CONF, "cannot write %s: %s", path, strerror(errno));
}
