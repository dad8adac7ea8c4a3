"""What a program waits for, said on its terminal: builds and uploads that take longer than a second."""

import sys
import threading
import time

AFTER = 1.0  # seconds
_EVERY = 0.5


class Waiting:
    """In a `with`, a line of stderr that says how long the block has taken; nothing where stderr is no terminal."""

    def __init__(self, what):
        self._what = what
        self._over = None

    def __enter__(self):
        if sys.stderr is not None and sys.stderr.isatty():
            self._over = threading.Event()
            self._teller = threading.Thread(target=self._tell, args=(sys.stderr,), daemon=True)
            self._teller.start()

    def __exit__(self, *exception):
        if self._over is not None:
            self._over.set()
            self._teller.join()

    def _tell(self, out):
        begin, after = time.monotonic(), AFTER
        told = False
        while not self._over.wait(after):
            out.write(f"\r\x1b[K{self._what} {time.monotonic() - begin:.0f} s")
            out.flush()
            told, after = True, _EVERY
        if told:
            out.write("\r\x1b[K")
            out.flush()
