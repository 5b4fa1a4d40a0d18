"""Case studies: real organisations' data, from who should join to a year under an agreement."""
