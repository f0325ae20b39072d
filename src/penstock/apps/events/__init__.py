"""The events of the applications: real ones where a file is present, made ones by seed otherwise."""
