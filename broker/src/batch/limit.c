// Adaptive number of batches in flight; pure arithmetic, the caller brings the time.
#include "batch/limit.h"

void limit_init(struct limit *l, struct limit_conf conf, uint64_t now_us)
{
    if (conf.min < 1)
        conf.min = 1;
    if (conf.max < conf.min)
        conf.max = conf.min;
    *l = (struct limit){.conf = conf,
                        .now = conf.fixed ? conf.max : conf.min,
                        .window_since_us = now_us,
                        .changed_us = now_us};
}

void limit_sample(struct limit *l, uint64_t rtt_us, uint64_t now_us)
{
    if (l->conf.fixed)
        return;
    // An old minimum may stem from a quieter database: start over with what we see now.
    if (l->shortest_us == 0 || rtt_us < l->shortest_us ||
        now_us - l->window_since_us > l->conf.min_window_s * 1000000ull) {
        l->shortest_us = rtt_us > 0 ? rtt_us : 1;
        l->window_since_us = now_us;
    }
    double weight = 2.0 / (l->conf.window_samples + 1);
    l->mean_us =
        l->mean_us == 0 ? (double)rtt_us : l->mean_us + weight * ((double)rtt_us - l->mean_us);
    l->n_samples++;

    if (now_us - l->changed_us < l->conf.update_ms * 1000ull || l->mean_us <= 0)
        return;
    double waiting = l->now * (1 - (double)l->shortest_us / l->mean_us);
    if (waiting < l->conf.alpha && l->now < l->conf.max)
        l->now++;
    else if (waiting > l->conf.beta && l->now > l->conf.min)
        l->now--;
    l->changed_us = now_us;
    l->n_samples = 0;
}
