// power.c: remembers what a program has brought to stable storage, so that a test can take the
// rest away as a power cut would.
//
// Preloaded into a broker.  Each successful fsync or fdatasync of a file adds a line "inode
// size" to the file that QUEEN_TORTURE_SYNCED names; after a kill -9 the test cuts each file to
// its last line.  QUEEN_TORTURE_NO_SYNC: nothing is remembered, as if the program had never
// synced.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_ours(int fd)
{
    const char *folder = getenv("FILE_BUFFER_DIR");
    char link[64], path[4096];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    return folder && n > (ssize_t)strlen(folder) && memcmp(path, folder, strlen(folder)) == 0 &&
           !getenv("TORTURE_NO_SYNC");
}

static int noted(const char *call, int fd)
{
    struct stat st;
    // The size before the sync: what others write meanwhile may be too late for it.
    int known = fstat(fd, &st);
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
    int rc = real(fd);
    if (rc != 0 || known != 0 || !S_ISREG(st.st_mode) || !is_ours(fd))
        return rc;
    char line[64];
    int n = snprintf(line, sizeof line, "%llu %lld\n", (unsigned long long)st.st_ino,
                     (long long)st.st_size);
    int out = open(getenv("TORTURE_SYNCED"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (out < 0 || write(out, line, (size_t)n) != n)
        abort(); // a test that forgets a sync would accuse the broker
    close(out);
    return rc;
}

int fdatasync(int fd) { return noted("fdatasync", fd); }

int fsync(int fd) { return noted("fsync", fd); }
