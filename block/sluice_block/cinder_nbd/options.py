"""The options of a back end's section in cinder.conf."""

from __future__ import annotations

from typing import Final

from oslo_config import cfg

OPTIONS: Final = [
    cfg.StrOpt("sluice_nbd_folder", help="Folder of the volumes, or of the pools' folders."),
    cfg.MultiStrOpt(
        "sluice_nbd_pool",
        default=[],
        help="A pool: its name, then folder=NAME (by default as the pool), capacity=GIB (by default what the file "
        "system has) and capabilities, key=value. Without a pool the folder is one, called as the back end.",
    ),
    cfg.StrOpt(
        "sluice_nbd_export_folder",
        default="$state_path/sluice-nbd",
        help="Folder of the exports' sockets, keys and records, which only the user of cinder-volume may enter.",
    ),
    cfg.StrOpt(
        "sluice_nbd_transport",
        default="auto",
        choices=[
            ("auto", "a unix socket for consumers on this machine, TCP for others"),
            ("tcp", "TCP for all"),
        ],
        help="How consumers reach their exports. TCP is always encrypted, with a key made for the attachment.",
    ),
    cfg.HostAddressOpt("sluice_nbd_address", default="127.0.0.1", help="Where exports over TCP listen."),
    cfg.StrOpt(
        "sluice_nbd_ports",
        default="61000-65535",
        help="First and last port of exports over TCP; one for each attachment.",
    ),
]


def port_range(text: str) -> range:
    """Return the ports of ``FIRST-LAST``.

    :raises ValueError: when the text has another form
    """
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 1 << 16):
        raise ValueError(f"ports are `{text}`, expected FIRST-LAST of 1 to 65535")
    return range(int(first), int(last) + 1)
