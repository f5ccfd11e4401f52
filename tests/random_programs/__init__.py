"""Random programs whose dims are all drawn from three names, and an eager reference for them.

A program is Python text. It runs with `gc` standing for graphcore, and with `gc` standing for
`eager`, which computes at once and shares no code with the compiler.
"""
