"""Reads what a client has compressed (Zstandard) as if it were not: in a stream, in bounded memory, never written.

A file that ends too early or is damaged reads as if it ended there: what stands before the damage still counts.
"""

import io
import logging
import sys
from typing import BinaryIO, Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_BUFFER_BYTES: Final = 1 << 17
# 128 MiB, as the format's own tools allow; a file could ask for 2 GiB.
_MAX_WINDOW_LOG: Final = 27

log = logging.getLogger(__name__)


def open_decompressed(file: BinaryIO) -> io.BufferedReader:
    """Return the content of a compressed file; seeking back begins again at its start."""
    return io.BufferedReader(_Decompressed(file), _BUFFER_BYTES)


class _Decompressed(io.RawIOBase):
    def __init__(self, file: BinaryIO) -> None:
        options = {int(zstd.DecompressionParameter.window_log_max): _MAX_WINDOW_LOG}
        self._content = zstd.ZstdFile(file, options=options)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # typeshed's Buffer is 3.12's
        try:
            return self._content.readinto(buffer)
        except (EOFError, zstd.ZstdError) as error:
            log.warning("compressed transcript is damaged", extra={"reason": type(error).__name__})
            return 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return self._content.seek(offset, whence)
        except (EOFError, zstd.ZstdError):
            return self._content.tell()

    def tell(self) -> int:
        return self._content.tell()
