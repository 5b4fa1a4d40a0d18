"""The console: web pages for people who do not use a shell.

`web` is what all pages share; `workshop` is for one person who designs an agreement, `room` for a
consortium that signs and runs one, and `member` for the machine of one of its members.
"""
