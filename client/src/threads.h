// threads.h: threads that run handlers.
#ifndef QUEEN_CLIENT_CREW_H
#define QUEEN_CLIENT_CREW_H

#include "base/attrs.h"
#include "job.h"

struct crew;

// 0 threads cannot be had: NULL with an error.
struct crew *crew_new(unsigned n, queen_handler handler, void *ctx, struct queen_error *err);
// Hands a job to the next thread that is free.  It calls queen_job_finish() with the verdict.
void crew_run(struct crew *c, struct queen_job *job);
void crew_free(struct crew *c); // no job is running

#endif
