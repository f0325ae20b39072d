import pytest

from penstock.forecast.registry import forecaster_for


@pytest.mark.parametrize("name", ["seasonal_naive", "holt_winters", "ridge"])
class TestAForecasterOfDays:
    def test_is_told_how_many_intervals_make_one(self, name):
        assert forecaster_for(name, interval_s=300, day_s=86_400).day == 288

    @pytest.mark.parametrize("given", ["168", "day=168"])
    def test_keeps_what_the_user_says_by_position_or_by_name(self, name, given):
        """By position it was ignored: the loop's own day went before it."""
        assert forecaster_for(f"{name}:{given}", interval_s=300, day_s=86_400).day == 168


def test_what_is_not_known_is_not_told():
    made = forecaster_for("trained:models", interval_s=300, day_s=86_400)
    assert (made.followed.series, made.followed.run) == ("", None)
