"""A Redis for the tests of volumes' data."""

from tests.support.cluster import redis_fixtures

redis_server = redis_fixtures.redis_server
store = redis_fixtures.store
