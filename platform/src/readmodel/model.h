// model.h: the read models of a tenant.
#ifndef QUEEN_READMODEL_MODEL_H
#define QUEEN_READMODEL_MODEL_H

#include <stdbool.h>

#include "base/span.h"

enum model { MODEL_ATTRIBUTES, MODEL_TRANSACTIONS, N_MODELS };

span model_name(enum model m); // as in the databases
bool model_parse(span name, enum model *m);

#endif
