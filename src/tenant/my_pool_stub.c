#include "tenant/my_pool.h"
void my_pool_exec(struct my_pool *p, struct my_call *call) { (void)p, (void)call; }
const char *my_reply_message(const struct my_reply *r)
{
    (void)r;
    return "";
}
void my_params_free(struct my_params *p) { (void)p; }
void my_params_reset(struct my_params *p) { (void)p; }
void my_param_text(struct my_params *p, span v) { (void)p, (void)v; }
void my_param_i64(struct my_params *p, int64_t v) { (void)p, (void)v; }
int64_t my_reply_i64(const struct my_reply *r, unsigned row, unsigned col)
{
    (void)r, (void)row, (void)col;
    return 0;
}
unsigned my_reply_rows(const struct my_reply *r)
{
    (void)r;
    return 0;
}
span my_reply_text(const struct my_reply *r, unsigned row, unsigned col)
{
    (void)r, (void)row, (void)col;
    return SPAN_NONE;
}
