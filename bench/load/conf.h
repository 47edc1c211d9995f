// conf.h: the options of the load generator.
#ifndef QUEEN_CLI_BENCH_CONF_H
#define QUEEN_CLI_BENCH_CONF_H

#include <stdbool.h>
#include <stdint.h>

enum bench_workload {
    BENCH_PUSH,   // producers only
    BENCH_POP,    // consumers only, acknowledged on delivery
    BENCH_POPACK, // consumers only, pop and then ack/batch
    BENCH_E2E,    // producers and consumers together
    BENCH_FANOUT, // the same with several groups, each of which gets everything
    BENCH_IDLE,   // many queues, many parked consumers, no messages
};

// All text is borrowed from argv (or static).  After bench_conf_read() every field holds
// its effective value; -1 nowhere.
struct bench_conf {
    const char *url, *token, *queue, *label, *json, *probe, *workload_name;
    enum bench_workload workload;
    const char *ca_file, *fingerprint;
    char host[256], port[8]; // from url
    bool is_tls;             // likewise
    int64_t connections;     // producers; consumers if there are no producers
    int64_t consumers;       // beside producers
    int64_t threads;
    int64_t batch, pop_batch;
    int64_t partitions, pop_partitions;
    int64_t payload; // bytes
    int64_t groups;  // 0: queue mode
    int64_t prefill;
    int64_t wait_ms; // long poll; 0: do not wait
    int64_t lease_s;
    int64_t handle_ms; // between a delivery and its acknowledgement
    int64_t queues;    // idle workload
    int64_t pid, pg_pid;
    double rate; // messages a second over all producers; 0: as fast as answers come
    double duration_s, warmup_s, drain_s;
    bool spread, random, ack, auto_ack, own_partition, work_queue, quiet, help;
    char queue_made_up[40];
};

enum bench_conf_result { BENCH_CONF_OK, BENCH_CONF_HELP, BENCH_CONF_WRONG };

// Prints help to stdout and errors to stderr.
enum bench_conf_result bench_conf_read(struct bench_conf *c, int argc, char **argv);

bool bench_conf_has_producers(const struct bench_conf *c);
bool bench_conf_has_consumers(const struct bench_conf *c);
// After the measured time, wait until everything pushed has been delivered.
bool bench_conf_drains(const struct bench_conf *c);

#endif
