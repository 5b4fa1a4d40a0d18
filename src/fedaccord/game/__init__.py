"""The vocabulary and the stage game."""
