// file.h: reads and replaces small files.
#ifndef QUEEN_CLI_FILE_H
#define QUEEN_CLI_FILE_H

#include <sys/types.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

// Appends to out. A missing file reads as empty; *exists (may be NULL) is set.
MUST_USE int file_read(const char *path, struct buf *out, bool *exists, struct fault *f);
// Writes a new file (path and ".new") and renames it, so that readers see the old or the new
// contents.
MUST_USE int file_replace(const char *path, span text, mode_t mode, struct fault *f);

#endif
