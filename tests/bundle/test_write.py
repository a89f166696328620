"""Files are whole under their name or not there, also where a file system has no files without names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.bundle import write


@pytest.fixture(params=["nameless", "named"])
def file_system(request, monkeypatch):
    """A file system with files without names, and one that refuses them."""
    if request.param == "named":
        real = os.open

        def refusing(path, flags, *rest, **more):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(95, "Operation not supported")
            return real(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", refusing)


def test_a_failure_leaves_what_was_there(file_system, tmp_path):
    path = tmp_path / "b.tar.gz"
    path.write_bytes(b"old")

    def files():
        yield "a", b"x"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write.write_archive(path, "b", files(), 1.0)
    assert [each.name for each in tmp_path.iterdir()] == ["b.tar.gz"]
    assert path.read_bytes() == b"old"
    write.write_archive(path, "b", [("a", b"x")], 1.0)
    assert [each.name for each in tmp_path.iterdir()] == ["b.tar.gz"]
    assert path.stat().st_mode & 0o777 == 0o600


KILLED = """
import os, signal, sys
from pathlib import Path
from gpudoctor.bundle import write
real = os.open
def refusing(path, flags, *rest, **more):
    if flags & os.O_TMPFILE == os.O_TMPFILE:
        raise OSError(95, "Operation not supported")
    return real(path, flags, *rest, **more)
os.open = refusing
def files():
    yield "a", b"x"
    os.kill(os.getpid(), signal.SIGKILL)
write.write_archive(Path(sys.argv[1]), "b", files(), 1.0)
"""


def test_the_next_run_clears_what_a_killed_one_left(tmp_path):
    path = tmp_path / "b.tar.gz"
    subprocess.run([sys.executable, "-c", KILLED, str(path)])
    left = [each.name for each in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0] != path.name
    alive = tmp_path / f".c.tar.gz.{os.getpid()}.gpudoctor-partial"
    alive.write_bytes(b"another run is at it")
    write.write_archive(Path(path), "b", [("a", b"x")], 1.0)
    assert sorted(each.name for each in tmp_path.iterdir()) == [alive.name, path.name]
