// One UDP socket, periodic lookup of the peers' names, heartbeats.
#include "peer/peers.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "peer/address.h"

#define STALE_LOG_US 300000000ull
enum { RESOLVE_MS = 30000, RETRY_RESOLVE_MS = 2000, READ_AT_ONCE = 256 };

struct peer {
    struct peers *peers;
    struct peer_name name;
    uv_getaddrinfo_t lookup;
    bool looking_up, resolved, is_self;
    struct sockaddr_storage address;
    char learned[PEER_SENDER + 1];
};

// The addresses to send to. Immutable once published, so that senders need no lock.  Old ones
// stay until the end; a new one comes only when an address has changed.
struct targets {
    struct targets *older;
    unsigned n;
    struct sockaddr_storage at[];
};

struct peers {
    struct peers_conf conf;
    span secret;
    int fd, family;
    uv_poll_t poll;
    uv_timer_t beat, resolve;
    _Atomic(struct targets *) targets;
    char server_id[PEER_SENDER + 1], session[PEER_SESSION + 1];
    _Atomic uint64_t sequence, sent, unsent;

    uv_mutex_t lock; // of what follows: written on the loop, read by peers_view()
    struct peer peer[PEERS_MAX];
    unsigned n_peers;
    struct replay_windows windows;
    uint64_t received, malformed, bad_signatures, bad_sequences, stale, heartbeats;
    uint64_t stale_logged_us;
};

static void on_readable(uv_poll_t *poll, int status, int events);
static void on_beat(uv_timer_t *timer);
static void on_resolve(uv_timer_t *timer);
static void on_looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found);

// ---- opening ----

static int bind_socket(const struct sockaddr_storage *address, int *fd)
{
    int off = 0;

    *fd = socket(address->ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return -errno;
    if (address->ss_family == AF_INET6)
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); // IPv4 comes in mapped
    if (bind(*fd, (const struct sockaddr *)address, address_len(address)) != 0) {
        int rc = -errno;
        close(*fd);
        return rc;
    }
    return 0;
}

static int own_address(const struct peers_conf *conf, struct sockaddr_storage *out,
                       struct fault *f)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                             .ai_socktype = SOCK_DGRAM},
                    *found;
    char port[8];

    *out = (struct sockaddr_storage){0};
    if (conf->host[0] == '\0') {
        struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)conf->port)};
        memcpy(out, &six, sizeof six);
        return 0;
    }
    snprintf(port, sizeof port, "%u", conf->port);
    int rc = getaddrinfo(conf->host, port, &hints, &found);
    if (rc != 0)
        return fault_set(f, QE_CONF, "HOST: cannot resolve %s: %s", conf->host,
                         gai_strerror(rc));
    memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int open_socket(struct peers *ps, struct fault *f)
{
    int bytes = (int)ps->conf.receive_mb << 20;
    struct sockaddr_storage address;

    int rc = own_address(&ps->conf, &address, f);
    if (rc != 0)
        return rc;
    rc = bind_socket(&address, &ps->fd);
    if (ps->conf.host[0] == '\0' && (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL)) {
        // a machine without IPv6
        struct sockaddr_in four = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)ps->conf.port)};
        memcpy(&address, &four, sizeof four);
        rc = bind_socket(&address, &ps->fd);
    }
    if (rc != 0)
        return fault_set(f, QE_CONF, "QUEEN_UDP_NOTIFY_PORT: cannot use UDP port %u: %s",
                         ps->conf.port, strerror(-rc));
    ps->family = address.ss_family;
    setsockopt(ps->fd, SOL_SOCKET, SO_RCVBUF, &bytes,
               sizeof bytes); // as much as the system allows
    return 0;
}

// "host:port"; a long host name is cut at its end.
static void name_ourselves(struct peers *ps)
{
    char host[256] = "localhost", port[8];
    uint16_t random;

    gethostname(host, sizeof host - 1);
    snprintf(port, sizeof port, ":%u", ps->conf.port);
    snprintf(ps->server_id, sizeof ps->server_id, "%.*s%s", (int)(PEER_SENDER - strlen(port)),
             host, port);
    id_random((uint8_t *)&random, sizeof random);
    replay_session_make(ps->session, clock_wall_us() / 1000, random);
}

