// own_group.c: a temporary consumer group of a command.
#include "cli/own_group.h"

#include "cli/ask.h"
#include "cli/cli.h"

const char *own_group_name(struct cli *cli, const char *purpose)
{
    struct buf b = {0};
    char id[37];

    queen_new_id(id);
    buf_printf(&b, "queen-%s-%s", purpose, id);
    const char *name = arena_cstr(&cli->arena, buf_span(&b));
    buf_free(&b);
    return name;
}

int own_group_settle(struct cli *cli, const struct queen_batch *batch,
                     enum queen_ack_status status)
{
    struct queen_ack acks[OWN_GROUP_BATCH];
    struct queen_error err;

    for (size_t i = 0; i < batch->n; i++)
        acks[i] = queen_ack_of(&batch->items[i], status);
    struct queen_ack_results *r =
        queen_ack(cli->client, batch->items[0].group, acks, batch->n, &err);
    if (!r)
        return ask_failed(cli, &err);
    size_t refused = r->n_refused;
    queen_ack_results_free(r);
    if (refused == 0)
        return CLI_OK;
    return ask_complain(
        cli, CLI_REFUSED,
        "%zu acknowledgements were refused, probably because the lease expired; "
        "those messages are delivered again",
        refused);
}

void own_group_forget(struct cli *cli, const char *name)
{
    struct buf path = {0};
    struct queen_error err;

    path_start(&path, "/api/v1/consumer-groups");
    path_part(&path, name);
    buf_putc(&path, '\0');
    queen_response_free(queen_request(
        cli->client,
        &(struct queen_request){.method = "DELETE", .path = path.ptr, .timeout_ms = 5000},
        &err));
    if (err.code != QUEEN_OK && !cli->out.quiet)
        ask_complain(cli, 0, "the consumer group %s could not be removed: %s", name, err.text);
    buf_free(&path);
}
