"""Timing of the calls of pydantic-ai-backend. The garbage collector is off while the clock
runs, as `timeit` does it: the peer is shown at its best.
"""

import gc
import json
import statistics
import sys
import time
import timeit

# A sample repeats the call until it takes about this long.
SAMPLE_SECONDS = 0.001
# Samples are taken for about two seconds.
LEAST, MOST, SECONDS = 5, 100, 2.0


def main(workloads):
    """Prints the median nanoseconds of the rows that the arguments name, as JSON.

    A workload prepares and returns a function, and says how many calls it makes.
    """
    rows = [row for row in workloads if row in sys.argv]
    print(json.dumps({row: measure(*workloads[row]()) for row in rows}))


def measure(function, n_calls):
    timer = timeit.Timer(function)
    once = timer.timeit(1)
    repeat = max(1, int(SAMPLE_SECONDS / once))
    samples = max(LEAST, min(MOST, int(SECONDS / (once * repeat))))
    return statistics.median(timer.repeat(samples, repeat)) / repeat / n_calls * 1e9


def serve(prepare):
    """Answers requests for calls, one line of JSON each, so that we and the peer take turns.

    `prepare` returns the call and a function for its result's size. A short call is made
    a few times, and the last one counts: it is not timed while its caches are cold.
    """
    for line in sys.stdin:
        request = json.loads(line)
        n_calls = request.pop("calls")
        call, size_of = prepare(**request)
        gc.collect()
        gc.disable()
        for _ in range(n_calls):
            start = time.perf_counter_ns()
            result = call()
            nanos = time.perf_counter_ns() - start
        gc.enable()
        print(json.dumps({"nanos": nanos, "size": size_of(result)}), flush=True)
