// secret.h: values of settings that come from files.
#ifndef QUEEN_CONF_SECRET_H
#define QUEEN_CONF_SECRET_H

#include "conf/table.h"

// Whether NAME_FILE may name a file with the value of the setting NAME: all secrets, and those
// marked so, unless NAME_FILE is a setting of its own.
bool conf_has_file(const struct conf_table *t, const struct conf_key *key);

// The value of NAME_FILE: the contents of the file, without line breaks at the end. In the
// arena. Logs a warning if users other than the owner and its group can read a secret.
MUST_USE int conf_read_file(const struct conf_key *key, const char *path, struct arena *a,
                            const char **value, struct fault *f);

#endif
