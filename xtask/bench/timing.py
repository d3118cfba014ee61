"""Timing of calls, shared by the scripts in this directory.

The garbage collector is off while the clock runs, as it is in `timeit`: the
peer is shown at its best.
"""

import contextlib
import gc
import json
import statistics
import sys
import time

SAMPLES = 50
# A sample repeats the call until it takes about this long.
SAMPLE_NANOS = 1_000_000


def main(workloads):
    """Prints the medians of the ids on the command line, or of all, as JSON.

    A workload is a function that prepares and returns the call to time.
    """
    print(json.dumps({name: measure(workloads[name]()) for name in sys.argv[1:] or workloads}))


@contextlib.contextmanager
def no_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def repeats(nanos_of_one):
    return max(1, int(SAMPLE_NANOS / max(nanos_of_one, 1)))


def measure(call, least=SAMPLES, most=SAMPLES, seconds=0):
    """The median in nanoseconds of `least` samples, or more for so many seconds."""
    repeat = repeats(nanos(call, 1))
    samples = []
    deadline = time.monotonic() + seconds
    with no_collector():
        while len(samples) < least or (len(samples) < most and time.monotonic() < deadline):
            samples.append(nanos(call, repeat))
    return statistics.median(samples)


def nanos(call, repeat):
    start = time.perf_counter_ns()
    for _ in range(repeat):
        call()
    return (time.perf_counter_ns() - start) / repeat


async def measure_async(call):
    """The same for a call that is awaited."""
    repeat = repeats(await nanos_async(call, 1))
    with no_collector():
        return statistics.median([await nanos_async(call, repeat) for _ in range(SAMPLES)])


async def nanos_async(call, repeat):
    start = time.perf_counter_ns()
    for _ in range(repeat):
        await call()
    return (time.perf_counter_ns() - start) / repeat


def answer(call, size_of, n_calls):
    """Prints the time of the last of `n_calls` calls and the size of its result."""
    with no_collector():
        for _ in range(n_calls):
            start = time.perf_counter_ns()
            result = call()
            nanos = time.perf_counter_ns() - start
    print(json.dumps({"nanos": nanos, "size": size_of(result)}), flush=True)
