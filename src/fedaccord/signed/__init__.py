"""The agreement as a file: one page that people read, and that proves what it says and who signed.

`drafting` makes it, `signatures` adds what members sign, `verification` checks it. The format is on
the page docs/reference/agreement-file.md.
"""
