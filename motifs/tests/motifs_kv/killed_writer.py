"""Writes, reads and contracts until it is killed, and prints the number of each write after it was made."""

import random
import sys

from sluice_motifs.contraction.preparation import TRUST
from sluice_motifs.storage.records import Motif
from sluice_motifs.testing.shim_suite import ShiftedCopy
from sluice_motifs_kv.database import Database

COPIES = [b"copy %d" % number for number in range(5)]


def content(number):
    """The value of the source after this many writes."""
    return b"%d " % number * (number % 50 + 1)


def main(path, first):
    drawn = random.Random(first)
    with Database(path, [ShiftedCopy], limit=300) as database:
        number = first
        while True:
            with database.write_batch() as batch:
                batch.put(b"source", content(number))
                batch.put(b"twin", content(number))
            print(number, flush=True)
            number += 1
            for key in drawn.sample(COPIES, 3):
                database.get_or_make(key, Motif("shifted_copy", {"of": "source"}))
                if drawn.random() < 0.5:
                    database.contract(key, TRUST)
            if drawn.random() < 0.3:
                database.set_limit(drawn.choice([0, 100, 300, None]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
