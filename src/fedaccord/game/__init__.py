"""The stage game: clients, costs, equilibrium, social optimum."""
