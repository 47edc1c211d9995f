// set.h: a set of 64-bit numbers.
//
// Holds the few messages that the ledger cannot classify yet, so it stays small in normal
// operation. {0} is an empty set. Not locked.
#ifndef QUEEN_CLI_BENCH_SET_H
#define QUEEN_CLI_BENCH_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_set {
    uint64_t *slot; // number + 1, 0: free
    size_t n, cap;  // cap is a power of two, or 0
};

void bench_set_add(struct bench_set *s, uint64_t v); // v < 2^64 - 1
bool bench_set_has(const struct bench_set *s, uint64_t v);
bool bench_set_take(struct bench_set *s, uint64_t v); // removes; false: was not there
void bench_set_free(struct bench_set *s);

#endif
