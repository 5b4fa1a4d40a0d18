"""`python -m fedaccord`: the same as the command `fedaccord`."""

from fedaccord.cli import main

main()
