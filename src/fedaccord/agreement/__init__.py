"""Long-term cooperation: agreements, what enforces them, and the proof that they hold."""
