"""The papers' own figures, for the applications that are the papers'."""

from __future__ import annotations

from penstock.metrics.paper import PaperMetrics

SOURCE = "Wladdimiro et al., SBAC-PAD 2022 and COMPAS 2023"

PUBLISHED = {
    "twitter": PaperMetrics(0.5617, 0.1831, 0.9987, 2098.91),
    "complex": PaperMetrics(0.745, 0.0911, 0.9970, 219.0),
    "dns": PaperMetrics(0.6062, 0.3734, 0.9884, 336.0),
}
"""What PSPS reached in the papers, by the name of the topology: 11 virtual machines, the paper's trace, td 30 s."""
