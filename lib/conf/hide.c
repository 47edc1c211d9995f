// hide.c: removes secrets from the process's environment and command line.
//
// Both are readable in /proc for as long as the process lives, and children inherit the
// environment. The kernel shows the memory itself, so the bytes are overwritten in place.
#include <openssl/crypto.h>
#include <string.h>

#include "base/mem.h"
#include "conf/table.h"

// Copies of values. Settings point to them for the life of the process.
struct kept {
    struct kept *next;
    char text[];
};
static struct kept *copies;

static const char *keep_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    struct kept *k = mem_realloc(NULL, sizeof *k + size);

    memcpy(k->text, text, size);
    k->next = copies;
    copies = k;
    return k->text;
}

static bool is_inside(const char *text, const char *whole)
{
    return text >= whole && text <= whole + strlen(whole);
}

// The value of NAME=value; NULL: another variable.
static char *value_of(char *entry, const char *name)
{
    size_t len = name ? strlen(name) : 0;

    return name && strncmp(entry, name, len) == 0 && entry[len] == '=' ? entry + len + 1 : NULL;
}

static void copy_value(const char **field, const char *value)
{
    if (is_inside(*field, value))
        *field = keep_copy(*field);
}

static void wipe(char *text) { OPENSSL_cleanse(text, strlen(text)); }

// The argument that holds the value may be --name=value or value.
static void hide_in_arguments(const char **field, int n, char *args[])
{
    for (int i = 0; i < n; i++) {
        char *equals = strchr(args[i], '=');
        if (!is_inside(*field, args[i]) || **field == '\0')
            continue;
        char *from = *field == args[i] ? args[i] : equals ? equals + 1 : args[i];
        *field = keep_copy(*field);
        wipe(from);
        return;
    }
}

void conf_hide_secrets(const struct conf_values *v, int n, char *args[], char *env[])
{
    for (unsigned row = 0; row < v->table->n_keys; row++) {
        const struct conf_key *key = &v->table->keys[row];
        const char **field = (const char **)(void *)((char *)v->fields + key->offset);
        if (!key->secret)
            continue;
        hide_in_arguments(field, n, args);
        for (char **e = env; *e; e++) {
            char *value = value_of(*e, key->name);
            if (!value)
                value = value_of(*e, key->alias);
            if (!value)
                continue;
            copy_value(field, value);
            wipe(value);
        }
    }
}
