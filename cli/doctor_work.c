// doctor_work.c: checks of messages and background work, from the metrics of the server.
#include "base/clock.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/series.h"

enum { OLD_S = 900, SOON_S = 14 * 86400 };

static void check_backlog(struct doctor *d, span metrics);
static void check_failures(struct doctor *d, span metrics);
static void check_background(struct doctor *d, span metrics);
static void check_certificate(struct doctor *d, span metrics);

void doctor_work(struct doctor *d)
{
    span metrics;

    if (ask(d->cli, "GET", SPAN("/metrics/prometheus"), SPAN_NONE, &metrics) != CLI_OK) {
        d->bad++;
        return;
    }
    check_backlog(d, metrics);
    check_failures(d, metrics);
    check_background(d, metrics);
    check_certificate(d, metrics);
}

static void check_backlog(struct doctor *d, span metrics)
{
    span where;
    double age = series_max(metrics, "queen_queue_oldest_pending_seconds", &where);
    bool old = age > OLD_S;

    doctor_say(d, old ? DOCTOR_WARN : DOCTOR_FINE, "backlog",
               old ? "are its consumers running? queen group lag GROUP shows the partitions"
                   : NULL,
               "the oldest pending message is %.0f s old%s" SPAN_FMT, age,
               where.len ? ", " : "", SPAN_ARG(where));
    double due = series_sum(metrics, "queen_scheduled_due");
    doctor_say(d, due > 0 ? DOCTOR_WARN : DOCTOR_FINE, "scheduled",
               due > 0 ? "a session may have locked their partitions: see --pg" : NULL,
               "%.0f messages are due and not delivered", due);
}

static void check_failures(struct doctor *d, span metrics)
{
    double dead = series_sum(metrics, "queen_dlq_depth");
    double retrying = series_sum(metrics, "queen_queue_retrying");

    doctor_say(d, dead > 0 ? DOCTOR_WARN : DOCTOR_FINE, "dead letters",
               dead > 0
                   ? "queen dlq groups shows their errors, queen dlq redrive sends them again"
                   : NULL,
               "%.0f stored, %.0f messages wait for another delivery", dead, retrying);
}

static void check_background(struct doctor *d, span metrics)
{
    span where;
    double failed = series_max(metrics, "queen_chores_failed_total", &where);
    double stuck = series_sum(metrics, "queen_stuck_rows");
    double dropped = series_sum(metrics, "queen_trace_spans_total{result=\"dropped\"}");

    doctor_say(d, failed > 0 ? DOCTOR_WARN : DOCTOR_FINE, "background work",
               failed > 0 ? "see the log events chores.*" : NULL,
               "%.0f failures since the start%s" SPAN_FMT, failed, where.len ? ", " : "",
               SPAN_ARG(where));
    doctor_say(d, stuck > 0 ? DOCTOR_WARN : DOCTOR_FINE, "retention",
               stuck > 0
                   ? "it pauses because a transaction, slot or standby holds xmin: see --pg"
                   : NULL,
               "%.0f removed rows that vacuum cannot reclaim", stuck);
    if (series_has(metrics, "queen_trace_spans_total"))
        doctor_say(d, dropped > 0 ? DOCTOR_WARN : DOCTOR_FINE, "traces",
                   dropped > 0 ? "the collector is slow or away: see trace.export_failed"
                               : NULL,
                   "%.0f spans dropped", dropped);
}

static void check_certificate(struct doctor *d, span metrics)
{
    static const char name[] = "queen_tls_certificate_expires_timestamp_seconds";

    if (!series_has(metrics, name))
        return;
    double left = series_sum(metrics, name) - (double)clock_wall_us() / 1e6;
    doctor_say(d,
               left < 0        ? DOCTOR_BAD
               : left < SOON_S ? DOCTOR_WARN
                               : DOCTOR_FINE,
               "certificate",
               left < SOON_S
                   ? "replace the files of QUEEN_TLS_CERT and QUEEN_TLS_KEY; the server "
                     "loads them again"
                   : NULL,
               left < 0 ? "expired %.1f days ago" : "expires in %.1f days",
               (left < 0 ? -left : left) / 86400);
}
