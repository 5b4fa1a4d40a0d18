"""The interview: what people know about their organisation becomes the numbers of a client."""
