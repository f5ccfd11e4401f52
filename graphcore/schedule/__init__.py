"""Shared by all backends, between the last graph and their code: order, memory and regions."""
