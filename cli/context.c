// context.c: reads and writes the file of named servers.
#include "cli/context.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/file.h"
#include "cli/pick.h"
#include "json/write.h"

// The folder of the file; NULL: $HOME is not set.
static const char *folder(struct arena *a)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    struct buf b = {0};

    if (config && config[0] == '/')
        buf_printf(&b, "%s/queen", config);
    else if (home && home[0] == '/')
        buf_printf(&b, "%s/.config/queen", home);
    const char *path = b.len > 0 ? arena_cstr(a, buf_span(&b)) : NULL;
    buf_free(&b);
    return path;
}

static const char *inside(struct arena *a, const char *dir, const char *name)
{
    struct buf b = {0};

    buf_printf(&b, "%s/%s", dir, name);
    const char *path = arena_cstr(a, buf_span(&b));
    buf_free(&b);
    return path;
}

int contexts_read(struct contexts *out, struct arena *a, struct fault *f)
{
    const char *dir = folder(a);
    struct buf text = {0};

    *out = (struct contexts){0};
    if (!dir)
        return 0;
    const char *path = inside(a, dir, "contexts");
    int rc = file_read(path, &text, NULL, f);
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    out->items = arena_new_array(a, struct context, lines + 1);

    span rest = buf_span(&text), line;
    while (rc == 0 && str_split(&rest, '\n', &line)) {
        if (str_trim(line).len == 0)
            continue;
        struct context c = {
            .name = pick_cstr(line, "name", a),
            .url = pick_cstr(line, "url", a),
            .token_file = pick_cstr(line, "tokenFile", a),
            .ca_file = pick_cstr(line, "caFile", a),
            .insecure = pick_bool(line, "insecure"),
            .current = pick_bool(line, "current"),
        };
        if (!c.name || !c.url)
            rc = fault_set(f, QE_CONF, "line %zu of %s is not a valid context; remove it",
                           out->n + 1, path);
        else
            out->items[out->n++] = c;
    }
    buf_free(&text);
    return rc;
}

void context_put(struct buf *b, const struct context *c)
{
    buf_put_lit(b, "{\"name\":");
    js_put_text(b, span_of(c->name));
    buf_put_lit(b, ",\"url\":");
    js_put_text(b, span_of(c->url));
    if (c->token_file) {
        buf_put_lit(b, ",\"tokenFile\":");
        js_put_text(b, span_of(c->token_file));
    }
    if (c->ca_file) {
        buf_put_lit(b, ",\"caFile\":");
        js_put_text(b, span_of(c->ca_file));
    }
    if (c->insecure)
        buf_put_lit(b, ",\"insecure\":true");
    if (c->current)
        buf_put_lit(b, ",\"current\":true");
    buf_put_lit(b, "}\n");
}

// mkdir -p
static void make_folders(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0700); // a failure shows when the file is opened
            *p = '/';
        }
    (void)mkdir(path, 0700);
}

int contexts_write(const struct contexts *c, struct arena *a, struct fault *f)
{
    const char *dir = folder(a);
    struct buf text = {0};

    if (!dir)
        return fault_set(f, QE_CONF, "$HOME is not set; set XDG_CONFIG_HOME");
    char *folders = strdup(dir);
    if (folders)
        make_folders(folders);
    free(folders);

    for (size_t i = 0; i < c->n; i++)
        context_put(&text, &c->items[i]);
    int rc = file_replace(inside(a, dir, "contexts"), buf_span(&text), 0600, f);
    buf_free(&text);
    return rc;
}

struct context *contexts_named(const struct contexts *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->items[i].name, name) == 0)
            return &c->items[i];
    return NULL;
}

int context_find(const char *name, struct arena *a, struct context *out, struct fault *f)
{
    struct contexts all;
    int rc = contexts_read(&all, a, f);

    *out = (struct context){0};
    if (rc != 0)
        return rc;
    if (name) {
        const struct context *c = contexts_named(&all, name);
        if (!c)
            return fault_set(f, QE_NOT_FOUND, "no context \"%s\"; see queen context ls", name);
        *out = *c;
        return 0;
    }
    for (size_t i = 0; i < all.n; i++)
        if (all.items[i].current)
            *out = all.items[i];
    return 0;
}