int peers_open(struct peers **out, uv_loop_t *loop, const struct peers_conf *conf,
               struct fault *f)
{
    struct peer_name names[PEERS_MAX];
    struct peers *ps = mem_new(struct peers);

    *out = NULL;
    ps->conf = *conf;
    ps->secret = span_of(conf->secret);
    int rc = peer_names_parse(conf->peers, conf->port, names, &ps->n_peers, f);
    if (rc == 0)
        rc = open_socket(ps, f);
    if (rc != 0) {
        free(ps);
        return rc;
    }
    for (unsigned i = 0; i < ps->n_peers; i++) {
        ps->peer[i].peers = ps;
        ps->peer[i].name = names[i];
        ps->peer[i].lookup.data = &ps->peer[i];
    }
    name_ourselves(ps);
    uv_mutex_init(&ps->lock);
    if (uv_poll_init(loop, &ps->poll, ps->fd) != 0)
        BUG("a fresh socket cannot be watched");
    uv_timer_init(loop, &ps->beat);
    uv_timer_init(loop, &ps->resolve);
    ps->poll.data = ps->beat.data = ps->resolve.data = ps;
    uv_poll_start(&ps->poll, UV_READABLE, on_readable);
    uv_timer_start(&ps->beat, on_beat, 0, conf->heartbeat_ms);
    uv_timer_start(&ps->resolve, on_resolve, 0, 0);
    if (ps->secret.len == 0)
        log_warn("peers.unsigned", "port=%u advice=\"set QUEEN_SYNC_SECRET\"", conf->port);
    log_info("peers.open", "port=%u peers=%u signed=%s", conf->port, ps->n_peers,
             ps->secret.len > 0 ? "true" : "false");
    *out = ps;
    return 0;
}

// ---- names ----

static void peers_publish(struct peers *ps)
{
    struct targets *t = mem_zalloc(1, sizeof *t + ps->n_peers * sizeof t->at[0]);

    for (unsigned i = 0; i < ps->n_peers; i++)
        if (ps->peer[i].resolved && !ps->peer[i].is_self)
            t->at[t->n++] = ps->peer[i].address;
    t->older = atomic_load(&ps->targets);
    atomic_store(&ps->targets, t);
}

static void on_resolve(uv_timer_t *timer)
{
    struct peers *ps = timer->data;
    struct addrinfo hints = {.ai_family = ps->family, .ai_socktype = SOCK_DGRAM};
    bool all = true;

    if (ps->family == AF_INET6)
        hints.ai_flags = AI_V4MAPPED | AI_ALL;
    for (unsigned i = 0; i < ps->n_peers; i++) {
        struct peer *p = &ps->peer[i];
        all = all && p->resolved;
        if (!p->looking_up)
            p->looking_up = uv_getaddrinfo(timer->loop, &p->lookup, on_looked_up, p->name.host,
                                           NULL, &hints) == 0;
    }
    uv_timer_start(timer, on_resolve, all ? RESOLVE_MS : RETRY_RESOLVE_MS, 0);
}

