"""Free-rider detection on real updates: DAGMM, STD-DAGMM and ECOD.

`evaluation` lists the detectors and measures them; other packages can add theirs by an entry point.
"""
