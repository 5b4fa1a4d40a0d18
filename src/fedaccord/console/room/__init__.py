"""The room: the coordinator's server, where terms are discussed and signed, and slots watched."""
