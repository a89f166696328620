"""How much is read of a source before it is called suspicious; one account per source, archives inside archives included."""

from __future__ import annotations

import msgspec

MAX_FILES = 100_000
MAX_FOLDERS = 32  # folders on the way to a file
MAX_LAYERS = 8  # archives and compression inside each other; a .tar.gz is two
MAX_PATH = 1024  # characters
MAX_BYTES = 8 * 2**30  # of one file, after unpacking
MAX_TOTAL = 64 * 2**30  # of everything
MAX_RATIO = 400  # unpacked to packed, once RATIO_FROM bytes came out; real reports pack 10 to 40 times
RATIO_FROM = 256 * 2**20


class Account(msgspec.Struct):
    """What was read so far."""

    files: int = 0
    total: int = 0

    def file(self) -> bool:
        """Count one more file; False where that is too many."""
        self.files += 1
        return self.files <= MAX_FILES

    def read(self, size: int) -> bool:
        """Count bytes; False where that is too many."""
        self.total += size
        return self.total <= MAX_TOTAL
