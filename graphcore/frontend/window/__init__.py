"""Functions of neighbouring elements: padding, windows, rolling, differences, convolution."""
