"""The slot as messages: what is asked, what is answered, what follows. No Flower in here.

The server's half is a state machine without input or output: it says what to ask and is given the
replies. All that it knows it can read again from the ledger.
"""
