"""Free-rider detection for real: DAGMM, STD-DAGMM and ECOD on the updates that clients send."""
