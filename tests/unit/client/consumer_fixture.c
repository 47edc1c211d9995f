// consumer_fixture.c: see consumer_fixture.h.
#include "consumer_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct queen_error err;

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;

    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static struct fake_answer pop(struct store *s, const struct fake_request *r)
{
    static char text[70000];
    unsigned batch = (unsigned)atoi(strstr(r->target, "batch=") + 6);
    size_t len;

    s->n_pops++;
    state_changed();
    wait_until(!s->hold);
    if (s->pop_status != 0)
        return (struct fake_answer){.status = s->pop_status, .body = "{\"error\":\"no\"}"};
    if (s->left == 0)
        return (struct fake_answer){.status = 204};
    assert_true(s->n_leases < LEASES);
    len = (size_t)sprintf(text, "{\"leaseId\":\"%u\",\"messages\":[", s->n_leases);
    for (unsigned i = 0; i < batch + s->too_many && s->left > 0; i++, s->left--)
        len += (size_t)sprintf(text + len,
                               "%s{\"id\":\"i\",\"transactionId\":\"t%u\",\"partitionId\":"
                               "\"p\",\"leaseId\":\"%u\","
                               "\"data\":%u%s,\"retryCount\":2}",
                               i > 0 ? "," : "", s->next, s->n_leases, s->next,
                               s->more ? s->more : ""),
            s->next++;
    strcpy(text + len, "]}");
    s->n_leases++;
    return (struct fake_answer){.status = 200, .body = text};
}

struct fake_answer serve(const struct fake_request *r, void *ctx)
{
    static char text[65536];
    struct store *s = ctx;

    if (strncmp(r->target, "/api/v1/pop", 11) == 0) {
        struct fake_answer a = pop(s, r);
        a.deaf = s->deaf;
        return a;
    }
    if (strncmp(r->target, "/api/v1/lease/", 14) == 0) {
        unsigned lease = (unsigned)atoi(r->target + 14);
        s->n_extends[lease]++;
        state_changed();
        return (struct fake_answer){.status = lease == 0 && s->lost ? 404 : 200,
                                    .body = "{\"error\":\"gone\"}"};
    }
    strcpy(s->acks, r->body);
    unsigned n = count(r->body, "\"transactionId\"");
    s->n_retried += count(r->body, "\"status\":\"retry\"");
    strcpy(text, "[");
    for (unsigned i = 0; i < n; i++) {
        strcat(text, i > 0 ? ",{\"success\":true" : "{\"success\":true");
        strcat(strcat(text, s->ack_more ? s->ack_more : ""), "}");
    }
    strcat(text, "]");
    s->n_acked += n;
    state_changed();
    return (struct fake_answer){.status = 200, .body = text};
}

struct rig *open_rig(unsigned messages)
{
    static struct rig rig;

    memset(&rig, 0, sizeof rig);
    rig.store.left = messages;
    rig.server = fake_server_new(serve, &rig.store);
    rig.client = queen_client_new(&(struct queen_options){.url = fake_server_url(rig.server),
                                                          .attempts = 1,
                                                          .retry_delay_ms = 5},
                                  &err);
    return &rig;
}

void close_rig(struct rig *g)
{
    queen_client_free(g->client);
    fake_server_free(g->server);
}

void on_error(const struct queen_error *e, void *ctx)
{
    (void)e;
    ((struct rig *)ctx)->n_errors++;
    state_changed();
}

struct queen_consumer_options options(struct rig *g, queen_handler handler)
{
    return (struct queen_consumer_options){
        .pop = {.queue = "q", .group = "g", .batch = 4},
        .no_wait = true,
        .handler = handler,
        .on_error = on_error,
        .ctx = g,
    };
}

void let_go(_Atomic bool *flag, bool value)
{
    *flag = value;
    state_changed();
}

// The client's thread has finished earlier work: a request that no server gets goes
// behind that.
void let_the_client_catch_up(struct rig *g)
{
    assert_null(queen_request(g->client, &(struct queen_request){.path = "/\n"}, &err));
    assert_int_equal(err.code, QUEEN_E_ARGUMENT);
}
