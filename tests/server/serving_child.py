"""A server process over the toy encoder: prints its address, logs to stderr."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from incdsi.index import Index
from incdsi.index.receipts import Receipts
from incdsi.server.run import serve
from incdsi.server.settings import ServerSettings
from tests.index.index_samples import TOY

if __name__ == "__main__":
    folder, given = Path(sys.argv[1]), json.loads(sys.argv[2])
    if given.pop("dies_after_a_commit", False):
        Receipts.amend = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    with Index.open(folder, TOY) as index:
        serve(index, ServerSettings(index=folder, port=0, **given), lambda address: print(address, flush=True))
