// my_server.h: a throw-away MariaDB for tests, on a private Unix socket.
//
// Run as another user when the test is root.  Every failure ends the test program: without the
// server there is nothing to test.  It ends with the test program, whatever becomes of that.
#ifndef QUEEN_TESTS_MY_SERVER_H
#define QUEEN_TESTS_MY_SERVER_H

#include <sys/types.h>

struct my_server {
    char dir[64];  // holds data/, the socket and the log; removed by _free
    char url[160]; // database t, user queen, who may do everything
    pid_t pid;     // 0: it does not run
};

void my_server_new(struct my_server *s);   // made and started
void my_server_start(struct my_server *s); // answers when this returns
void my_server_kill(struct my_server *s);  // at once; the data stays
void my_server_free(struct my_server *s);
// A process that accepts one TCP connection for it, which has a Unix socket only: the port.
unsigned my_server_relay(const struct my_server *s, pid_t *pid);

#endif
