"""A consortium across machines: the directories of the server and of each member, and their checks.

The server's directory has nobody's numbers, data or private keys. They are made in the directory of
each member, and only public halves leave it:

    coordinator: `flower new`    -> invitation.toml -> every member
    member:      `member new`    -> card.json       -> the coordinator
    coordinator: `server admit`  -> to-sign.toml    -> every member
    member:      `member sign`   -> signature.json  -> the coordinator
"""
