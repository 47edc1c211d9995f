// `queen doctor`: checks a server and gives advice.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <queen/client.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/moment.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/pick.h"
#include "json/write.h"

static int read_health(struct cli *cli, span *body, bool *healthy);
static void check_server(struct doctor *d, span health);
static void check_clock(struct doctor *d, const char *whose, span now);
static void check_pool(struct doctor *d);
static void check_buffer(struct doctor *d);
static void check_maintenance(struct doctor *d);
static void check_database(struct doctor *d);

static int doctor(struct cli *cli)
{
    struct doctor d = {.cli = cli};
    const char *pg = args_text(&cli->args, "pg");
    span health = SPAN_NONE;
    bool healthy;
    int rc = read_health(cli, &health, &healthy);

    if (rc != CLI_OK && !pg)
        return rc;
    if (rc == CLI_OK) {
        check_server(&d, health);
        check_pool(&d);
        check_buffer(&d);
    } else {
        d.bad++; // the error was printed
    }
    if (rc == CLI_OK && healthy) { // they need the database
        check_maintenance(&d);
        check_database(&d);
        doctor_work(&d);
    }
    if (pg)
        doctor_postgres(&d, pg);
    else
        doctor_say(&d, DOCTOR_FINE, "more", NULL,
                   "--pg CONNINFO looks into PostgreSQL itself: settings, old transactions, "
                   "replication slots, disk");
    if (!cli->out.json)
        out_note(&cli->out, "\n%u bad, %u warnings", d.bad, d.warned);
    return d.bad > 0 ? CLI_FAILED : CLI_OK;
}

// A server that is not healthy answers 503, with the reason in the same fields.
static int read_health(struct cli *cli, span *body, bool *healthy)
{
    struct queen_error err;
    struct queen_response *r = queen_request(
        cli->client, &(struct queen_request){.path = "/health", .attempts = 1}, &err);
    bool answered =
        r && (r->status == 200 || r->status == 503) && r->body_len > 0 && r->body[0] == '{';
    int rc = CLI_OK;

    if (!answered && err.code == QUEEN_OK)
        rc = ask_complain(cli, CLI_FAILED, "/health does not answer like a Queen server");
    else if (!answered)
        rc = ask_failed(cli, &err);
    *healthy = answered && r->status == 200;
    if (answered)
        *body = arena_copy(&cli->arena, (span){r->body, r->body_len});
    queen_response_free(r);
    return rc;
}

void doctor_say(struct doctor *d, enum verdict v, const char *what, const char *advice,
                const char *fmt, ...)
{
    static const char *const names[] = {"fine", "warn", "bad"};
    static const enum out_style styles[] = {OUT_GREEN, OUT_YELLOW, OUT_RED};
    const struct out *o = &d->cli->out;
    struct buf b = {0};
    char text[400];
    va_list ap;

    d->warned += v == DOCTOR_WARN;
    d->bad += v == DOCTOR_BAD;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (o->json) {
        buf_printf(&b, "{\"check\":\"%s\",\"verdict\":\"%s\",\"found\":", what, names[v]);
        js_put_text(&b, span_of(text));
        buf_put_lit(&b, ",\"advice\":");
        js_put_text_or_null(&b, span_of(advice));
        buf_putc(&b, '}');
        out_line(buf_span(&b));
        buf_free(&b);
        return;
    }
    printf("%s%-4s%s  %-16s %s\n", out_on(o, styles[v]), names[v], out_off(o), what, text);
    if (advice)
        printf("%24s%s\n", "", advice);
}

static void check_server(struct doctor *d, span health)
{
    const char *status = pick_cstr(health, "status", &d->cli->arena);
    const char *version = pick_cstr(health, "version", &d->cli->arena);
    const char *database = pick_cstr(health, "database", &d->cli->arena);
    const char *reason = pick_cstr(health, "reason", &d->cli->arena);
    bool well = status && strcmp(status, "healthy") == 0;
    bool same = version && strcmp(version, QUEEN_VERSION) == 0;
    bool away = database && strcmp(database, "disconnected") == 0;

    doctor_say(d, well ? DOCTOR_FINE : DOCTOR_BAD, "server",
               well   ? NULL
               : away ? "start PostgreSQL, or correct PG_HOST and the like; pushes go to the "
                        "file buffer meanwhile; the server's log has the error"
                      : "see the server's log; is PostgreSQL up?",
               "%s, database %s%s%s", status ? status : "unknown",
               database ? database : "unknown", reason ? ": " : "", reason ? reason : "");
    if (version) // a server with authentication does not show it to everybody
        doctor_say(d, same ? DOCTOR_FINE : DOCTOR_WARN, "version",
                   same ? NULL : "update the older one of the two",
                   "server %s, this program %s", version, QUEEN_VERSION);
    span rest = pick(health, "warnings"), item;
    while (pick_next(&rest, &item))
        doctor_say(d, DOCTOR_WARN, "access",
                   "set JWT_ENABLED, or leave HOST unset to listen on this machine only",
                   SPAN_FMT, SPAN_ARG(item));
}

