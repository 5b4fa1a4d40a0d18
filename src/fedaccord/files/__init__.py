"""Consortium files, profile files and tables of clients; every problem with its place."""
