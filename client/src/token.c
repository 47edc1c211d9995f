// token.c: reads the token file, again when it has changed.
#include "token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fail.h"

enum { MAX_TOKEN = 64 << 10 };

static bool has_changed(const struct token *t, const struct stat *st)
{
    return st->st_mtim.tv_sec != t->changed.tv_sec ||
           st->st_mtim.tv_nsec != t->changed.tv_nsec || st->st_size != t->size ||
           st->st_ino != t->inode;
}

// A header value: surrounding white space is removed, control characters are refused.
static char *clean(const char *text, size_t len)
{
    while (len > 0 && (unsigned char)text[len - 1] <= ' ')
        len--;
    while (len > 0 && (unsigned char)*text <= ' ')
        text++, len--;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 127)
            return NULL;
    return len > 0 ? mem_strndup(text, len) : NULL;
}

static bool read_file(struct token *t)
{
    char bytes[MAX_TOKEN];
    struct stat st;
    FILE *f = fopen(t->path, "re");

    if (!f)
        return false;
    // A write after the fstat() is detected as a change later.
    bool ok = fstat(fileno(f), &st) == 0;
    size_t n = fread(bytes, 1, sizeof bytes, f);
    ok = ok && !ferror(f) && n < sizeof bytes;
    fclose(f);
    char *text = ok ? clean(bytes, n) : NULL;
    if (!text)
        return false;
    free(t->text);
    t->text = text;
    t->changed = st.st_mtim;
    t->size = st.st_size;
    t->inode = st.st_ino;
    return true;
}

int token_init(struct token *t, const char *text, const char *path, struct queen_error *err)
{
    *t = (struct token){0};
    if (text && path)
        return fail_set(err, QUEEN_E_ARGUMENT, "token and token_file are both given");
    if (text) {
        t->text = clean(text, strlen(text));
        if (!t->text)
            return fail_set(err, QUEEN_E_ARGUMENT, "token is empty or has white space inside");
    }
    if (path) {
        t->path = mem_strndup(path, strlen(path));
        errno = 0;
        if (!read_file(t)) {
            int why = errno;
            token_deinit(t);
            return fail_set(err, QUEEN_E_ARGUMENT, "token_file %s: %s", path,
                            why != 0 ? strerror(why) : "holds no token");
        }
    }
    return 0;
}

void token_deinit(struct token *t)
{
    free(t->text);
    free(t->path);
    *t = (struct token){0};
}

span token_now(struct token *t)
{
    struct stat st;

    // While the file is being replaced, keep using the old token.
    if (t->path && stat(t->path, &st) == 0 && has_changed(t, &st))
        (void)read_file(t);
    return span_of(t->text);
}
