"""Agreements: how they are found, what enforces them, and the proof that they hold."""
