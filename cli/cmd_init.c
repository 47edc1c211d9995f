// `queen init`: makes the first API key.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/api_key.h"
#include "cli/ask.h"
#include "cli/cli.h"

// Never overwrites: a server may be using the key.
static int write_new(struct cli *cli, const char *path, const char *text)
{
    size_t n = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return ask_complain(cli, CLI_REFUSED, "%s exists already and is left as it is", path);
    if (fd < 0)
        return ask_complain(cli, CLI_FAILED, "cannot create %s: %s", path, strerror(errno));
    bool written = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
    int failed = errno;
    if (close(fd) != 0 && written) {
        failed = errno;
        written = false;
    }
    if (written)
        return CLI_OK;
    unlink(path);
    return ask_complain(cli, CLI_FAILED, "cannot write %s: %s", path, strerror(failed));
}

static int cmd_init(struct cli *cli)
{
    const char *path = cli->args.n_rest > 0 ? cli->args.rest[0] : "queen-admin.key";
    char key[API_KEY_TEXT + 1], line[API_KEY_TEXT + 2];

    api_key_make(key);
    snprintf(line, sizeof line, "%s\n", key);
    int rc = write_new(cli, path, line);
    if (rc != CLI_OK)
        return rc;
    if (cli->out.json) {
        struct buf b = {0};
        buf_printf(&b, "{\"key\":\"%s\"", key);
        ask_put_text(&b, "file", path);
        buf_putc(&b, '}');
        out_line(buf_span(&b));
        buf_free(&b);
        return CLI_OK;
    }
    printf("%s\n", key);
    out_note(&cli->out,
             "This is the administrator's key; it is also in %s, which only you can read.\n"
             "Start the server with it:  queen serve --admin-key-file %s\n"
             "Use it:                    queen key ls --token-file %s",
             path, path, path);
    return CLI_OK;
}

const struct cli_command cli_init = {
    .name = "init",
    .args = "[FILE]",
    .summary = "make the administrator's API key",
    .about =
        "Writes a new key into FILE (queen-admin.key), readable only by its owner, and prints "
        "it. A "
        "server started with this file accepts requests only with this key, with keys made by "
        "queen key create, or with tokens. An existing file is not overwritten.",
    .examples = "queen init /etc/queen/admin.key|then: queen serve --admin-key-file "
                "/etc/queen/admin.key",
    .offline = true,
    .run = cmd_init,
};
