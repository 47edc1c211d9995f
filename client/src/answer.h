// answer.h: bytes from a server into a queen_response.
#ifndef QUEEN_CLIENT_ANSWER_H
#define QUEEN_CLIENT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attrs.h"
#include "queen/client.h"

struct answer;

enum answer_state {
    ANSWER_MORE,
    ANSWER_DONE,
    ANSWER_BAD,       // not HTTP as we know it
    ANSWER_TOO_LARGE, // the body is larger than max_body, or memory is gone
};

// One for each connection, used for one answer after the other.
struct answer *answer_new(size_t max_body);
void answer_free(struct answer *a);

void answer_start(struct answer *a, bool to_head); // to_head: there will be no body
enum answer_state answer_feed(struct answer *a, const char *bytes, size_t n);
enum answer_state answer_end(struct answer *a); // the server has closed
bool answer_has_begun(const struct answer *a);
bool answer_keeps_alive(const struct answer *a); // after DONE

// After DONE: given (queen_response_free()).  NULL: the body claims to be gzip and is not, or
// unpacks to more than max_body.
struct queen_response *answer_take(struct answer *a);

#endif
