// The result of a pop, built from the rows of its claim: claims, each with runs of messages.
//
//      claim_build_begin ──► claim_build_claim ──► claim_build_run ... ──► claim_build_end
//
// The rows were checked before (claim_find_fault(), work_find_fault()).
#include "broker/pop/claim_int.h"

#include <stdlib.h>

#include "base/mem.h"

struct claim_build claim_build_begin(struct broker *b, struct pop_op *pop, unsigned n_runs,
                                     unsigned n_claims)
{
    struct claim_build build = {.broker = b,
                                .pop = pop,
                                .runs = mem_new_array(struct pop_run, n_runs + 1),
                                .claims = mem_new_array(struct pop_claim, n_claims + 1),
                                .now_us = broker_pg_us(b)};

    build.result = (struct pop_result){
        .claims = build.claims, .lease = pop->auto_ack ? NULL : pop->lease, .home = b};
    return build;
}

void claim_build_claim(struct claim_build *build, const struct lane *lane,
                       const uint8_t *partition_id, int retries)
{
    build->lane = lane;
    build->claims[build->result.n_claims++] = (struct pop_claim){
        .queue = {lane->queue->name, lane->queue->name_len},
        .partition = lane_shown(lane),
        .partition_id = partition_id,
        .lane = lane->num,
        .retries = retries,
        .runs = build->runs + build->n_runs,
    };
}

// Messages of one segment have waited for the same time.
static void count_delivered(const struct claim_build *build, const struct pop_run *run)
{
    struct tally *t = queue_tally(build->broker, build->lane->queue, true);
    uint64_t lag_us =
        build->now_us > run->created_us ? (uint64_t)(build->now_us - run->created_us) : 0;

    t->pop_messages += run->n;
    t->auto_acked += build->pop->auto_ack ? run->n : 0;
    t->lag_us += lag_us * run->n;
    if (lag_us > t->lag_max_us)
        t->lag_max_us = lag_us;
}

void claim_build_run(struct claim_build *build, const struct pg_reply *reply, unsigned row,
                     struct segment_cols cols, int64_t start, int64_t stop)
{
    int64_t first = pg_reply_i64(reply, row, cols.first_seq);
    int64_t next = first + pg_reply_i32(reply, row, cols.count);
    int64_t from = start > first ? start : first, to = stop < next ? stop : next;
    struct pop_claim *claim = &build->claims[build->result.n_claims - 1];
    struct pop_run *run = &build->runs[build->n_runs];

    if (to <= from)
        return;
    *run = (struct pop_run){
        .keys = pg_reply_bytes(reply, row, cols.keys),
        .body = pg_reply_bytes(reply, row, cols.body),
        .first_seq = first,
        .created_us = pg_reply_unix_us(reply, row, cols.created_at),
        .from = (unsigned)(from - first),
        .n = (unsigned)(to - from),
    };
    if (build->pop->state != POP_LEAVING)
        count_delivered(build, run);
    build->n_runs++;
    claim->n_runs++;
    claim->n_messages += run->n;
    build->result.n_messages += run->n;
}

void claim_build_end(struct claim_build *build)
{
    struct pop_op *pop = build->pop;

    if (build->result.n_messages > 0 && pop->state != POP_LEAVING) {
        pop->n_messages = build->result.n_messages;
        if (pop->auto_ack)
            pop->out.max = SIZE_MAX / 2; // its messages cannot be given back
        pop_handle(build->broker, pop, POP_ON_RENDER, 0);
        pop->render(pop, &build->result);
    } else if (build->result.n_messages > 0 && !pop->auto_ack) {
        give_back_add(build->broker, pop->lease);
    }
    free(build->runs);
    free(build->claims);
}
