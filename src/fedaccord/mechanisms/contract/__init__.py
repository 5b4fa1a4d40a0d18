"""Contract design: a server that buys training with a menu of contracts and a deadline."""
