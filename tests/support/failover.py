"""The state of a Redis after a failover to a replica without the last changes."""

from __future__ import annotations

from sluice_core.store.store import Store


def fail_over(
    store: Store, epoch: int, *, assignments: tuple[str, ...] = (), policies: tuple[str, ...] = (), cut: bool = True
) -> None:
    """Reset ``store`` to ``epoch``: without these assignments and policies, and without the changes after it.

    The stream of changes is written again, since Redis 8 refuses to set a stream's last id below a deleted one.

    :param cut: close the connections of clients, as a real failover does.
    """
    client, keys = store.client, store.keys
    if cut:
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    kept = client.xrange(keys.changes, max=f"{epoch}-0")
    with client.pipeline() as pipe:
        pipe.set(keys.epoch, epoch)
        pipe.delete(keys.changes, keys.past)
        for id_, fields in kept:
            pipe.xadd(keys.changes, fields, id=id_)
        for id_ in assignments:
            pipe.hdel(keys.assignments, id_)
        for id_ in policies:
            pipe.hdel(keys.policies, id_)
            pipe.hdel(keys.versions, f"policy/{id_}")
        pipe.execute()
