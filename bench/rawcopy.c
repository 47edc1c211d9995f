// rawcopy.c: measures how fast this PostgreSQL takes rows at all, as an upper limit for a
// broker.
//
// COPY BINARY of payloads into a table of one column without index, K rows per transaction, N
// connections with a thread each. Prints one line of JSON: rows per second, latency of a
// transaction, CPU seconds per million rows (postmaster and all below it), WAL bytes per row.
// The CPU value needs a server on this machine.
#include <arpa/inet.h>
#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 256, MAX_SAMPLES = 1 << 20 };

struct copier {
    pthread_t thread;
    PGconn *pg;
    _Atomic uint64_t transactions;
    float *ms; // of each transaction, up to MAX_SAMPLES
};

static struct {
    const char *conninfo;
    unsigned connections, rows, payload;
    double seconds;
    char *data; // one transaction in COPY's binary format
    size_t data_len;
    _Atomic bool stop;
} run = {.conninfo = "", .connections = 2, .rows = 100, .payload = 100, .seconds = 5};

// Steps, in order.
static void read_options(int argc, char **argv);
static void make_data(void);
static void *copy_until_stopped(void *arg);
static double cpu_below(long root);

static void rawcopy_fail(PGconn *pg, const char *what)
{
    fprintf(stderr, "rawcopy: %s: %s", what, PQerrorMessage(pg));
    exit(1);
}

static PGconn *dial(void)
{
    PGconn *pg = PQconnectdb(run.conninfo);
    if (PQstatus(pg) != CONNECTION_OK)
        rawcopy_fail(pg, "connect");
    return pg;
}

static void execute(PGconn *pg, const char *sql)
{
    PGresult *r = PQexec(pg, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        rawcopy_fail(pg, sql);
    PQclear(r);
}

static double query_number(PGconn *pg, const char *sql)
{
    PGresult *r = PQexec(pg, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
        rawcopy_fail(pg, sql);
    double v = strtod(PQgetvalue(r, 0, 0), NULL);
    PQclear(r);
    return v;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Parent and CPU ticks (its own and of children that exited) of a process.
static bool read_stat(long pid, long *parent, double *ticks)
{
    char path[64], text[1024];
    unsigned long t[4];

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    const char *end = ok ? strrchr(text, ')') : NULL;
    if (!end || sscanf(end + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
                       parent, &t[0], &t[1], &t[2], &t[3]) != 5)
        return false;
    *ticks = (double)(t[0] + t[1] + t[2] + t[3]);
    return true;
}

// A backend is the postmaster's child, so one level is the whole tree.
static double cpu_below(long root)
{
    double sum = 0, ticks;
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    while (dir && (entry = readdir(dir))) {
        long parent, pid = strtol(entry->d_name, NULL, 10);
        if (pid > 0 && read_stat(pid, &parent, &ticks) && (pid == root || parent == root))
            sum += ticks;
    }
    if (dir)
        closedir(dir);
    return sum / (double)sysconf(_SC_CLK_TCK);
}

int main(int argc, char **argv)
{
    static struct copier copiers[MAX_CONNECTIONS];
    static const char wal[] = "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    long postmaster = 0;
    double ticks;

    read_options(argc, argv);
    make_data();
    PGconn *pg = dial();
    execute(pg, "set client_min_messages = error");
    execute(pg, "drop table if exists rawcopy");
    execute(pg, "create table rawcopy (payload bytea not null)");
    for (unsigned i = 0; i < run.connections; i++) {
        copiers[i].pg = dial();
        copiers[i].ms = calloc(MAX_SAMPLES, sizeof(float));
        if (!copiers[i].ms)
            rawcopy_fail(pg, "no memory");
    }
    // For a remote server, no process of that number exists here, or it is not its backend:
    // then the parent uses no CPU either, and the value is visibly 0.
    if (!read_stat(PQbackendPID(pg), &postmaster, &ticks))
        postmaster = 0;

    double wal_from = query_number(pg, wal), cpu_from = cpu_below(postmaster), from = now_s();
    for (unsigned i = 0; i < run.connections; i++)
        if (pthread_create(&copiers[i].thread, NULL, copy_until_stopped, &copiers[i]) != 0)
            rawcopy_fail(pg, "thread");
    usleep((useconds_t)(run.seconds * 1e6));
    run.stop = true;
    uint64_t transactions = 0, n = 0;
    for (unsigned i = 0; i < run.connections; i++) {
        pthread_join(copiers[i].thread, NULL);
        transactions += copiers[i].transactions;
    }
    double took = now_s() - from, cpu = cpu_below(postmaster) - cpu_from;
    double wal_bytes = query_number(pg, wal) - wal_from;
    execute(pg, "drop table rawcopy");

    float *ms = calloc((size_t)transactions + 1, sizeof *ms);
    for (unsigned i = 0; ms && i < run.connections; i++) {
        uint64_t k =
            copiers[i].transactions < MAX_SAMPLES ? copiers[i].transactions : MAX_SAMPLES;
        memcpy(ms + n, copiers[i].ms, (size_t)k * sizeof *ms);
        n += k;
        free(copiers[i].ms);
        PQfinish(copiers[i].pg);
    }
    if (!ms || n == 0)
        rawcopy_fail(pg, "nothing was copied");
    qsort(ms, (size_t)n, sizeof *ms, compare);
    double rows = (double)transactions * run.rows;
    printf(
        "{\"connections\":%u,\"rowsPerTransaction\":%u,\"payload\":%u,\"seconds\":%.3f,"
        "\"rowsPerSecond\":%.0f,\"transactionsPerSecond\":%.0f,\"p50Ms\":%.3f,\"p99Ms\":%.3f,"
        "\"cpuPgPerM\":%.3f,\"walPerRow\":%.1f}\n",
        run.connections, run.rows, run.payload, took, rows / took, (double)transactions / took,
        (double)ms[n / 2], (double)ms[n * 99 / 100], cpu * 1e6 / rows, wal_bytes / rows);
    free(ms);
    free(run.data);
    PQfinish(pg);
    return 0;
}

static void read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"dsn", required_argument, NULL, 'D'},
                                          {"connections", required_argument, NULL, 'c'},
                                          {"rows", required_argument, NULL, 'k'},
                                          {"payload", required_argument, NULL, 's'},
                                          {"seconds", required_argument, NULL, 'd'},
                                          {NULL, 0, NULL, 0}};

    for (int o; (o = getopt_long(argc, argv, "D:c:k:s:d:", longs, NULL)) != -1;) {
        switch (o) {
        case 'D':
            run.conninfo = optarg;
            break;
        case 'c':
            run.connections = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'k':
            run.rows = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            run.payload = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'd':
            run.seconds = strtod(optarg, NULL);
            break;
        default:
            run.rows = 0; // usage below
        }
    }
    if (run.rows == 0 || run.rows > 1000000 || run.connections == 0 ||
        run.connections > MAX_CONNECTIONS || run.payload > 1 << 20 || !(run.seconds > 0)) {
        fprintf(stderr, "usage: rawcopy [--dsn CONNINFO] [--connections N] [--rows K] "
                        "[--payload BYTES] [--seconds S]\n");
        exit(1);
    }
}

