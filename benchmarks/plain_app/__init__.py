"""FedAvg on Flower alone, to compare with."""
