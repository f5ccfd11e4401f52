"""What all backends share between the last graph and their code: order, memory and regions."""
