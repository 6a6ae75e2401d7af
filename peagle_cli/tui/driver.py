"""The terminal's input, taken as it comes."""

import codecs
from functools import partial

from textual.drivers import linux_driver


class LenientDriver(linux_driver.LinuxDriver):
    """Textual's driver for Linux and macOS; but a byte that is not UTF-8, as from a terminal in another encoding,
    becomes U+FFFD, where Textual would end the program."""

    def run_input_thread(self) -> None:
        """Wait for input and dispatch events."""
        # Textual has no setting for it: it looks up its decoder by this name of its module, and decodes strictly.
        vars(linux_driver)["getincrementaldecoder"] = _lenient_decoder
        super().run_input_thread()


def _lenient_decoder(encoding: str) -> partial[codecs.IncrementalDecoder]:
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")
