"""One Horizon for all tests of the dashboard here."""

from tests.support.browser import fixtures

horizon_cluster = fixtures.horizon_cluster
horizon_alone = fixtures.horizon_alone
chromium = fixtures.chromium
pictures = fixtures.pictures
dashboard = fixtures.dashboard
fake_api = fixtures.fake_api
fake_dashboard = fixtures.fake_dashboard
