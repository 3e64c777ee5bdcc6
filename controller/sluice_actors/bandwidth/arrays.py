"""Types of the arrays in which a round computes.

Docstrings give the shape first: ``(flows,)`` is one number for each flow, ``(nodes,)`` one for each node, ``(parts,)``
one for each pair of a flow and a node of one side on which the flow has transfers.  Rates are bytes per second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
