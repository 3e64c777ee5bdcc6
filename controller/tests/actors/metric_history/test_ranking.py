"""The kept series: the busiest, without alternating."""

from sluice_actors.metric_history.group import Ranking, divide_room


def ranked(*windows, kept=(), room=2):
    ranking = Ranking()
    for weights in windows:
        ranking.add(weights, room)
    return sorted(ranking.choose(kept, room))


def test_the_busiest_are_chosen():
    assert ranked({"a": 1.0, "b": 5.0, "c": 3.0}) == ["b", "c"]


def test_many_small_windows_outweigh_a_large_one():
    burst = {"a": 10.0, "b": 9.0, "c": 100.0}
    steady = {"a": 90.0, "b": 80.0}
    assert ranked(burst, steady, steady) == ["a", "b"]


def test_who_has_a_place_is_not_displaced_by_somebody_a_little_busier():
    assert ranked({"a": 1.0, "b": 1.0, "c": 1.9}, kept=("a", "b")) == ["a", "b"]


def test_who_has_a_place_is_displaced_by_somebody_much_busier():
    assert ranked({"a": 1.0, "b": 1.1, "c": 2.5}, kept=("a", "b")) == ["b", "c"]


def test_who_is_silent_keeps_the_place_while_there_is_room():
    assert ranked({"a": 1.0}, kept=("z",)) == ["a", "z"]


def test_what_was_busy_long_ago_counts_less():
    ranking = Ranking()
    ranking.add({"old": 10.0}, 1)
    for _ in range(40):
        ranking.choose(("old",), 1)
    ranking.add({"new": 1.0}, 1)
    assert ranking.choose(("old",), 1) == ["new"]


def test_room_is_divided_evenly_and_what_one_does_not_need_is_the_others():
    assert divide_room(100, {"a": 10, "b": 1000, "c": 1000}, {"a": 1, "b": 1, "c": 1}) == {"a": 10, "b": 45, "c": 45}


def test_a_path_with_several_metrics_takes_as_many_places():
    assert divide_room(100, {"a": 1000, "b": 1000}, {"a": 4, "b": 1}) == {"a": 12, "b": 50}