static void check_clock(struct doctor *d, const char *whose, span now)
{
    int64_t theirs;

    if (!moment_parse(now, &theirs))
        return;
    double off = (double)((int64_t)clock_wall_us() - theirs) / 1e6;
    double size = off < 0 ? -off : off;
    doctor_say(d, size < 2 ? DOCTOR_FINE : DOCTOR_WARN, "clock",
               size < 2 ? NULL
                        : "let NTP set the clocks: delivery follows PostgreSQL's, tokens the "
                          "server's",
               "%s is %.1f s %s this machine's", whose, size, off > 0 ? "behind" : "ahead of");
}

static void check_pool(struct doctor *d)
{
    span body;

    if (ask(d->cli, "GET", SPAN("/metrics"), SPAN_NONE, &body) != CLI_OK) {
        d->bad++;
        return;
    }
    int64_t size = pick_int(body, "database.poolSize"),
            idle = pick_int(body, "database.idleConnections");
    int64_t waiting = pick_int(body, "database.waitingRequests");
    bool short_of = idle == 0 && waiting > 0;
    doctor_say(d, short_of ? DOCTOR_WARN : DOCTOR_FINE, "pool",
               short_of ? "all connections are busy: raise SIDECAR_POOL_SIZE, or see what "
                          "PostgreSQL is slow at"
                        : NULL,
               "%lld connections, %lld idle, %lld calls wait", (long long)size, (long long)idle,
               (long long)waiting);
}

static void check_buffer(struct doctor *d)
{
    span body;

    if (ask(d->cli, "GET", SPAN("/api/v1/status/buffers"), SPAN_NONE, &body) != CLI_OK) {
        d->bad++;
        return;
    }
    int64_t pending = pick_int(body, "pending"), failed = pick_int(body, "failed");
    enum verdict v = failed > 0 ? DOCTOR_BAD : pending > 0 ? DOCTOR_WARN : DOCTOR_FINE;
    doctor_say(d, v, "file buffer",
               failed > 0
                   ? "see docs/operations/file-buffer.md for files that cannot be replayed"
               : pending > 0 ? "they are stored when PostgreSQL is back; see the log"
                             : NULL,
               "%lld messages wait, %lld failed", (long long)pending, (long long)failed);
}

static void check_maintenance(struct doctor *d)
{
    span push, pop;

    if (ask(d->cli, "GET", SPAN("/api/v1/system/maintenance"), SPAN_NONE, &push) != CLI_OK ||
        ask(d->cli, "GET", SPAN("/api/v1/system/maintenance/pop"), SPAN_NONE, &pop) != CLI_OK) {
        d->bad++;
        return;
    }
    bool no_push = pick_bool(push, "maintenanceMode"),
         no_pop = pick_bool(pop, "popMaintenanceMode");
    doctor_say(d, no_push || no_pop ? DOCTOR_WARN : DOCTOR_FINE, "maintenance",
               no_push || no_pop
                   ? "POST {\"enabled\":false} to /api/v1/system/maintenance ends "
                     "it (and /pop)"
                   : NULL,
               "pushes %s, pops %s", no_push ? "go to the file buffer" : "are stored",
               no_pop ? "get nothing" : "are served");
}

// Checks the server's statistics of its database.
static void check_database(struct doctor *d)
{
    struct arena *a = &d->cli->arena;
    span body, rest, item;

    if (ask(d->cli, "GET", SPAN("/api/v1/analytics/postgres-stats"), SPAN_NONE, &body) !=
        CLI_OK) {
        d->bad++;
        return;
    }
    check_clock(d, "PostgreSQL's clock", pick_text(body, "timestamp", a));
    double hits = pick_number(body, "databaseCache.cacheHitRatio");
    bool cold = hits > 0 && hits < 90;
    doctor_say(d, cold ? DOCTOR_WARN : DOCTOR_FINE, "cache",
               cold ? "raise shared_buffers, if this server has been running for a while"
                    : NULL,
               "%.1f %% of reads need no disk", hits);
    rest = pick(body, "deadTuples");
    const char *worst = NULL;
    int64_t most = 0;
    while (pick_next(&rest, &item))
        if (pick_int(item, "deadTuples") > most) {
            most = pick_int(item, "deadTuples");
            worst = pick_cstr(item, "table", a);
        }
    bool bloated = most > 1000000;
    doctor_say(d, bloated ? DOCTOR_WARN : DOCTOR_FINE, "dead rows",
               bloated ? "autovacuum does not keep up, or something holds xmin: see --pg"
                       : NULL,
               "%lld at most%s%s", (long long)most, worst ? ", in " : "", worst ? worst : "");
}

static const struct cli_option options[] = {
    {"pg", 0, CLI_TEXT, "CONNINFO", "also check PostgreSQL: postgresql://... or host=..."},
};

const struct cli_command cli_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "check a server and its PostgreSQL, with advice",
    .about =
        "Looks at health, versions, clocks, connections, the file buffer, dead rows, backlogs, "
        "dead letters, background work, traces and the certificate; with --pg also at rights, "
        "settings, all connections, transactions that block "
        "vacuum, replication slots and disk. Exit code 5: something is bad.",
    .examples = "queen doctor|checks through the server only\n"
                "queen doctor --pg 'host=db user=queen dbname=queen'|PostgreSQL as well",
    CLI_OPTIONS(options),
    .run = doctor,
};
