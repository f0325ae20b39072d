"""What came, played again under many rules at once."""
