"""A slot as messages: what is asked, what is answered, and what follows from it.

It depends on neither Flower nor a network. The server's half (`coordinator`) says what to ask and
is given the replies, the client's half (`participant`) is given a question and returns an answer,
and `verification` works everything out again from a ledger. What they exchange and write down are
records (`messages`, `facts`, `notes`); everything that the server knows (`state`) it reads from its
ledger.
"""
