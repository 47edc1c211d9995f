// file.h: small files, read and replaced as a whole.
#ifndef QUEEN_CLI_FILE_H
#define QUEEN_CLI_FILE_H

#include <sys/types.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

// Appends to out.  A file that is not there reads as empty; *exists (may be NULL) tells.
MUST_USE int file_read(const char *path, struct buf *out, bool *exists, struct fault *f);
// Writes a new file (path and ".new") and puts it in the place of the old one, so that no
// reader sees half of it.
MUST_USE int file_replace(const char *path, span text, mode_t mode, struct fault *f);

#endif
