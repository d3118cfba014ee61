"""Timing of a short call, shared by the scripts in this directory.

The garbage collector is off while the clock runs, as it is in `timeit`: the
peer is shown at its best.
"""

import gc
import statistics
import time

SAMPLES = 50
# A sample repeats the call until it takes about this long.
SAMPLE_NANOS = 1_000_000


def medians(workloads, wanted):
    """Maps the ids in `wanted`, or all, to a median in nanoseconds.

    A workload is a function that prepares and returns the call to time.
    """
    return {name: measure(workloads[name]()) for name in wanted or workloads}


def measure(call):
    repeat = max(1, int(SAMPLE_NANOS / max(nanos(call, 1), 1)))
    gc.collect()
    gc.disable()
    try:
        return statistics.median(nanos(call, repeat) for _ in range(SAMPLES))
    finally:
        gc.enable()


def nanos(call, repeat):
    start = time.perf_counter_ns()
    for _ in range(repeat):
        call()
    return (time.perf_counter_ns() - start) / repeat


async def measure_async(call):
    """The same for a call that is awaited."""
    repeat = max(1, int(SAMPLE_NANOS / max(await nanos_async(call, 1), 1)))
    gc.collect()
    gc.disable()
    try:
        return statistics.median([await nanos_async(call, repeat) for _ in range(SAMPLES)])
    finally:
        gc.enable()


async def nanos_async(call, repeat):
    start = time.perf_counter_ns()
    for _ in range(repeat):
        await call()
    return (time.perf_counter_ns() - start) / repeat
