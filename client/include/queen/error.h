// error.h: error codes, and a text for people.
#ifndef QUEEN_ERROR_H
#define QUEEN_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum queen_code {
    QUEEN_OK = 0,
    QUEEN_E_ARGUMENT = -1,    // an invalid option or parameter; nothing was sent
    QUEEN_E_MISUSE = -2,      // a call that is not allowed here (blocking on the loop's thread)
    QUEEN_E_UNREACHABLE = -3, // no server could be reached, or the connection broke
    QUEEN_E_TIMEOUT = -4,     // no answer in time; the request may have been executed
    QUEEN_E_TLS = -5,         // the server's certificate is invalid, or it does not speak TLS
    QUEEN_E_PROTOCOL = -6,    // the answer violates the protocol
    QUEEN_E_REFUSED = -7,     // 4xx: the request is invalid; see the text
    QUEEN_E_AUTH = -8,        // 401, 403
    QUEEN_E_NOT_FOUND = -9,   // 404
    QUEEN_E_CONFLICT = -10,   // 409: modified concurrently
    QUEEN_E_FULL = -11,       // 429, or a buffer of the client is full; retry later
    QUEEN_E_SERVER = -12,     // 5xx
    QUEEN_E_CLOSED = -13,     // the client, or the object that was called, is closing
    QUEEN_E_LEASE = -14,      // the lease was lost
    QUEEN_E_MEMORY = -15,     // the answer is too large, or memory is exhausted
};

// Filled by every function that can fail. In the caller's memory; needs no clean-up.
struct queen_error {
    int code;        // enum queen_code
    int http_status; // of the answer, or 0
    bool retryable;  // the same call may succeed later; the library's own retries are exhausted
    char text[240];  // one sentence
};

const char *queen_code_name(int code); // "unreachable"; static

#ifdef __cplusplus
}
#endif
#endif
