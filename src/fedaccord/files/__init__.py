"""Files in and out: consortium files, profiles, tables of clients. Every problem has its place."""
