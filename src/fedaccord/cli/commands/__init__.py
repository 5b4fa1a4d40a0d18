"""The commands, one module each: parse the options, call the library, print the result."""
