// bench.h: `queen bench`, a load generator for any server of the HTTP contract.
#ifndef QUEEN_CLI_BENCH_H
#define QUEEN_CLI_BENCH_H

enum bench_exit {
    BENCH_OK = 0,
    BENCH_USAGE = 1,  // wrong options
    BENCH_FAILED = 2, // server unreachable, or requests that failed
    BENCH_WRONG = 3,  // messages lost, repeated or out of order
};

// argv[0] is "bench".  Returns the program's exit code, one of enum bench_exit.
int cli_bench(int argc, char **argv);

#endif
