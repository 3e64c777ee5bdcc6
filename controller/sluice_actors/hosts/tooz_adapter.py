"""The one door to tooz.

tooz looks for eventlet in passing, through a library of its own, and eventlet, where it is installed beside us,
complains of its age at whoever imports it.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tooz import ToozError
    from tooz.coordination import GroupAlreadyExist, MemberAlreadyExist
    from tooz.drivers.redis import RedisDriver
    from tooz.hashring import HashRing

__all__ = ["GroupAlreadyExist", "HashRing", "MemberAlreadyExist", "RedisDriver", "ToozError"]
