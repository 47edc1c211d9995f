// embed_child.c: runs PostgreSQL's programs as the configured user.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pg/embed_int.h"

enum { EXIT_NO_EXEC = 127, MAX_FDS_TO_CLOSE = 65536, MAX_ENV = 64 };

// Only async-signal-safe calls in the child, because the parent has threads.
static bool drop_privileges(const struct embed *e)
{
    if (!e->drops)
        return true;
    return setgroups(1, &e->gid) == 0 && setgid(e->gid) == 0 && setuid(e->uid) == 0;
}

static void redirect(const char *log_path)
{
    int in = open("/dev/null", O_RDONLY);

    if (in >= 0)
        dup2(in, STDIN_FILENO);
    if (log_path == NULL)
        return;
    int out = open(log_path, O_WRONLY | O_APPEND);
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
}

// libuv ignores SIGPIPE and may block signals; PostgreSQL expects the defaults.
static void reset_signals(void)
{
    sigset_t none;

    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_others(void)
{
    long max = sysconf(_SC_OPEN_MAX);

    if (max < 0 || max > MAX_FDS_TO_CLOSE)
        max = MAX_FDS_TO_CLOSE;
    if (close_range(3, ~0U, 0) == 0)
        return;
    for (int fd = 3; fd < max; fd++)
        close(fd);
}

bool pg_child_may_see(const char *entry)
{
    static const char *const names[] = {"PATH=", "HOME=", "LANG=", "LC_", "TZ=", "TMPDIR="};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

pid_t embed_spawn(const struct embed *e, char *const argv[], const char *log_path,
                  bool dies_with_us)
{
    char *env[MAX_ENV + 1] = {NULL};
    size_t n_env = 0;

    for (char **entry = environ; *entry != NULL && n_env < MAX_ENV; entry++)
        if (pg_child_may_see(*entry))
            env[n_env++] = *entry;
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid != 0)
        return pid;

    setsid(); // Ctrl-C on the terminal must reach only the broker, which then stops the server
    reset_signals();
    redirect(log_path); // before dropping privileges: only root may be able to write the log
    if (!drop_privileges(e))
        _exit(EXIT_NO_EXEC);
    // After dropping privileges, because changing credentials clears it. Then check whether
    // the parent is already gone.
    if (dies_with_us && (prctl(PR_SET_PDEATHSIG, SIGINT) != 0 || getppid() != parent))
        _exit(EXIT_NO_EXEC);
    close_others();
    execve(argv[0], argv, env);
    _exit(EXIT_NO_EXEC);
}

static int wait_for(pid_t pid)
{
    int status;

    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

int embed_run(const struct embed *e, char *const argv[], const char *log_path)
{
    return wait_for(embed_spawn(e, argv, log_path, true));
}

// Checked in a child, because only the kernel can apply all the rules (groups, ACLs, mounts).
static bool may_enter(const struct embed *e, const char *folder)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(drop_privileges(e) && access(folder, X_OK) == 0 ? 0 : 1);
    return wait_for(pid) == 0;
}

bool embed_blocked_at(const struct embed *e, const char *path, char out[PATH_MAX])
{
    size_t len = strlen(path);

    if (!e->drops || len >= PATH_MAX)
        return false;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(out, path, i);
        out[i] = '\0';
        if (!may_enter(e, out))
            return true;
    }
    return false;
}
