"""Programs on JAX: graphs, derivatives and loops included, are traced and compiled by XLA."""
