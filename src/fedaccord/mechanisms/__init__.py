"""What else people would do about free riders, and how it compares.

`fedaccord.mechanisms.mechanism` says what a mechanism is, `mechanisms` lists those there are,
`comparison` puts them side by side.
"""