// IPv4 first where a name has both: that is what UDP between containers usually reaches.
static const struct addrinfo *choose_address(const struct addrinfo *found)
{
    for (const struct addrinfo *a = found; a; a = a->ai_next)
        if (a->ai_family == AF_INET ||
            IN6_IS_ADDR_V4MAPPED(
                &((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr))
            return a;
    return found;
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr *b)
{
    char x[PEER_ADDRESS], y[PEER_ADDRESS];
    struct sockaddr_storage copy = {0};

    memcpy(&copy, b,
           b->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    address_format(a, x);
    address_format(&copy, y);
    return x[0] != '\0' && strcmp(x, y) == 0;
}

// The list may contain our own address, so that all servers can be given the same one. We
// compare it with the addresses of this machine. A datagram of ours that comes back proves
// nothing: an attacker may return it in the name of a peer, to make us stop notifying it.
static bool is_own_address(const struct peers *ps, const struct sockaddr_storage *address)
{
    unsigned port =
        ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                             : ((const struct sockaddr_in *)address)->sin_port);
    uv_interface_address_t *own = NULL;
    int n = 0;
    bool found = false;

    if (port != ps->conf.port || uv_interface_addresses(&own, &n) != 0)
        return false;
    for (int i = 0; i < n && !found; i++)
        found = is_same_host(address, (const struct sockaddr *)&own[i].address);
    uv_free_interface_addresses(own, n);
    return found;
}

static void on_looked_up(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct peer *p = lookup->data;
    struct peers *ps = p->peers;
    struct sockaddr_storage address = {0};

    p->looking_up = false;
    if (status == UV_ECANCELED || uv_is_closing((uv_handle_t *)&ps->resolve)) {
        uv_freeaddrinfo(found);
        return;
    }
    if (status != 0 || !found) { // the address of before holds until there is a better one
        log_debug("peers.resolve_failed", "host=%s error=\"%s\"", p->name.host,
                  uv_strerror(status));
        return;
    }
    const struct addrinfo *a = choose_address(found);
    memcpy(&address, a->ai_addr, a->ai_addrlen);
    uv_freeaddrinfo(found);
    if (address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)p->name.port);
    else
        ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)p->name.port);
    if (p->resolved && address_eq(&address, &p->address))
        return;
    uv_mutex_lock(&ps->lock);
    p->address = address;
    p->resolved = true;
    p->is_self = is_own_address(ps, &address);
    p->learned[0] = '\0';
    uv_mutex_unlock(&ps->lock);
    peers_publish(ps);
}

// ---- sending ----

void peers_notify(struct peers *ps, enum peer_kind kind, span queue, span partition,
                  bool enabled)
{
    const struct targets *t = atomic_load_explicit(&ps->targets, memory_order_acquire);
    struct peer_note note = {.kind = (uint8_t)kind,
                             .at_ms = clock_wall_us() / 1000,
                             .queue = queue,
                             .partition = partition,
                             .enabled = enabled};
    uint8_t datagram[PEER_MAX];

    if (!t || t->n == 0)
        return;
    memcpy(note.sender, ps->server_id, sizeof note.sender);
    memcpy(note.session, ps->session, sizeof note.session);
    note.sequence = atomic_fetch_add_explicit(&ps->sequence, 1, memory_order_relaxed) + 1;
    size_t n = peer_encode(&note, ps->secret, datagram);
    for (unsigned i = 0; i < t->n; i++) {
        bool ok = n > 0 && sendto(ps->fd, datagram, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                                  (const struct sockaddr *)&t->at[i],
                                  address_len(&t->at[i])) == (ssize_t)n;
        atomic_fetch_add_explicit(ok ? &ps->sent : &ps->unsent, 1, memory_order_relaxed);
    }
}

static void on_beat(uv_timer_t *timer)
{
    peers_notify(timer->data, PEER_HEARTBEAT, SPAN_NONE, SPAN_NONE, false);
}

// ---- receiving ----

static struct peer *peer_at(struct peers *ps, const struct sockaddr_storage *from)
{
    for (unsigned i = 0; i < ps->n_peers; i++)
        if (ps->peer[i].resolved && address_eq(&ps->peer[i].address, from))
            return &ps->peer[i];
    return NULL;
}

// A replayed datagram, or a server whose clock is wrong and whose notifications are therefore
// ignored: logged, at most once in five minutes.
static void note_stale(struct peers *ps, const struct peer_note *note)
{
    uint64_t now = clock_mono_us();

    ps->stale++;
    if (ps->stale_logged_us != 0 && now - ps->stale_logged_us < STALE_LOG_US)
        return;
    ps->stale_logged_us = now;
    log_warn("peers.clock_differs", "seconds=%lld total=%llu",
             ((long long)note->at_ms - (long long)(clock_wall_us() / 1000)) / 1000,
             (unsigned long long)ps->stale);
}

// Whether the note is new; under the lock.
static bool admit(struct peers *ps, span datagram, const struct sockaddr_storage *from,
                  struct peer_note *note)
{
    struct peer *p = peer_at(ps, from);

