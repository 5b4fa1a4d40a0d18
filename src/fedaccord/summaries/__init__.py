"""The sentences about results, each written once, for the terminal, HTML pages and notebooks."""
