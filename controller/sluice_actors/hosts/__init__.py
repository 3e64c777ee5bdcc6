"""Several actor hosts: membership, ownership of actors, messages between hosts."""
