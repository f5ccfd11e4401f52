"""Temperature of the sea off Peru: its mean year, its anomalies and their trend."""

import numpy as np

import graphcore as gc
from graphcore.demo import datasets

times, values = datasets.sea_temperature()
month = gc.constant(times.astype("datetime64[M]").astype(int) % 12, "time")  # 0 is January
decades = gc.constant(np.arange(len(times)) / 120, "time")

# The formulas. Groups are reduced and subtracted as in xarray.
sst = gc.tensor("sst", {"time": len(times)})
months = sst.groupby(month, 12, name="month")
mean_year = months.mean()
anomaly = months - mean_year
centred = decades - decades.mean()
trend = (centred * anomaly).sum() / (centred**2).sum()  # the slope by least squares
influence = gc.grad(trend, sst)  # what one degree more in a month adds to the trend

# The numbers: one call computes all of them.
results = {"year": mean_year, "anomaly": anomaly, "trend": trend, "influence": influence}
f = gc.compile([sst], results)
found = f(values)
error = 0.3 * np.linalg.norm(found["influence"])  # of independent errors
print("mean year, January to December:", found["year"].round(1))
print(f"trend: {found['trend']:+.3f} degrees per decade")
print(f"its error, if each month is measured with an error of 0.3 degrees: {error:.3f}")
print("warmest months, relative to the mean year:")
for i in np.argsort(found["anomaly"])[:-6:-1]:
    print(f"  {times[i]}  {found['anomaly'][i]:+.2f}")

# The same with labels: a DataArray of xarray as the argument gives DataArrays.
try:
    import xarray as xr
except ImportError:
    print("xarray is not installed, so the results have no labels")
else:
    labelled = gc.compile([sst], anomaly, returns="xarray")
    print(labelled(xr.DataArray(values, {"time": times})).sel(time="1997").round(2))
