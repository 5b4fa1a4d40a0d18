"""The files of a Flower app directory, some to be filled in."""
