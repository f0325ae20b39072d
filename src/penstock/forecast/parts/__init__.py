"""What the forecasters of rates with days are made of: windows, features, fits, weights and spreads."""
