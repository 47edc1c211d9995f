// sql_wake.h: pushes of SQL sessions wake parked pops at once.
//
//      SQL session: queen.push_messages_v2 ... commit ──► NOTIFY queen_pushed, QUEUE
//      this server: one connection that listens ──► house_notified() ──► the change feed is
//      read
//
// A session notifies only while a server has parked pops, which a server shows by a shared
// advisory lock of its listening connection (queen.notify_pushed explains why).  While
// notifications come in quick succession the lock is given up and the change feed is polled
// every few milliseconds instead, so that the committing sessions do not wait for one another.
//
// Nothing depends on a notification: parked pops poll the change feed anyway, and the contents
// of a notification only choose what is read.  Behind a transaction pooler LISTEN does not
// work, so this module stops by itself when its connection is to one.
#ifndef QUEEN_SERVER_SQL_WAKE_H
#define QUEEN_SERVER_SQL_WAKE_H

#include <uv.h>

#include "broker/broker.h"

struct sql_wake;

// Before the loops of the house run. loop is the acceptor's.
struct sql_wake *sql_wake_new(uv_loop_t *loop, struct house *house);
// Begins to listen, once the schema is in place. Only the address, the time to connect and the
// pooler of pg are used; copied.
void sql_wake_start(struct sql_wake *w, const struct pg_pool_conf *pg);
// Stops listening; the house is not used any more.  Before its brokers close.  w may be NULL.
void sql_wake_stop(struct sql_wake *w);
// After sql_wake_stop(), when the loops of the house have ended.  Frees w, later.
void sql_wake_close(struct sql_wake *w);

#endif
