// rule_book.c: reads a file of rules.
#include "auth/rule_book.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/rules.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_FILE = 4 << 20 };

struct page {
    struct buf subject, rules;
    UT_hash_handle hh;
};

struct rule_book {
    _Atomic unsigned n_refs;
    struct buf text; // the file
    struct page *pages;
};

static int read_text(const char *path, struct buf *text, struct fault *f)
{
    char piece[4096];
    size_t n;
    FILE *file = fopen(path, "re");

    if (!file)
        return fault_set(f, QE_CONF, "cannot open %s: %s", path, strerror(errno));
    text->max = MAX_FILE;
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        buf_put(text, (span){piece, n});
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed || text->failed)
        return fault_set(f, QE_CONF, "%s cannot be read or is larger than %d bytes", path,
                         MAX_FILE);
    return 0;
}

static span take_word(span *line)
{
    size_t n = 0;

    *line = str_trim(*line);
    while (n < line->len && line->ptr[n] != ' ' && line->ptr[n] != '\t')
        n++;
    span word = {line->ptr, n};
    *line = str_trim((span){line->ptr + n, line->len - n});
    return word;
}

static int add_line(struct rule_book *b, span line, struct fault *f)
{
    struct access_rules *rules;
    struct page *p;

    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    span subject = take_word(&line);
    if (subject.len == 0 || subject.ptr[0] == '#')
        return 0;
    int rc = access_rules_parse(line, &rules, f);
    if (rc != 0)
        return rc;
    access_rules_unref(rules);
    HASH_FIND(hh, b->pages, subject.ptr, subject.len, p);
    if (!p) {
        p = mem_new(struct page);
        buf_put(&p->subject, subject);
        HASH_ADD_KEYPTR(hh, b->pages, p->subject.ptr, p->subject.len, p);
    } else {
        buf_putc(&p->rules, ',');
    }
    buf_put(&p->rules, line);
    return 0;
}

int rule_book_read(const char *path, struct rule_book **out, struct fault *f)
{
    struct rule_book *b = mem_new(struct rule_book);
    unsigned number = 0;
    span line;

    *out = NULL;
    atomic_init(&b->n_refs, 1);
    int rc = read_text(path, &b->text, f);
    span rest = b->text.len > 0 ? buf_span(&b->text) : SPAN_NONE;
    while (rc == 0 && str_split(&rest, '\n', &line)) {
        number++;
        rc = add_line(b, line, f);
        if (rc != 0) {
            fault_prefix(f, "%s, line %u: ", path, number);
            rc = f->code = QE_CONF;
        }
    }
    if (rc != 0)
        rule_book_unref(b);
    else
        *out = b;
    return rc;
}

struct rule_book *rule_book_ref(struct rule_book *b)
{
    if (b)
        atomic_fetch_add(&b->n_refs, 1);
    return b;
}

void rule_book_unref(struct rule_book *b)
{
    struct page *p, *next;

    if (!b || atomic_fetch_sub(&b->n_refs, 1) > 1)
        return;
    HASH_ITER (hh, b->pages, p, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DELETE(hh, b->pages, p);
        buf_free(&p->subject);
        buf_free(&p->rules);
        free(p);
    }
    buf_free(&b->text);
    free(b);
}

span rule_book_find(const struct rule_book *b, span subject)
{
    struct page *p;

    if (!b || subject.len == 0)
        return SPAN_NONE;
    HASH_FIND(hh, b->pages, subject.ptr, subject.len, p);
    return p ? buf_span(&p->rules) : SPAN_NONE;
}

bool rule_book_equal(const struct rule_book *a, const struct rule_book *b)
{
    if (!a || !b)
        return a == b;
    return span_eq(buf_span(&a->text), buf_span(&b->text));
}