static void make_data(void)
{
    static const char head[19] = "PGCOPY\n\377\r\n"; // signature, flags 0, no extension
    uint16_t fields = htons(1), end = 0xffff;
    uint32_t length = htonl(run.payload);

    run.data_len = sizeof head + (size_t)run.rows * (6 + run.payload) + 2;
    char *p = run.data = malloc(run.data_len);
    if (!p) {
        fprintf(stderr, "rawcopy: no memory\n");
        exit(1);
    }
    memcpy(p, head, sizeof head);
    p += sizeof head;
    for (unsigned i = 0; i < run.rows; i++) {
        memcpy(p, &fields, 2);
        memcpy(p + 2, &length, 4);
        memset(p + 6, 'x', run.payload);
        p += 6 + run.payload;
    }
    memcpy(p, &end, 2);
}

static void *copy_until_stopped(void *arg)
{
    struct copier *c = arg;

    while (!run.stop) {
        double from = now_s();
        PGresult *r = PQexec(c->pg, "copy rawcopy from stdin (format binary)");
        if (PQresultStatus(r) != PGRES_COPY_IN)
            rawcopy_fail(c->pg, "copy");
        PQclear(r);
        if (PQputCopyData(c->pg, run.data, (int)run.data_len) != 1 ||
            PQputCopyEnd(c->pg, NULL) != 1)
            rawcopy_fail(c->pg, "copy data");
        while ((r = PQgetResult(c->pg))) {
            if (PQresultStatus(r) != PGRES_COMMAND_OK)
                rawcopy_fail(c->pg, "copy end");
            PQclear(r);
        }
        uint64_t i = c->transactions++;
        if (i < MAX_SAMPLES)
            c->ms[i] = (float)((now_s() - from) * 1e3);
    }
    return NULL;
}
