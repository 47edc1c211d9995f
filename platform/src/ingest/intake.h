// intake.h: takes batches from the event processor, splits them by tenant and acknowledges
// them.
#ifndef QUEEN_INGEST_INTAKE_H
#define QUEEN_INGEST_INTAKE_H

#include <uv.h>

#include "ingest/ingest.h"
#include "ingest/lanes.h"
#include "ingest/writer.h"

struct intake;

// pause_ms: minimum time between the start of a batch and its acknowledgement.  The next batch
// of the partition arrives only after that.
struct intake *intake_new(uv_loop_t *loop, struct writer *writer, struct lanes *lanes,
                          struct ingest_stats *stats, unsigned pause_ms);
void intake_free(struct intake *f); // no batch may be in progress

// Callbacks for struct queen_processor_options; ctx is the intake.
void intake_opened(const struct queen_opened *o, void *ctx);
void intake_closed(const char *partition, enum queen_closed why, void *ctx);
void intake_events(struct queen_events *b, void *ctx);
void intake_settled(const char *partition, bool known, void *ctx);

#endif
