"""Code that runs on the device: Warp functions, structs and kernels. It neither reads files nor uses the `Model` class."""
