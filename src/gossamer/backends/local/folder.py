"""The crawl folder: is it ours, is it free, and where is everything?

    crawl.toml  seeds.txt  state/  archive/  index/  events/  report.json  report.html

One process owns a folder: it holds an flock on `state/owner`, which the kernel releases
however the process ends. Who asks for the owner holds a shared one for an instant, which does not
keep a crawl from beginning: the dashboard of a crawl asks every second.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gossamer.backends.local.store import DATA_FILE
from gossamer.model.errors import HOW_TO_REBUILD, CorruptFolderError, FolderBusyError, UsageError

SETTINGS_FILE = "crawl.toml"
SEEDS_FILE = "seeds.txt"  # one per line, as `gossamer crawl` takes them
MIGRATION_FILE = "migration"  # in `state/`: the folder is a copy of another crawl, which is not complete
_BLOCKED_FILE = "blocked.txt"  # may be there before the crawl begins
_TRIES = 1000  # one per millisecond
_CONTROL_SOCKET = "control"  # in `state/`
_FOLDERS = ("", "state", "archive", "index", "index/parts", "events", "aside", "files")  # with files that are written
_MAX_HOLE_BYTES = 1 << 30  # a file of holes would be read for hours
_MAX_HOLES = 1000  # times as large as what is stored: a file system that compresses does not reach that
_BLOCK_BYTES = 512
_OWN_NAMES = frozenset(
    {"state", "archive", "index", "events", SEEDS_FILE, f".{SEEDS_FILE}.tmp", f".{SETTINGS_FILE}.tmp", _BLOCKED_FILE}
)


class CrawlFolder:
    """A crawl's folder. The constructor does no I/O."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_fd = -1

    @property
    def settings_path(self) -> Path:
        """The effective configuration."""
        return self.path / SETTINGS_FILE

    @property
    def state(self) -> Path:
        """The ledger."""
        return self.path / "state"

    @property
    def archive(self) -> Path:
        """The WARC files."""
        return self.path / "archive"

    @property
    def index(self) -> Path:
        """The CDXJ files."""
        return self.path / "index"

    @property
    def files(self) -> Path:
        """The pages of `--store files`."""
        return self.path / "files"

    @property
    def events(self) -> Path:
        """The event files."""
        return self.path / "events"

    @property
    def migration(self) -> Path:
        """The mark of a copy that is not complete."""
        return self.state / MIGRATION_FILE

    def require_complete(self) -> None:
        """Raise if a crawl was not completely copied to this folder."""
        if self.migration.is_file():
            raise UsageError(
                f"{self.path}: a migration to it is not finished; run 'gossamer migrate FROM {self.path}' again"
            )

    def holds_crawl(self) -> bool:
        """Return whether a crawl was started here."""
        return self.settings_path.is_file() and self.state.is_dir()

    def require_own_entries(self) -> None:
        """Raise if an entry is a symbolic link, a pipe, a device or a file of holes.

        Whoever made the folder would have us read, cut off, move or overwrite what is elsewhere. The folder itself may
        be reached by a link. Of the plain files only the folders of their hosts are checked: those may be millions.
        """
        for folder in _FOLDERS:
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.path / folder) as entries:
                for entry in entries:
                    _require_own(entry)

    def require_crawl(self) -> None:
        """Raise unless a crawl was started here."""
        if not self.path.is_dir():
            raise UsageError(f"{self.path}: no such folder")
        if os.path.lexists(self.settings_path):  # else it is none, whatever is in it
            self.require_own_entries()
        self.require_complete()
        if not self.holds_crawl():
            if self.settings_path.is_file():
                raise CorruptFolderError(f"{self.path}: the ledger in state/ is missing{HOW_TO_REBUILD}")
            raise UsageError(f"{self.path}: not a crawl folder: it has no {SETTINGS_FILE}")

    def require_ledger(self) -> None:
        """Raise if there is an archive, but no ledger that could explain it."""
        ledger = self.state / DATA_FILE
        if self.has_archive() and (not ledger.exists() or not ledger.stat().st_size):
            raise CorruptFolderError(
                f"{ledger}: the ledger is missing or empty, but there is an archive{HOW_TO_REBUILD}"
            )

    def has_archive(self) -> bool:
        """Return whether anything is stored in the archive, here or in a store that its list names."""
        listed = self.archive / "objects.jsonl"
        return listed.is_file() or any(path.stat().st_size for path in self.archive.glob("*.warc.gz*"))

    def check_usable(self) -> None:
        """Raise if a new crawl cannot be started here: a file, or a folder that contains something else."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path}: is a file; --out names a folder")
        self.require_complete()
        if self.path.is_dir() and not self.holds_crawl() and not self._was_just_begun():
            raise UsageError(f"{self.path}: contains something other than a crawl; choose an empty or a new folder")

    def _was_just_begun(self) -> bool:
        """Return whether it is empty, or its process died while making it: our subfolders, and nothing fetched."""
        names = {entry.name for entry in self.path.iterdir()}
        return names <= _OWN_NAMES and not (self.archive.is_dir() and any(self.archive.iterdir()))

    def close_to_others(self) -> None:
        """Let nobody but the user who runs it read the crawl, with all that is in the folder already."""
        private = ~(stat.S_IRWXG | stat.S_IRWXO)
        try:
            for path in (self.path, *self.path.rglob("*")):
                if not path.is_symlink():
                    path.chmod(stat.S_IMODE(path.stat().st_mode) & private)
        except OSError as error:
            reason = f"a crawl with a login has to be private: {error.strerror or error}"
            raise UsageError(f"{self.path}: {reason}") from error

    def lock(self) -> None:
        """Create the folder if it is missing, and become its owner."""
        self.require_own_entries()
        try:
            for folder in (self.path, self.state, self.archive, self.index, self.events):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.state / "owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be written to: {error.strerror or error}") from error
        if not _lock(self._lock_fd):
            owner = os.read(self._lock_fd, 20).decode("ascii", "replace").strip()
            os.close(self._lock_fd)
            self._lock_fd = -1
            who = f"process {owner}" if owner else "another process"
            raise FolderBusyError(f"{self.path}: in use by {who}; stop that one first")
        os.ftruncate(self._lock_fd, 0)
        os.pwrite(self._lock_fd, f"{os.getpid()}\n".encode(), 0)

    def owner(self) -> int | None:
        """Return the process that owns the folder now, or None."""
        try:
            fd = os.open(self.state / "owner", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            said = os.read(fd, 20).decode("ascii", "replace").strip()
            return int(said) if said.isdigit() else 0
        else:
            return None
        finally:
            os.close(fd)

    def release(self) -> None:
        """Release the folder."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def write_settings(self, toml: str) -> None:
        """Write the configuration, with the seeds if they are known: the file can begin the same crawl elsewhere."""
        seeds = f'seeds = ["{SEEDS_FILE}"]\n' if (self.path / SEEDS_FILE).is_file() else ""
        self.write(SETTINGS_FILE, (seeds + toml).encode())

    def record_seeds(self, lines: Sequence[str]) -> None:
        """Add seeds to the list of all that the crawl was given."""
        path = self.path / SEEDS_FILE
        known = path.read_text("utf-8").splitlines() if path.is_file() else []
        both = list(dict.fromkeys([*known, *lines]))
        if len(both) > len(known):
            self.write(SEEDS_FILE, "".join(f"{line}\n" for line in both).encode())

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder atomically."""
        unfinished = self.path / f".{name}.tmp"
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path / name)


def _require_own(entry: os.DirEntry[str]) -> None:
    if entry.is_symlink():
        if entry.name == _BLOCKED_FILE and entry.is_file():
            return  # an operator's list for many crawls, which is only read
        raise UsageError(
            f"{entry.path}: a symbolic link to {os.readlink(entry.path)}; expected what belongs to the crawl: "
            "a crawl folder is used only if nothing in it leads elsewhere (a file system may be mounted there)"
        )
    if not entry.is_file() and not entry.is_dir() and entry.name != _CONTROL_SOCKET:
        raise UsageError(f"{entry.path}: neither a file nor a folder")
    found = entry.stat()
    if found.st_size > _MAX_HOLE_BYTES and found.st_size > _MAX_HOLES * _BLOCK_BYTES * found.st_blocks:
        raise UsageError(f"{entry.path}: {found.st_size} bytes of which nearly none are stored: nothing of a crawl is")


def _lock(fd: int) -> bool:
    """Lock a file for this process; return whether that was possible. Waits for those who only ask for the owner."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        else:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False  # there is an owner
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(0.001)
    return False
