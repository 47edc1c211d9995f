// model.c: names of the read models.
#include "readmodel/model.h"

static const char *const names[N_MODELS] = {
    [MODEL_ATTRIBUTES] = "customer_attributes",
    [MODEL_TRANSACTIONS] = "customer_transactions",
};

span model_name(enum model m) { return span_of(names[m]); }

bool model_parse(span name, enum model *m)
{
    for (unsigned i = 0; i < N_MODELS; i++)
        if (span_eq(name, span_of(names[i]))) {
            *m = (enum model)i;
            return true;
        }
    return false;
}
