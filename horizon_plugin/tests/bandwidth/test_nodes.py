"""The parts of a stacked plot: the largest ones, and the rest of the whole."""

from sluice_dashboard.bandwidth.nodes import LARGEST, largest, rest_of


def test_the_parts_that_move_most_now_are_drawn_and_silent_ones_in_the_order_of_their_names():
    names = [f"t{number}" for number in range(9)]
    assert largest(names, {"t8": 5.0, "t7": 9.0}) == ["t7", "t8", "t0", "t1", "t2", "t3", "t4"]
    assert len(largest(names, {})) == LARGEST


def test_the_rest_is_the_whole_without_the_parts_at_each_time():
    whole = [(1.0, 10.0), (2.0, 10.0)]
    assert rest_of(whole, [[(1.0, 3.0), (2.0, 4.0)], [(2.0, 1.0)]]) == [(1.0, 7.0), (2.0, 5.0)]


def test_a_part_that_is_silent_leaves_the_rest_as_it_is():
    assert rest_of([(1.0, 10.0)], [[(1.0, None)]]) == [(1.0, 10.0)]


def test_a_whole_that_is_not_known_is_a_gap_of_the_rest():
    assert rest_of([(1.0, None)], [[(1.0, 3.0)]]) == [(1.0, None)]


def test_the_rest_is_never_less_than_nothing():
    assert rest_of([(1.0, 3.0)], [[(1.0, 3.5)]]) == [(1.0, 0.0)]
