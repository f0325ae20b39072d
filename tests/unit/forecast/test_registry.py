import pytest

from penstock.errors import InputError
from penstock.forecast.recurrent import RECURRENT, installed
from penstock.forecast.registry import FORECASTERS, check_for_loop, forecaster_for

NETWORKS = {network.name for network in RECURRENT}


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


@pytest.mark.parametrize("name", sorted({"svr", *NETWORKS}))
def test_what_nothing_would_train_in_a_loop_is_refused(name):
    """It was accepted, and never forecast."""
    if name in NETWORKS and not installed():
        pytest.skip("needs the extra 'deep'")
    with pytest.raises(InputError) as caught:
        check_for_loop(f"{name}:window=12")
    assert str(caught.value) == (
        f"forecaster '{name}': must be trained before a loop can use it; train it with "
        f"'penstock train --models {name} --out models', and then give 'trained:folder=models'"
    )


@pytest.mark.parametrize("name", sorted(set(FORECASTERS.names) - NETWORKS - {"svr"}))
def test_what_learns_or_fits_itself_as_it_goes_is_not(name):
    check_for_loop(name)


def test_what_is_wrong_otherwise_is_said_too():
    with pytest.raises(InputError, match="forecaster 'drift': no such option 'size'"):
        check_for_loop("drift:size=3")
