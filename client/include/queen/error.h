// error.h: what can go wrong, said so that a program and a person can act on it.
#ifndef QUEEN_ERROR_H
#define QUEEN_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum queen_code {
    QUEEN_OK = 0,
    QUEEN_E_ARGUMENT = -1,    // an option or parameter is wrong; nothing was sent
    QUEEN_E_MISUSE = -2,      // a call that is not allowed here (blocking on the loop's thread)
    QUEEN_E_UNREACHABLE = -3, // no server could be reached, or the connection broke
    QUEEN_E_TIMEOUT = -4,     // no answer in time; what was asked may have happened
    QUEEN_E_TLS = -5,         // the other side cannot prove who it is, or speaks no TLS
    QUEEN_E_PROTOCOL = -6,    // the answer is not what the contract says
    QUEEN_E_REFUSED = -7,     // 4xx: the request is wrong; the text says how
    QUEEN_E_AUTH = -8,        // 401, 403
    QUEEN_E_NOT_FOUND = -9,   // 404
    QUEEN_E_CONFLICT = -10,   // 409: somebody else was first
    QUEEN_E_FULL = -11,       // 429, or a buffer of ours is full; later there may be room
    QUEEN_E_SERVER = -12,     // 5xx
    QUEEN_E_CLOSED = -13,     // the client, or the part of it that was asked, is closing
    QUEEN_E_LEASE = -14,      // the lease is not ours any more
    QUEEN_E_MEMORY = -15,     // the answer is larger than allowed, or memory is gone
};

// Filled by every function that can fail; in the caller's memory, nothing to free.
struct queen_error {
    int code;        // enum queen_code
    int http_status; // of the answer, or 0
    bool retryable;  // the same call may succeed later; retries of the library are used up
    char text[240];  // one sentence
};

const char *queen_code_name(int code); // "unreachable"; static

#ifdef __cplusplus
}
#endif
#endif
