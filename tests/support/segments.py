"""Distance of two line segments as a least-squares problem with bounds."""

import numpy as np
from scipy.optimize import lsq_linear


def segment_distance(a0, a1, b0, b1) -> float:
    """The smallest ``|a0 + s (a1 - a0) - b0 - t (b1 - b0)|`` for s and t from 0 to 1."""
    a, b, r = (np.subtract(x, y) for x, y in ((a1, a0), (b1, b0), (b0, a0)))
    found = lsq_linear(np.stack([a, -b], axis=1), r, (0.0, 1.0), method="bvls", tol=1e-15)
    return float(np.linalg.norm(found.x[0] * a - found.x[1] * b - r))
