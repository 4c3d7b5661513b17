"""Files that are whole or absent."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from igd.errors import UserError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

EXPORTED = ".onnx"


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when all is written and vanishes
    otherwise.
    """
    held, part = _new_part(path)
    try:
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _new_part(path: Path) -> tuple[int | None, Path]:
    """A file to write to, held as long as it is open: one that nobody holds was left by a process
    that died.
    """
    while True:
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part"
        )
        if not _hold(descriptor):  # Windows, moreover, renames no open file
            os.close(descriptor)
            return None, Path(name)
        if os.path.lexists(name):  # else it was taken for such a file before we held it
            return descriptor, Path(name)
        os.close(descriptor)


def _hold(descriptor: int, wait: bool = True) -> bool:
    """Lock an open file, where the system can; whether it is ours."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another process, or a network drive without locks
        return False
    return True


def _remove_abandoned(path: Path) -> None:
    """Delete what killed processes left half written of a file, and of its checkpoint."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        try:
            descriptor = os.open(part, os.O_RDWR)
        except OSError:
            continue
        try:
            if _hold(descriptor, wait=False):
                part.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def check_writable(path: Path) -> None:
    """Refuse now what writing would refuse after an hour of training, and clear away what an
    earlier process that was killed had half written.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file to write")
    if path.exists() and not path.is_file():  # /dev/null would become a file
        raise UserError(f"{path}: is a device or a pipe; name a file to write")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; create it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(
            f"{path}: can't write there ({error.strerror}); choose another place"
        ) from None
    _remove_abandoned(path)


def check_model_path(path: Path) -> None:
    """Refuse what `check_writable` does, and a name under which a model file would be taken for an
    exported one.
    """
    if path.suffix.lower() == EXPORTED:
        raise UserError(
            f"{path}: {EXPORTED} is for models that igd export writes; name a model file, such as "
            f"{path.with_suffix('.igd')}"
        )
    check_writable(path)


def check_readable(path: Path) -> None:
    """Refuse a file or a folder that is there and whose contents are not for this user."""
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        raise UserError(f"{path}: can't be read (permission denied); make it readable for you")


def read_whole(path: Path) -> bytes:
    """All of a file, read at once: what happens to it later changes nothing."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    check_readable(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror}); copy it again") from None


def make_folder(path: Path) -> Path:
    """A folder to write results to, created where it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{path}: can't create this folder ({error.strerror}); choose another place"
        ) from None
    check_writable(path / "results")
    return path


def write_text(path: Path, text: str) -> None:
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def locked(path: Path, doing: str) -> Iterator[None]:
    """Hold a file's place, or refuse where another process holds it; a process that dies lets go.

    Where the system has no such locks (Windows), nothing is held.
    """
    if fcntl is None:
        yield
        return
    place = path.with_name(f".{path.name}.lock")
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UserError(f"{path}: can't write there ({error.strerror})") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = place.exists() and os.path.samestat(os.fstat(descriptor), place.stat())
        except BlockingIOError:
            ours = False
        except OSError:  # a network drive without locks
            ours = True
        if not ours:
            raise UserError(
                f"{path}: another igd is {doing} it; wait for its end, or choose another place"
            )
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def remove_parts(folder: Path) -> None:
    """Delete what a killed process left half written; only where no other one is writing."""
    for part in folder.rglob(".*.part"):
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
