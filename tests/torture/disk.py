"""A small disk that can be filled up, and that loses data that was not synced."""
import glob
import os
import subprocess


class Disk:
    """A small disk of its own that can be filled up; an ordinary folder without the right to mount."""

    def __init__(self, path, size):
        os.makedirs(path, exist_ok=True)
        self.path = path
        self.small = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d,mode=0777" % size, "queen-torture", path],
                                    stderr=subprocess.DEVNULL).returncode == 0

    def fill(self):
        """Not a page is left, though others may write at the same time."""
        with open(os.path.join(self.path, "ballast"), "wb") as f:
            end, size = 0, 1 << 30
            while size >= 4096:
                try:
                    os.posix_fallocate(f.fileno(), end, size)
                    end += size
                except OSError:
                    size //= 2

    def empty(self):
        path = os.path.join(self.path, "ballast")
        if os.path.exists(path):
            os.unlink(path)

    def cut_power(self, synced):
        """Everything that was not synced is gone; `synced` is what power.c has written."""
        sizes = {}
        if os.path.exists(synced):
            with open(synced) as f:
                sizes = dict(tuple(map(int, line.split())) for line in f)
        for path in glob.glob(os.path.join(self.path, "files", "*.buf*")):
            st = os.stat(path)
            if sizes.get(st.st_ino, 0) < st.st_size:
                os.truncate(path, sizes.get(st.st_ino, 0))

    def dispose(self):
        if self.small:
            subprocess.run(["umount", "-l", self.path], check=False)
