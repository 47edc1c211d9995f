"""Running `queen` commands in tests: in pipes, and in a terminal."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

from harness import BIN, TIME_FACTOR


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def rows(self):
        """The lines of JSON on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    def expect(self, code=0):
        assert self.code == code, (self.code, self.out, self.err)
        return self


class Cli:
    """Runs commands against one server, with a configuration folder of its own."""

    PROGRAM = BIN

    def __init__(self, broker, config):
        self.env = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "XDG_CONFIG_HOME": str(config), "TZ": "UTC", "LANG": "C.UTF-8",
                    "QUEEN_URL": "http://%s:%d" % (broker.host, broker.port)}

    def start(self, *args, stdin=subprocess.DEVNULL, **env):
        return subprocess.Popen([BIN, *map(str, args)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**self.env, **env})

    def __call__(self, *args, input=None, **env):
        p = self.start(*args, stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL, **env)
        out, err = p.communicate(None if input is None else input.encode(), timeout=60 * TIME_FACTOR)
        return Result(p.returncode, out.decode(), err.decode())

    def shell(self, script):
        """bash with `queen` in its path; the exit codes of a pipe are in the result."""
        env = {**self.env, "PATH": os.path.dirname(BIN) + ":" + self.env["PATH"]}
        p = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60 * TIME_FACTOR)
        return Result(p.returncode, p.stdout, p.stderr)

    def terminal(self, *args, columns=80, lines=24, **env):
        return Terminal([BIN, *map(str, args)], {**self.env, **env}, columns, lines)


class Terminal:
    """A command in a pseudo terminal: what it wrote so far is .text."""

    def __init__(self, command, env, columns, lines):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.text, self.code = "", None

    def read(self, timeout=0.2):
        if select.select([self.fd], [], [], timeout)[0]:
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
                return True
            except OSError:  # the other side is closed
                return False
        return None

    def wait_for(self, what, timeout=10):
        end = time.monotonic() + timeout * max(1, TIME_FACTOR)
        while what not in self.text:
            assert time.monotonic() < end, "no %r in %r" % (what, self.text)
            assert self.read() is not False or what in self.text, "ended without %r: %r" % (what, self.text)
        return self

    def type(self, text):
        os.write(self.fd, text.encode())
        return self

    def end(self, timeout=20):
        """Waits for its end; the text with plain line ends."""
        end = time.monotonic() + timeout * max(1, TIME_FACTOR)
        while self.read() is not False:
            assert time.monotonic() < end, "still running: %r" % self.text
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.text.replace("\r\n", "\n")
