"""Who gains by lying: mechanisms that compute amounts from what clients report about themselves.

`reports` has what a client may say, `rules` what each mechanism makes of it, `gains` what a lie is
worth to the liar, and `keeping` whether it then does what it is asked for. `best` looks for each
client's best report, and `everyone` for what is left when all clients lie.
"""
