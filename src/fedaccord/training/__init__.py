"""FedAvg under a profile: each client trains on as many samples as it contributes."""
