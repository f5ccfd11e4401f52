"""Fourier transforms along dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case


def filled(x: Any) -> Any:
    """At least one value: NumPy reads beyond an empty axis that it is to fill with zeros."""
    return x if x.sizes["col"] else x.pad(col=(0, 1), constant_values=0)


def along(name: str, **options: Any) -> Callable[..., Any]:
    """NumPy's function along one dim of a DataArray."""

    def theirs(x: Any, dim: str = "col") -> Any:
        x = filled(x) if "n" in options else x
        function = getattr(np.fft, name)
        return xarray.DataArray(function(x.values, axis=x.dims.index(dim), **options), dims=x.dims)

    return theirs


def parts(z: Any) -> Any:
    """A real value of both parts of a complex one."""
    if isinstance(z, gc.Tensor):
        return gc.real(z) + 2 * gc.imag(z)
    return z.real + 2 * z.imag


def spectrum(x: Any) -> Any:
    """Complex values made of real ones."""
    return x * (1 + 0.5j) + 1j * x * x


def case(name: str, of: Callable[..., Any] = lambda x: x, **options: Any) -> Case:
    """The same function of both, whose result is made real."""
    return Case(
        lambda x: parts(getattr(gc.fft, name)(of(x), "col", **options)),
        lambda x: parts(along(name, **options)(of(x))),
    )


def frequencies(n: int) -> Any:
    """Those of a transform, of which NumPy refuses to list none."""
    return xarray.DataArray(np.fft.fftfreq(n, 0.5) if n else np.zeros(0), dims="row")


CASES: dict[str, Case] = {
    "fft": case("fft"),
    "fft of complex": case("fft", spectrum),
    "fft n": case("fft", n=6),
    "fft cut": case("fft", n=3),
    "fft ortho": case("fft", norm="ortho"),
    "fft forward": case("fft", norm="forward"),
    "ifft": case("ifft", spectrum),
    "ifft ortho": case("ifft", spectrum, norm="ortho"),
    "ifft forward": case("ifft", norm="forward"),
    "rfft": case("rfft"),
    "rfft odd": case("rfft", n=5),
    "rfft ortho": case("rfft", norm="ortho"),
    "irfft": case("irfft", spectrum, n=6),
    "irfft odd": case("irfft", spectrum, n=7),
    "irfft cut": case("irfft", spectrum, n=4, norm="forward"),
    "hfft": case("hfft", spectrum, n=6),
    "ihfft": case("ihfft", n=5, norm="ortho"),
    "fftn": Case(
        lambda x: parts(gc.fft.fftn(x)),
        lambda x: parts(xarray.DataArray(np.fft.fftn(x.values), dims=x.dims)),
        batch=False,
    ),
    "ifftn": Case(
        lambda x: parts(gc.fft.ifftn(spectrum(x), ["row", "col"])),
        lambda x: parts(
            xarray.DataArray(np.fft.ifftn(spectrum(x).values, axes=(0, 1)), dims=x.dims)
        ),
    ),
    "rfftn": Case(
        lambda x: parts(gc.fft.rfftn(x, ["col", "row"], n={"col": 3})),
        lambda x: parts(
            xarray.DataArray(np.fft.rfftn(x.values, (3, x.sizes["row"]), (1, 0)), dims=x.dims)
        ),
    ),
    "irfftn": Case(
        lambda x: gc.fft.irfftn(spectrum(x), ["row", "col"], n={"col": 6}),
        lambda x: xarray.DataArray(
            np.fft.irfftn(spectrum(filled(x)).values, (x.sizes["row"], 6), (0, 1)), dims=x.dims
        ),
    ),
    "fftshift": Case(
        lambda x: gc.fft.fftshift(x),
        lambda x: x.copy(data=np.fft.fftshift(x.values)),
        batch=False,
    ),
    "ifftshift": Case(
        lambda x: gc.fft.ifftshift(x, "row"),
        lambda x: x.copy(data=np.fft.ifftshift(x.values, 0)),
    ),
    "fftfreq": Case(
        lambda x: x + gc.fft.fftfreq(x.sizes["row"], 0.5, dim="row").astype(x.dtype),
        lambda x: x + frequencies(x.sizes["row"]).astype(x.dtype),
    ),
    "rfftfreq": Case(
        lambda x: x.sum("row") + gc.fft.rfftfreq(8, 0.5, dim="f").astype(x.dtype),
        lambda x: (
            x.sum("row") + xarray.DataArray(np.fft.rfftfreq(8, 0.5), dims="f").astype(x.dtype)
        ),
    ),
}
