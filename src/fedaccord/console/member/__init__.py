"""A member's local page: its key and its numbers are here, and stay here."""
