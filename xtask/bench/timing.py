"""Timing of calls, shared by the scripts in this directory.

A script with `main` prints one JSON object that maps the id of a row to a median in
nanoseconds. Arguments are the ids to measure; without any, all are.

A script with `serve` reads one JSON request per line, makes the call, and answers one
JSON line with the nanoseconds that it took and the size of its result. The process
stays for the whole run, so neither its start nor the pipe is timed, and the benchmark
can call us and the peer in turns. A short call is made a few times in each turn, and
the last one counts: neither side is timed while its caches are cold.

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


def main(workloads, **samples):
    """Measures the workloads, functions that prepare and return a call, in their order."""
    wanted = sys.argv[1:] or workloads
    chosen = {name: prepare for name, prepare in workloads.items() if name in wanted}
    print(json.dumps({name: measure(chosen[name](), **samples) for name in chosen}))


def serve(prepare):
    """Answers requests. `prepare` returns the call and a function for its result's size."""
    for line in sys.stdin:
        request = json.loads(line)
        n_calls = request.pop("calls")
        answer(*prepare(**request), n_calls)


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
