#include "tenant/my_pool.h"
void my_pool_exec(struct my_pool *p, struct my_call *call) { (void)p, (void)call; }
const char *my_reply_message(const struct my_reply *r)
{
    (void)r;
    return "";
}
