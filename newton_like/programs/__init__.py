"""Running programs over the articulations of a model: templates, parameters, memory, devices, threads and gradients."""
