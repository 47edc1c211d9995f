// proc.c: reads /proc.
#include "bench/load/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/mem.h"

struct proc {
    int64_t pid, parent;
    double cpu_s; // its own and those of children that exited
    uint64_t rss_pages;
    bool is_postgres;
};

struct table {
    struct proc *rows;
    size_t n, cap;
};

static bool proc_read_file(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

// Cuts text at blanks and colons; the number of parts, at most max.
static unsigned proc_split(char *text, char **part, unsigned max)
{
    unsigned n = 0;
    char *rest = text;

    while (n < max && (part[n] = strtok_r(rest, " :\n", &rest)))
        n++;
    return n;
}

static uint64_t proc_number(const char *digits, int base)
{
    return strtoull(digits, NULL, base);
}

// Exact time of a process with one thread. The ticks of a process are rounded down, but the
// sum of exited children is not: connections that end during a run would look like work.
static double exact_s(int64_t pid, double otherwise)
{
    char path[64], text[128];

    snprintf(path, sizeof path, "/proc/%" PRId64 "/schedstat", pid);
    return proc_read_file(path, text, sizeof text) ? (double)proc_number(text, 10) / 1e9
                                                   : otherwise;
}

static bool read_proc(int64_t pid, struct proc *p)
{
    // Fields of proc(5) after the name, from 0.
    enum { PARENT = 1, UTIME = 11, STIME, CUTIME, CSTIME, RSS = 21, N_FIELDS };
    char path[64], text[1024], *field[N_FIELDS];

    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if (!proc_read_file(path, text, sizeof text))
        return false;
    // "pid (name) state ...": the name may hold blanks and parentheses.
    char *open = strchr(text, '('), *end = strrchr(text, ')');
    if (!open || !end || proc_split(end + 1, field, N_FIELDS) != N_FIELDS)
        return false;
    *p = (struct proc){
        .pid = pid,
        .parent = (int64_t)proc_number(field[PARENT], 10),
        .rss_pages = proc_number(field[RSS], 10),
        .is_postgres = end - open == 9 && memcmp(open + 1, "postgres", 8) == 0,
    };
    double hz = (double)sysconf(_SC_CLK_TCK);
    p->cpu_s = (double)(proc_number(field[UTIME], 10) + proc_number(field[STIME], 10)) / hz;
    if (p->is_postgres)
        p->cpu_s = exact_s(pid, p->cpu_s);
    p->cpu_s += (double)(proc_number(field[CUTIME], 10) + proc_number(field[CSTIME], 10)) / hz;
    return true;
}

static struct table read_table(void)
{
    struct table t = {0};
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    while (dir && (entry = readdir(dir))) {
        struct proc p;
        int64_t pid = strtoll(entry->d_name, NULL, 10);
        if (pid <= 0 || !read_proc(pid, &p))
            continue;
        if (t.n == t.cap) {
            t.cap = t.cap > 0 ? t.cap * 2 : 256;
            t.rows = mem_realloc(t.rows, t.cap * sizeof *t.rows);
        }
        t.rows[t.n++] = p;
    }
    if (dir)
        closedir(dir);
    return t;
}

static const struct proc *proc_find_named(const struct table *t, int64_t pid)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].pid == pid)
            return &t->rows[i];
    return NULL;
}

// The inode of a listening socket on that port, as /proc/net/tcp and tcp6 show it; 0: none.
static uint64_t find_socket(unsigned port)
{
    static const char *const files[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    enum { PORT = 2, STATE = 5, INODE = 13, N_FIELDS, LISTENING = 10 };
    uint64_t inode = 0;
    char line[512], *field[N_FIELDS];

    for (size_t i = 0; i < countof(files) && inode == 0; i++) {
        FILE *f = fopen(files[i], "re");
        while (f && fgets(line, sizeof line, f)) {
            if (proc_split(line, field, N_FIELDS) == N_FIELDS &&
                proc_number(field[PORT], 16) == port &&
                proc_number(field[STATE], 16) == LISTENING)
                inode = proc_number(field[INODE], 10);
        }
        if (f)
            fclose(f);
    }
    return inode;
}

static bool holds_socket(int64_t pid, uint64_t inode)
{
    char path[64], want[64], target[64];
    struct dirent *entry;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/fd", pid);
    snprintf(want, sizeof want, "socket:[%" PRIu64 "]", inode);
    DIR *dir = opendir(path);
    while (dir && !found && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        found = strcmp(target, want) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool is_below(const struct table *t, const struct proc *p, int64_t root)
{
    for (int depth = 0; p && depth < 64; depth++, p = proc_find_named(t, p->parent))
        if (p->pid == root)
            return true;
    return false;
}

static void find_postmaster(const struct table *t, struct proc_target *target)
{
    int64_t only = 0;
    unsigned n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct proc *p = &t->rows[i], *parent = proc_find_named(t, p->parent);
        if (!p->is_postgres || (parent && parent->is_postgres))
            continue;
        only = p->pid;
        n++;
        if (target->broker != 0 && is_below(t, p, target->broker)) {
            target->pg = p->pid;
            return;
        }
    }
    if (n == 1)
        target->pg = only;
}

void proc_find(struct proc_target *t, unsigned port)
{
    struct table all = read_table();
    uint64_t inode = t->broker == 0 ? find_socket(port) : 0;

    // A child that inherited the socket holds it too: the topmost holder is the server.
    for (size_t i = 0; inode != 0 && i < all.n; i++) {
        const struct proc *p = &all.rows[i];
        if (holds_socket(p->pid, inode) && (t->broker == 0 || !is_below(&all, p, t->broker)))
            t->broker = p->pid;
    }
    if (t->pg == 0)
        find_postmaster(&all, t);
    free(all.rows);
}

static uint64_t machine_ticks(void)
{
    enum { USER = 1, NICE, SYSTEM, IRQ = 6, SOFTIRQ, N_FIELDS };
    char text[512], *field[N_FIELDS];

    if (!proc_read_file("/proc/stat", text, sizeof text) ||
        proc_split(text, field, N_FIELDS) != N_FIELDS)
        return 0;
    return proc_number(field[USER], 10) + proc_number(field[NICE], 10) +
           proc_number(field[SYSTEM], 10) + proc_number(field[IRQ], 10) +
           proc_number(field[SOFTIRQ], 10);
}

struct proc_usage proc_read(const struct proc_target *t)
{
    struct table all = read_table();
    struct proc_usage u = {0};
    struct rusage self;
    uint64_t pages = 0;

    for (size_t i = 0; i < all.n; i++) {
        const struct proc *p = &all.rows[i];
        if (t->pg != 0 && is_below(&all, p, t->pg)) {
            u.pg_s += p->cpu_s;
        } else if (t->broker != 0 && is_below(&all, p, t->broker)) {
            u.broker_s += p->cpu_s;
            pages += p->rss_pages;
        }
    }
    free(all.rows);

    u.machine_s = (double)machine_ticks() / (double)sysconf(_SC_CLK_TCK);
    u.broker_rss_kb = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    getrusage(RUSAGE_SELF, &self);
    u.self_s = (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
               (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6;
    return u;
}
