import pytest

from sluice_objects.classes.arguments import LARGEST_NUMBER
from sluice_objects.classes.counter import Counter
from sluice_objects.testing import LocalHome


def test_a_counter_adds():
    home = LocalHome(Counter())
    assert [home.call("add"), home.call("add", amount=-5), home.call("read")] == [{"total": n} for n in (1, -4, -4)]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_counter_has_64_bits(sign):
    home = LocalHome(Counter())
    home.call("add", amount=sign * LARGEST_NUMBER)
    assert home.refusal("add", amount=sign).status == 409
    assert home.call("read") == {"total": sign * LARGEST_NUMBER}
