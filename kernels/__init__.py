"""Everything that runs on the device: Warp functions, structs and kernels. Nothing here reads a file or knows the Model class."""
