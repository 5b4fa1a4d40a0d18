"""Datasets, their partition among clients, and their drift from slot to slot."""
