"""What happened, written down so that nobody can change it unseen."""
