"""The workshop: one person designs an agreement, on this machine alone."""
