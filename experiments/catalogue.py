"""All experiments, in the order of the page."""

from __future__ import annotations

from experiments import bgelasor, dabs, e2df, groupings, psps
from experiments.experiment import Experiment
from penstock.common.names import one_of

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (*psps.EXPERIMENTS, *dabs.EXPERIMENTS, *e2df.EXPERIMENTS, *bgelasor.EXPERIMENTS, *groupings.EXPERIMENTS)
}


def chosen(names: str | None) -> list[Experiment]:
    """The experiments of these names, separated by commas; all of them without any.

    >>> [one.title for one in chosen("table-vii, table-v")]
    ['Grouping', 'Timeout t_out']
    """
    if names is None:
        return list(EXPERIMENTS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    return [EXPERIMENTS[one_of("--only", name, EXPERIMENTS)] for name in wanted]
