"""A Redis for the tests of shared state."""

from tests.support.cluster import redis_fixtures

redis_server = redis_fixtures.redis_server
store = redis_fixtures.store
