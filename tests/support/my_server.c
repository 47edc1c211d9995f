// my_server.c: a throw-away MariaDB for tests.
#include "support/my_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/shell.h"

static void write_init_file(const struct my_server *s)
{
    char path[128];

    snprintf(path, sizeof path, "%s/init.sql", s->dir);
    FILE *f = fopen(path, "we");
    if (!f)
        abort();
    fputs("create database if not exists t character set utf8mb4;\n"
          "create user if not exists queen@localhost identified by 'bee';\n"
          "grant all on *.* to queen@localhost;\n",
          f);
    fclose(f);
}

void my_server_new(struct my_server *s)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/queen-test-XXXXXX");
    if (mkdtemp(s->dir) == NULL)
        abort();
    snprintf(s->url, sizeof s->url, "mysql://queen:bee@localhost/t?socket=%s/s", s->dir);
    write_init_file(s);
    if (geteuid() == 0)
        shell_run("chown -R postgres %s", s->dir);
    shell_run("cd %s && %s mariadb-install-db --no-defaults --datadir=%s/data "
              "--auth-root-authentication-method=normal --skip-test-db --skip-name-resolve "
              ">install.log",
              s->dir, shell_as_another(), s->dir);
    my_server_start(s);
}

// The socket on which the server reports that it is ready, as to systemd.
static int open_notice(const struct my_server *s, struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(at->sun_path, sizeof at->sun_path, "%s/notice", s->dir);
    unlink(at->sun_path);
    struct timeval patience = {.tv_sec = 60};
    if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof *at) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        abort();
    if (geteuid() == 0)
        shell_run("chown postgres %s", at->sun_path);
    return fd;
}

static void become_server(const struct my_server *s, const char *notice)
{
    char command[1024];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("NOTIFY_SOCKET", notice, 1);
    snprintf(command, sizeof command,
             "cd %s && exec %s $(PATH=$PATH:/usr/sbin command -v mariadbd) --no-defaults "
             "--datadir=%s/data --socket=%s/s --skip-networking --init-file=%s/init.sql "
             "--pid-file=%s/pid --innodb-flush-log-at-trx-commit=0 "
             "--innodb-buffer-pool-size=16M --skip-name-resolve >>log 2>&1",
             s->dir,
             geteuid() == 0 ? "setpriv --pdeathsig KILL --reuid=postgres "
                              "--regid=postgres --clear-groups"
                            : "",
             s->dir, s->dir, s->dir, s->dir);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

void my_server_start(struct my_server *s)
{
    struct sockaddr_un at;
    int notice = open_notice(s, &at);
    char text[512];
    ssize_t n;

    s->pid = fork();
    if (s->pid == 0)
        become_server(s, at.sun_path);
    do {
        n = recv(notice, text, sizeof text - 1, 0);
        if (n <= 0) {
            fprintf(stderr, "MariaDB did not start: see %s/log\n", s->dir);
            abort();
        }
        text[n] = '\0';
    } while (!strstr(text, "READY=1"));
    close(notice);
}

void my_server_kill(struct my_server *s)
{
    if (s->pid == 0)
        return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void my_server_free(struct my_server *s)
{
    my_server_kill(s);
    shell_run("rm -rf %s", s->dir);
}

// ---- TCP ----

static void copy_some(int from, int to)
{
    char bytes[4096];
    ssize_t n = read(from, bytes, sizeof bytes);

    if (n <= 0 || write(to, bytes, (size_t)n) != n)
        _exit(0);
}

unsigned my_server_relay(const struct my_server *s, pid_t *pid)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un socket_at = {.sun_family = AF_UNIX};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0)
        abort();
    *pid = fork();
    if (*pid != 0) {
        close(listener);
        return ntohs(at.sin_port);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(socket_at.sun_path, sizeof socket_at.sun_path, "%s/s", s->dir);
    struct pollfd ends[2] = {{.fd = accept(listener, NULL, NULL), .events = POLLIN},
                             {.fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN}};
    if (connect(ends[1].fd, (struct sockaddr *)&socket_at, sizeof socket_at) != 0)
        _exit(1);
    while (poll(ends, 2, -1) > 0)
        for (unsigned i = 0; i < 2; i++)
            if (ends[i].revents)
                copy_some(ends[i].fd, ends[!i].fd);
    _exit(1);
}
