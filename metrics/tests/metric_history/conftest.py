"""A Redis for the history of metrics."""

from tests.support.cluster import redis_fixtures

redis_server = redis_fixtures.redis_server
store = redis_fixtures.store