    ps->received++;
    switch (peer_decode(datagram, ps->secret, note)) {
    case PEER_OK:
        break;
    case PEER_MALFORMED:
        ps->malformed++;
        return false;
    case PEER_BAD_SIGNATURE:
        ps->bad_signatures++;
        return false;
    }
    if (strcmp(note->session, ps->session) == 0)
        return false; // sent by us: our own address is not known as such, or it was returned
    switch (
        replay_window_admit(&ps->windows, note,
                            &(struct replay_clock){.now_us = clock_mono_us(),
                                                   .wall_ms = clock_wall_us() / 1000,
                                                   .dead_us = ps->conf.dead_ms * 1000ull})) {
    case REPLAY_NEW:
        break;
    case REPLAY_OLD:
        ps->bad_sequences++;
        return false;
    case REPLAY_STALE:
        note_stale(ps, note);
        return false;
    }
    if (p)
        memcpy(p->learned, note->sender, sizeof p->learned);
    ps->heartbeats += note->kind == PEER_HEARTBEAT;
    return note->kind != PEER_HEARTBEAT;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct peers *ps = poll->data;
    char datagram[PEER_MAX + 1]; // one more, so that a longer one shows

    (void)status, (void)events;
    for (unsigned i = 0; i < READ_AT_ONCE; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        struct peer_note note;
        ssize_t n = recvfrom(ps->fd, datagram, sizeof datagram, MSG_DONTWAIT,
                             (struct sockaddr *)&from, &len);
        if (n < 0)
            return;
        uv_mutex_lock(&ps->lock);
        bool news = admit(ps, (span){datagram, (size_t)n}, &from, &note);
        uv_mutex_unlock(&ps->lock);
        if (news)
            ps->conf.on_note(ps->conf.ctx, &note);
    }
}

// ---- the end ----

void peers_close(struct peers *ps)
{
    for (unsigned i = 0; i < ps->n_peers; i++)
        if (ps->peer[i].looking_up)
            uv_cancel((uv_req_t *)&ps->peer[i].lookup);
    uv_close((uv_handle_t *)&ps->poll, NULL);
    uv_close((uv_handle_t *)&ps->beat, NULL);
    uv_close((uv_handle_t *)&ps->resolve, NULL);
}

void peers_free(struct peers *ps)
{
    if (!ps)
        return;
    struct targets *t = atomic_load(&ps->targets);
    while (t) {
        struct targets *older = t->older;
        free(t);
        t = older;
    }
    close(ps->fd);
    uv_mutex_destroy(&ps->lock);
    free(ps);
}

// ---- state ----

void peers_view(struct peers *ps, struct peers_view *v)
{
    uint64_t now = clock_mono_us();

    *v = (struct peers_view){.port = ps->conf.port, .n_peers = ps->n_peers};
    memcpy(v->server_id, ps->server_id, sizeof v->server_id);
    memcpy(v->session, ps->session, sizeof v->session);
    v->sent = atomic_load_explicit(&ps->sent, memory_order_relaxed);
    uv_mutex_lock(&ps->lock);
    v->received = ps->received;
    v->dropped = ps->malformed + atomic_load_explicit(&ps->unsent, memory_order_relaxed);
    v->bad_signatures = ps->bad_signatures;
    v->bad_sequences = ps->bad_sequences;
    v->stale = ps->stale;
    v->heartbeats = ps->heartbeats;
    v->restarts = ps->windows.n_restarts;
    v->n_tracked = ps->windows.n;
    v->n_alive = replay_window_alive(&ps->windows, now, ps->conf.dead_ms * 1000ull);
    for (unsigned i = 0; i < ps->n_peers; i++) {
        const struct peer *p = &ps->peer[i];
        struct peer_view *pv = &v->peer[i];
        memcpy(pv->host, p->name.host, sizeof pv->host);
        pv->port = p->name.port;
        pv->resolved = p->resolved;
        pv->is_self = p->is_self;
        if (p->resolved)
            address_format(&p->address, pv->address);
        memcpy(pv->learned, p->learned, sizeof pv->learned);
    }
    uv_mutex_unlock(&ps->lock);
}
