"""What is on a page of the dashboard, and numbers and times as it writes them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from penstock.metrics.store import Store

from ..services.tab import Tab


def tile(tab: Tab, name: str) -> str:
    """The value of a tile."""
    return str(tab.value(f"document.querySelector('[data-tile=\"{name}\"] dd').textContent"))


def box(tab: Tab, operator: str) -> list[str]:
    """The texts in an operator's box."""
    script = f"[...document.querySelectorAll('[data-name={operator}] text')].map((one) => one.textContent)"
    found: list[str] = tab.value(script)
    return found


def table(tab: Tab, name: str) -> list[list[str]]:
    """The rows of a table, cell by cell."""
    rows = f"[...document.querySelectorAll('#{name} tbody tr')]"
    found: list[list[str]] = tab.value(f"{rows}.map((row) => [...row.cells].map((cell) => cell.textContent))")
    return found


def legend(tab: Tab, line: str) -> str:
    """What the charts say of a line at this point in time."""
    return str(tab.value(f"document.querySelector('#charts [data-line={line}]').textContent"))


def at(tab: Tab) -> int:
    """The number of the interval that is shown."""
    return int(tab.value("document.getElementById('slider').value"))


def go_to(tab: Tab, interval: int) -> None:
    """Move the slider, and wait for the page."""
    tab.value(f"(slider.value = {interval}, slider.dispatchEvent(new Event('input')))")
    tab.until(f"document.getElementById('when').textContent.startsWith('interval {interval},')")


def number(value: float | None, digits: int = 1) -> str:
    """A number of things, or a rate; a dash where it is not known."""
    if value is None:
        return "–"
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:,f}".rstrip("0").rstrip(".") if digits else f"{rounded:,f}"


def percent(value: float | None) -> str:
    """Of a number that is per cent already."""
    return "–" if value is None else f"{number(value, 3)} %"


def share(part: float | None, all_: float) -> str:
    """A part of all."""
    return percent(None if part is None or not all_ else 100 * part / all_)


def duration(seconds: float) -> str:
    """A time, in units that fit."""
    if seconds < 10:
        return f"{number(seconds)} s"
    whole = int(number(seconds, 0).replace(",", ""))
    if whole < 60:
        return f"{whole} s"
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d} h" if hours else f"{minutes}:{rest:02d} min"


def milliseconds(value: float | None) -> str:
    """A short time."""
    if value is None:
        return "–"
    if value >= 10_000:
        return duration(value / 1000)
    return f"{value / 1000:.2f} s" if value >= 1000 else f"{number(value)} ms"


def size(value: int | None) -> str:
    """A number of bytes below a million."""
    if value is None:
        return "–"
    return f"{value} B" if value < 1000 else f"{number(value / 1000)} kB"


def check_checkpoints(tab: Tab, store: Store, run: str) -> None:
    """Tiles, table and chart of checkpoints are what the store has of the interval that is shown."""
    (row,) = [one for one in store.checkpoints(run) if one.number == at(tab)]
    took = milliseconds(None if row.took_s is None else 1000 * row.took_s)
    assert (tile(tab, "checkpoint age"), tile(tab, "checkpoint took")) == (duration(row.age_s), took)
    last = "none yet" if row.checkpoint is None else str(row.checkpoint)
    counts = [number(row.committed), number(row.given_up)]
    cells = [last, duration(row.age_s), took, size(row.size_bytes), *counts, duration(row.every_s)]
    assert table(tab, "checkpoints") == [cells]
    assert legend(tab, "checkpoint_age_ms") == f"age of the last {milliseconds(round(1000 * row.age_s, 2))}"
    assert legend(tab, "checkpoint_ms").startswith("it took ")
