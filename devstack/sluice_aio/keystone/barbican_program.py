"""``python barbican_program.py <folder> <port>``: a whole Barbican in one process, for one machine.

Run by the Python of Barbican's own virtual environment, in which nothing of ours is installed; so this file imports
nothing of ours.  The folder holds ``barbican.conf``; the pipeline is the one that Barbican ships.  Without a queue
Barbican carries out orders within the request, and one request after the other is what its sqlite file likes best.
"""

import os
import sys
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

HOST = "127.0.0.1"


class Handler(WSGIRequestHandler):
    """HTTP/1.0 with addresses instead of names in the log."""

    #: Whoever connects and says nothing must not keep the others waiting for ever.
    timeout = 10

    def address_string(self) -> str:
        """Who asks."""
        return str(self.client_address[0])


def main(folder: Path, port: int) -> None:
    """Make the schema if need be, then serve until a signal comes."""
    os.umask(0o077)
    sys.argv = ["barbican"]
    # each of its plugins looks for barbican.conf by itself, first at home
    os.environ["HOME"] = str(folder)
    from paste import deploy  # type: ignore[import-untyped]

    shipped = Path(sys.prefix) / "etc" / "barbican" / "barbican-api-paste.ini"
    application = deploy.loadapp(f"config:{shipped}")
    with make_server(HOST, port, application, handler_class=Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
