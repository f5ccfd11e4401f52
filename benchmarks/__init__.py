"""What graphcore costs and gains, measured: run one file at a time, `python -m benchmarks.speed`.

speed         calls, against hand-written NumPy and JAX, in one interleaved run
compile_time  import, build, differentiate and compile, per node and for a chain 200,000 deep
memory        resident memory over millions of calls and many graphs
page          the numbers of docs/benchmarks/index.md, from the CSV files beside it
figures       the pictures of README and of that page

Real programs have their place in benchmarks/programs/.
"""
