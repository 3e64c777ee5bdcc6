"""``python barbican_program.py <folder> <port>``: a whole Barbican in one process, for one machine.

Run by the Python of Barbican's own virtual environment, in which Sluice is not installed; so this file imports
nothing of Sluice.  The folder holds ``barbican.conf``; the pipeline is the one that Barbican ships.  Without a queue
Barbican carries out orders within the request.  Requests are served one after the other, which suits its sqlite file.
"""

import os
import sys
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

HOST = "127.0.0.1"


class Handler(WSGIRequestHandler):
    """HTTP/1.0 with addresses instead of names in the log."""

    #: Seconds after which a silent connection ends: it must not block the others for ever.
    timeout = 10

    def address_string(self) -> str:
        """The address of the client."""
        return str(self.client_address[0])


def main(folder: Path, port: int) -> None:
    """Create the schema if necessary, then serve until a signal arrives."""
    os.umask(0o077)
    sys.argv = ["barbican"]
    # each of its plugins searches barbican.conf by itself, first in the home folder
    os.environ["HOME"] = str(folder)
    from paste import deploy  # type: ignore[import-untyped]

    shipped = Path(sys.prefix) / "etc" / "barbican" / "barbican-api-paste.ini"
    application = deploy.loadapp(f"config:{shipped}")
    with make_server(HOST, port, application, handler_class=Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
