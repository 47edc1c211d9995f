// print_schemas.c: platform/docs/events/<type>.json, from the rules.
//
//      build/release/tests/unit/ingest/print_schemas FOLDER
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "ingest/money.h"
#include "ingest/rules.h"
#include "json/write.h"

#define DAY   "(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
#define CLOCK "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
#define ZONE  "([Zz]|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
#define UUID  "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"

static void put_pattern(struct buf *b, const char *pattern)
{
    buf_put_lit(b, "\"pattern\": ");
    js_put_text(b, span_of(pattern));
}

static void put_limits(struct buf *b, const struct event_field *f)
{
    if (f->kind == FIELD_INT) {
        buf_printf(b, "\"minimum\": %" PRIi64 ", \"maximum\": %" PRIi64, f->min, f->max);
        return;
    }
    buf_put_lit(b, "\"multipleOf\": 0.01, \"minimum\": ");
    money_put(b, f->min);
    buf_put_lit(b, ", \"maximum\": ");
    money_put(b, f->max);
}

static void put_choices(struct buf *b, const struct event_field *f)
{
    buf_put_lit(b, "\"enum\": [");
    for (unsigned i = 0; f->choices[i]; i++) {
        if (i > 0)
            buf_put_lit(b, ", ");
        js_put_text(b, span_of(f->choices[i]));
    }
    buf_put(b, f->required ? SPAN("]") : SPAN(", null]"));
}

static void put_field(struct buf *b, const struct event_field *f)
{
    static const char *const types[] = {
        [FIELD_UUID] = "string",  [FIELD_TEXT] = "string",  [FIELD_INT] = "integer",
        [FIELD_MONEY] = "number", [FIELD_BOOL] = "boolean", [FIELD_DATE] = "string",
        [FIELD_TIME] = "string",  [FIELD_TAGS] = "array",   [FIELD_CHOICE] = "string",
    };

    buf_put_lit(b, "        ");
    js_put_text(b, span_of(f->name));
    if (f->kind == FIELD_CHOICE) {
        buf_put_lit(b, ": {");
    } else {
        buf_printf(b, f->required ? ": {\"type\": \"%s\"" : ": {\"type\": [\"%s\", \"null\"]",
                   types[f->kind]);
        if (f->kind != FIELD_BOOL)
            buf_put_lit(b, ", ");
    }
    switch (f->kind) {
    case FIELD_UUID:
        put_pattern(b, UUID);
        break;
    case FIELD_TEXT:
        buf_printf(b, "\"maxLength\": %" PRIi64, f->max);
        break;
    case FIELD_INT:
    case FIELD_MONEY:
        put_limits(b, f);
        break;
    case FIELD_BOOL:
        break;
    case FIELD_DATE:
        put_pattern(b, "^" DAY "$");
        buf_put_lit(b, ", \"format\": \"date\"");
        break;
    case FIELD_TIME:
        put_pattern(b, "^" DAY "[Tt ]" CLOCK ZONE "$");
        break;
    case FIELD_TAGS:
        buf_printf(b,
                   "\"maxItems\": %d, \"items\": {\"type\": \"string\", \"maxLength\": %" PRIi64
                   "}",
                   EVENT_MAX_TAGS, f->max);
        break;
    case FIELD_CHOICE:
        put_choices(b, f);
        break;
    }
    buf_putc(b, '}');
}

static void put_schema(struct buf *b, const struct event_type *t)
{
    const char *sep = "";

    buf_put_lit(
        b, "{\n  \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n  \"title\": ");
    js_put_text(b, span_of(t->name));
    buf_put_lit(b, ",\n  \"description\": ");
    js_put_text(b, span_of(t->about));
    buf_put_lit(b, ",\n  \"type\": \"object\",\n"
                   "  \"required\": [\"tenant\", \"id\", \"type\", \"at\", \"data\"],\n"
                   "  \"properties\": {\n"
                   "    \"tenant\": {\"type\": \"string\", ");
    put_pattern(b, "^[a-z0-9][a-z0-9_-]{0,47}$");
    buf_put_lit(b, "},\n"
                   "    \"id\": {\"type\": \"string\", ");
    put_pattern(b, UUID);
    buf_put_lit(b, "},\n    \"type\": {\"const\": ");
    js_put_text(b, span_of(t->name));
    buf_put_lit(b, "},\n    \"at\": {\"type\": \"string\", ");
    put_pattern(b, "^" DAY "[Tt ]" CLOCK ZONE "$");
    buf_put_lit(b, "},\n    \"data\": {\n      \"type\": \"object\",\n      \"required\": [");
    for (unsigned i = 0; i < t->n_fields; i++) {
        if (!t->fields[i].required)
            continue;
        buf_put(b, span_of(sep));
        sep = ", ";
        js_put_text(b, span_of(t->fields[i].name));
    }
    buf_put_lit(b, "],\n      \"additionalProperties\": false,\n      \"properties\": {\n");
    for (unsigned i = 0; i < t->n_fields; i++) {
        put_field(b, &t->fields[i]);
        buf_put(b, i + 1 < t->n_fields ? SPAN(",\n") : SPAN("\n"));
    }
    buf_put_lit(b, "      }\n    }\n  }\n}\n");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    for (unsigned i = 0; i < n_event_types; i++) {
        struct buf b = {0};
        char path[4096];
        put_schema(&b, &event_types[i]);
        snprintf(path, sizeof path, "%s/%s.json", argv[1], event_types[i].name);
        FILE *f = fopen(path, "w");
        if (!f || fwrite(b.ptr, 1, b.len, f) != b.len || fclose(f) != 0) {
            perror(path);
            return 1;
        }
        buf_free(&b);
    }
    return 0;
}
