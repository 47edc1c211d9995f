// fake_server.h: an HTTP server that answers as a test wants, on a thread of its own.
#ifndef TESTS_CLIENT_FAKE_SERVER_H
#define TESTS_CLIENT_FAKE_SERVER_H

#include <stdbool.h>

struct fake_server;

struct fake_request {
    char method[8];
    char target[512];
    char head[4096]; // all header lines
    char body[65536];
    unsigned number;     // of this server, from 0
    unsigned connection; // from 0
};

enum { FAKE_SILENCE = -1 };

struct fake_answer {
    int status; // 0: close the connection instead; FAKE_SILENCE: never, as a long poll
    const char *body;
    bool close;      // after it
    const char *raw; // these bytes instead of status and body
    bool reset;      // then the connection is reset: the client gets RST, not FIN
    bool deaf;       // from now on nothing is read there, not even that the client has closed
};

// Called on the server's thread for each request, one at a time.
typedef struct fake_answer (*fake_script)(const struct fake_request *r, void *ctx);

struct fake_server *fake_server_new(fake_script script, void *ctx);
const char *fake_server_url(const struct fake_server *s);
unsigned fake_server_requests(const struct fake_server *s);
void fake_server_free(struct fake_server *s);

// An address on which nobody listens.
const char *fake_server_nobody(void);

#endif
