// answer.h: parses bytes from a server into a queen_response.
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
    ANSWER_BAD,       // not valid HTTP
    ANSWER_TOO_LARGE, // the body is larger than max_body, or memory is exhausted
};

// One per connection, used for one response after another.
struct answer *answer_new(size_t max_body);
void answer_free(struct answer *a);

void answer_start(struct answer *a, bool to_head); // to_head: response to HEAD, without a body
enum answer_state answer_feed(struct answer *a, const char *bytes, size_t n);
enum answer_state answer_end(struct answer *a); // the server has closed the connection
bool answer_has_begun(const struct answer *a);
bool answer_keeps_alive(const struct answer *a); // after DONE

// After DONE: given (queen_response_free()). NULL: the body is not valid gzip, or decompresses
// to more than max_body.
struct queen_response *answer_take(struct answer *a);

#endif
