from penstock.forecast.last_value import LastValue


def test_only_the_last_rate_counts():
    forecaster = LastValue()
    for rate in (500.0, 3.0, 42.0):
        forecaster.learn(rate)
    assert forecaster.forecast(3).tolist() == [42.0, 42.0, 42.0]


def test_a_missing_rate_leaves_the_one_before_it():
    forecaster = LastValue()
    forecaster.learn(42.0)
    forecaster.learn(float("nan"))
    assert forecaster.forecast(1).tolist() == [42.0]
