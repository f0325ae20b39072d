"""The scenarios of `kafka.py`; each in a process of its own: `python kafka_scenarios.py BROKERS latency penstock 200`.

Whoever is measured runs in processes of its own; this one only makes the input, and reads what comes out.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles

from kafka_stage import Family, Listener, Sender, Stage, event, stage, until
from rounds import Figures

FIRST = 4  # events
FIRST_S = 120.0  # to wait for a contender's first result
HALT_S = 60.0  # without a new one
LIVE_RATE = 100.0
SERVICE_MS = 5
POOL = 4
AFTERWARDS_S = 20.0
LOOK_EVERY_S = 10.0  # at memory


def latency(brokers: str, system: str, rate: str, warm_up_s: str = "60", measure_s: str = "20") -> Figures:
    """From an event's time in the input topic to its arrival at a reader of the output topic, at a steady rate.

    Java compiles for about a minute, and takes a core for it: all have so long before they are measured.
    """
    with stage(brokers) as on, on.playing(system) as family:
        listener = Listener(on)
        on.fill(FIRST)  # before the contender is at work, no more: what had to wait for it would be in its way
        until(lambda: bool(family.members() and listener.heard), FIRST_S)
        sender = Sender(on, float(rate))
        time.sleep(float(warm_up_s))
        begin_s, cpu = time.time(), family.cpu_s()
        time.sleep(float(measure_s))
        end_s, cpu = time.time(), family.cpu_s() - cpu
        sender.end()
        until(lambda: len(listener.heard) >= FIRST + sender.sent, HALT_S)
        listener.end()
    times = [1000 * (here_s - born_s) for born_s, here_s in listener.heard if begin_s <= born_s < end_s]
    at = quantiles(times, n=100)  # exact, as systems may be closer to each other than buckets of a histogram
    found = {"p50": at[49], "p90": at[89], "p99": at[98]}
    return found | {"events": len(times), "cpu_s_per_1000": 1000 * cpu / len(times)}


def rate(brokers: str, system: str, count: str, warm_up: str = "50000") -> Figures:
    """Events per second from the moment when all become visible to the last result, and the CPU that they take."""
    with stage(brokers) as on, on.playing(system) as family:
        on.fill(int(warm_up))
        until(lambda: bool(family.members() and on.delivered()), FIRST_S)
        watch(on, lambda: on.delivered() < int(warm_up))
        show = on.fill_hidden(int(count))
        cpu, begin_s = family.cpu_s(), time.time()
        show()
        watch(on, lambda: on.delivered() < int(warm_up) + int(count))
        took_s, cpu = time.time() - begin_s, family.cpu_s() - cpu
    return {"rate": int(count) / took_s, "cpu_s_per_1000": 1000 * cpu / int(count)}


def watch(on: Stage, goes_on: Callable[[], bool], look: Callable[[], object] = lambda: None) -> list[tuple[float, int]]:
    """How many results there were, and when; nothing new for long ends it."""
    seen = [(time.time(), on.delivered())]
    grown_s = time.time()
    while goes_on():
        look()
        time.sleep(0.1)
        seen.append((time.time(), on.delivered()))
        if seen[-1][1] > seen[-2][1]:
            grown_s = time.time()
        if time.time() - grown_s > HALT_S:
            raise SystemExit(f"it came to a halt after {seen[-1][1]} results")
    return seen


def saturated(brokers: str, count: str) -> Figures:
    """Events per second of operators that take their time, all events in a file."""
    with stage(brokers) as on:
        file = on.folder / "events.jsonl"
        file.write_text("".join(json.dumps(event(number)) + "\n" for number in range(int(count))))
        with on.playing("penstock", str(SERVICE_MS), str(POOL), source=str(file)):
            until(lambda: on.delivered() > 0, FIRST_S)
            seen = watch(on, lambda: on.delivered() < int(count))
    return {"rate": middle(seen)}


def behind(brokers: str, policy: str, behind_s: str, grouping: str = "shuffle") -> Figures:
    """The same operators, begun so many seconds behind a topic to which more comes meanwhile."""
    waiting = int(LIVE_RATE * float(behind_s))
    with stage(brokers) as on:
        on.fill(waiting)
        under = [] if policy == "none" else [policy, grouping]
        with on.playing("penstock", str(SERVICE_MS), str(POOL), *under) as family:
            sender = Sender(on, LIVE_RATE)
            until(lambda: bool(family.members() and on.delivered()), FIRST_S)
            memory = [family.memory_mb()]
            begin_s = time.time()
            seen = watch(on, lambda: on.delivered() < waiting + sender.sent - LIVE_RATE, _every(memory, family))
            took_s, active = time.time() - begin_s, family.said("active")
            time.sleep(AFTERWARDS_S)
            later = family.said("active")
            sender.end()
    tenth = max(1, len(memory) // 10)
    return {
        "behind_s": float(behind_s),
        "rate": middle(seen),
        "took_s": took_s,
        "active_behind": median(map(int, active)),
        "active_afterwards": int(later[-1]),
        "memory_early_mb": max(memory[: 2 * tenth]),
        "memory_most_mb": max(memory),
    }


def _every(memory: list[float], family: Family) -> Callable[[], None]:
    """Looks at the family's memory now and then: it takes time that the family lacks."""
    looked_s = time.time()

    def look() -> None:
        nonlocal looked_s
        if time.time() - looked_s > LOOK_EVERY_S:
            memory.append(family.memory_mb())
            looked_s = time.time()

    return look


def middle(seen: list[tuple[float, int]]) -> float:
    """Rate from the first fifth of the results to the last."""
    total = seen[-1][1]
    some = [one for one in seen if 0.2 * total <= one[1] <= 0.8 * total]
    return (some[-1][1] - some[0][1]) / (some[-1][0] - some[0][0])


if __name__ == "__main__":
    scenarios: dict[str, Callable[..., Figures]] = {
        "latency": latency,
        "rate": rate,
        "saturated": saturated,
        "behind": behind,
    }
    print(json.dumps(scenarios[sys.argv[2]](sys.argv[1], *sys.argv[3:])))
