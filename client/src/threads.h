// threads.h: threads that run handlers.
#ifndef QUEEN_CLIENT_CREW_H
#define QUEEN_CLIENT_CREW_H

#include "base/attrs.h"
#include "job.h"

struct threads;

// NULL with an error if no thread can be started.
struct threads *threads_new(unsigned n, queen_handler handler, void *ctx,
                            struct queen_error *err);
// Passes a job to the next free thread, which calls queen_job_finish() with the verdict.
void threads_run(struct threads *c, struct queen_job *job);
void threads_free(struct threads *c); // no job is running

#endif
