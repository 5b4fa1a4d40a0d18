"""The fast engine: the steps of many clients in one tensor operation."""
