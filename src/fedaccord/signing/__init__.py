"""Who said what: Ed25519 keys, and statements that are signed with them."""
