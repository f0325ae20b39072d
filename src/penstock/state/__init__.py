"""State by key: key groups and their owners, the state itself, and how it is handed over while events flow."""
