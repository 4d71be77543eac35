"""The CSV files of the measurement tools: no header, every row complete, `nan` for unknown values."""
import errno
import os
import pathlib
import tempfile
from typing import Iterable, Sequence, Union

PathLike = Union[str, "os.PathLike[str]"]
Value = Union[float, str]

J_PER_KWH = 3.6e6


class RowFile:
    """A CSV that others may read at any time: it replaces an older one by rename, and grows by complete rows.

    The path refers to the current working folder, so that a later os.chdir() has no effect. Nothing is changed
    before the first row. FileNotFoundError, NotADirectoryError, IsADirectoryError and PermissionError are raised at once,
    not after hours of measuring.
"""

    def __init__(self, path: PathLike) -> None:
        self.path = pathlib.Path(os.path.abspath(os.fspath(path)))
        self._is_ours = False
        self._check()

    def append(self, row: Sequence[Value]) -> None:
        """Adds one row. The first one replaces a file of an earlier program."""
        self.extend([row])

    def extend(self, rows: Iterable[Sequence[Value]]) -> None:
        """Adds rows, all or none."""
        text = "".join(_line(row) for row in rows)
        if not text:
            return
        if self._is_ours:
            self._write_at_end(text)
        else:
            self._write_instead(text)

    def replace(self, rows: Iterable[Sequence[Value]]) -> None:
        """Writes exactly these rows."""
        self._write_instead("".join(_line(row) for row in rows))

    def _check(self) -> None:
        folder = self.path.parent
        if not folder.exists():
            raise FileNotFoundError(f"out_file {self.path}: folder {folder} does not exist")
        if not folder.is_dir():
            raise NotADirectoryError(f"out_file {self.path}: {folder} is not a folder")
        if self.path.is_dir():
            raise IsADirectoryError(f"out_file {self.path} is a folder; give a file name")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"out_file {self.path}: folder {folder} is not writable")

    def _write_at_end(self, text: str) -> None:
        # By path, because the file may have been moved meanwhile; in one write, so that rows of two processes don't mix.
        data = text.encode()
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            written = os.write(fd, data)
            if written < len(data):  # the disk is full
                os.ftruncate(fd, os.fstat(fd).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        finally:
            os.close(fd)

    def _write_instead(self, text: str) -> None:
        fd, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with open(fd, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), 0o666 & ~_umask())  # mkstemp's are private
            os.replace(name, self.path)
            self._is_ours = True
        except BaseException:
            os.unlink(name)
            raise


def _line(row: Sequence[Value]) -> str:
    return ",".join(value if isinstance(value, str) else repr(float(value)) for value in row) + "\n"


def _umask() -> int:
    """Read from /proc, because os.umask() can only be read by changing it, which affects other threads."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o022)
