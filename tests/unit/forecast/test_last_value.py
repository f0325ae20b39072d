from penstock.forecast.last_value import LastValue


def test_only_the_last_rate_counts():
    forecaster = LastValue()
    for rate in (500.0, 3.0, 42.0):
        forecaster.learn(rate)
    assert forecaster.forecast(3).tolist() == [42.0, 42.0, 42.0]
