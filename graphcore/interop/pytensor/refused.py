"""Ops of PyTensor that have no counterpart here: why, and what to do."""

REFUSED = {
    "sparse": "sparse matrices have no counterpart",
    "typed_list": "lists of tensors have no counterpart",
    "Choose": "it chooses from a list of tensors",
    "Schur": "there is no Schur form",
    "QZ": "there is no generalized Schur form",
    "TRSYL": "there is no Schur form, which Sylvester's equation is solved by",
    "RNGConsumerOp": "random numbers come from PyTensor",
    "AbstractFunctionGraph": "a graph is not an op",
    "PdbBreakpoint": "compiled programs do not stop for a debugger",
    "ScipyWrapperOp": "it calls a solver of SciPy",
}
"""The reasons, by class name, or by the module whose ops have no counterpart."""

CURES = {
    "sparse": "write the matrix as a dense one, or sums over its elements by indices",
    "typed_list": "stack the tensors along a new axis",
    "Choose": "stack the tensors along a new axis, and index it",
    "Schur": "compute it outside, or in PyTensor's own modes",
    "QZ": "compute it outside, or in PyTensor's own modes",
    "TRSYL": "solve the Kronecker form: solve_discrete_lyapunov(..., method='direct')",
    "RNGConsumerOp": 'compile in mode="GRAPHCORE", where PyTensor draws, or give draws as inputs',
    "AbstractFunctionGraph": "give its inputs and outputs",
    "PdbBreakpoint": "leave it out, and look into the program with f.trace",
    "ScipyWrapperOp": "compile with PyTensor's own modes",
    "rule": 'write a rule, a function of the node and tensors: @gc.interop.pytensor.rule("{name}")',
}
"""The cures; under "rule" that of an op which is not known at all."""


class Unsaid(Exception):
    """A refusal by a rule, which does not know its node: a reason, and a cure."""
