"""Audits: what a member commits to before a slot, and how one finds out whether it kept to it.

Before a slot each member commits to its records (`merkle`, `commitment`). While it trains it keeps
a `trace`. After the settlement the ledger's head draws who is audited (`draw`). An audit opens
records (`opening`) and replays a round (`replay`); `examination` does both and gives a `verdict`.
Only `replay` and `examination` need PyTorch.
"""
