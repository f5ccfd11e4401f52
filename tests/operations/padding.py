"""Dims with places beyond their ends, in every mode of xarray's pad."""

from __future__ import annotations

import xarray

from tests.operations.case import Case, Input, V, alike

MODES = {
    "edge": {},
    "linear_ramp": {"end_values": (1, -1.5)},
    "maximum": {},
    "mean": {"stat_length": (2, 9)},
    "median": {"stat_length": (2, 3)},
    "minimum": {"stat_length": 3},
    "reflect": {},
    "reflect odd": {"reflect_type": "odd"},
    "symmetric": {},
    "symmetric odd": {"reflect_type": "odd"},
    "wrap": {},
}
INTEGERS = Input("row col", -99, 99, "int64")

CASES: dict[str, Case] = {
    "pad": alike(lambda x: x.pad(col=(1, 2), constant_values=0)),
    "pad constants": alike(
        lambda x: x.pad(
            {"row": 2, "col": (1, 0)}, constant_values={"row": (0.5, -1), "col": 2}
        )
    ),
    "pad integers": alike(lambda x: x.pad(row=1, constant_values=7), INTEGERS),
    "pad by tensor": Case(
        lambda x, v: x.pad(col=(1, 0), constant_values=v),
        lambda x, v: xarray.concat([v.expand_dims("col"), x], "col").transpose("row", "col"),
        (Input("row col"), V),
    ),
    "pad ramp by tensor": Case(
        lambda x, v: x.pad(col=(3, 0), mode="linear_ramp", end_values=v),
        lambda x, v: xarray.concat(
            [
                *[(v + (x.isel(col=0) - v) * i / 3).expand_dims("col") for i in range(3)],
                x,
            ],
            "col",
        ).transpose("row", "col"),
        (Input("row col"), V),
        fixed=("col",),
    ),
    "pad by a size": Case(
        lambda x: x.pad(row=(0, x.sizes["col"]), constant_values=1),
        lambda x: x.pad(row=(0, x.sizes["col"]), constant_values=1),
    ),
    **{
        f"pad {name} {width}": alike(
            lambda x, name=name, width=width: x.pad(
                {"row": width, "col": (width[1], 1)}, mode=name.split()[0], **MODES[name]
            )
        )
        for name in MODES
        for width in ((1, 2), (11, 5))
    },
    **{
        f"pad {name} integers": alike(
            lambda x, name=name: x.pad(row=(2, 1), mode=name), INTEGERS
        )
        for name in ("edge", "linear_ramp", "mean", "median", "reflect")
    },
}  # fmt: skip
