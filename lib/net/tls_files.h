// tls_files.h: certificate, key and client authorities of a server, loaded again when the files
// change.
#ifndef QUEEN_NET_TLS_FILES_H
#define QUEEN_NET_TLS_FILES_H

#include <stdint.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"

struct ssl_ctx_st;
struct tls_server_conf;
struct tls_files;

// Fails if the files cannot be used. The names are borrowed.
MUST_USE int tls_files_open(struct tls_files **out, uv_loop_t *loop,
                            const struct tls_server_conf *conf, struct fault *f);
// Loads the files now, whether or not they have changed. If they cannot be used, the previous
// certificate stays and the failure is logged.
void tls_files_reload(struct tls_files *t);
// When the certificate in use expires: seconds since 1970. Any thread may read it until
// tls_files_close().
const _Atomic int64_t *tls_files_expires(const struct tls_files *t);
struct ssl_ctx_st *tls_files_ref(struct tls_files *t); // given: tls_server_unref()
void tls_files_close(struct tls_files *t);             // t may be NULL

#endif
