"""Answers a request about sales.csv: python3 analysis.py REQUEST.json RESULT.json

Requests:
  {"kind": "table", "by": "shop" | "year" | "month"}
  {"kind": "prediction", "months": 6, "shop": null}
  {"kind": "chart", "shape": "line" | "bar", "title": "Sales", "months": 6}

A month's revenue is taken for a straight line through time and a yearly wave. With pandas
and scikit-learn they do the work, else the standard library does: the numbers are the same.
"""

import csv
import json
import math
import sys

try:
    import pandas
    from sklearn.linear_model import LinearRegression

    ENGINE = "scikit-learn"
except ImportError as error:
    ENGINE = "standard-library"
    print(f"{error}, so the standard library computes; containers have it: --backend docker")

DATA = "sales.csv"
HELD_BACK = 6  # months that the error is measured with
LEAST = 24  # months that a prediction needs


def say(text):
    print(text, flush=True)


def read():
    """Returns the rows (month, shop, revenue) that have a number."""
    with open(DATA, newline="") as file:
        lines = list(csv.DictReader(file))
    rows, skipped = [], 0
    for line in lines:
        try:
            value = float(line["revenue"])
        except (TypeError, ValueError):
            value = math.nan
        if math.isfinite(value):
            rows.append((line["month"], line["shop"], value))
        else:
            skipped += 1
    say(f"read {len(rows)} rows of {DATA}" + (f"; {skipped} have no number" if skipped else ""))
    return rows


def sums(rows, key):
    """Returns the revenue of each value of `key`, in order."""
    if ENGINE == "scikit-learn":
        frame = pandas.DataFrame({"key": [key(row) for row in rows], "revenue": [row[2] for row in rows]})
        return {str(name): float(value) for name, value in frame.groupby("key").revenue.sum().items()}
    totals = {}
    for row in rows:
        totals[key(row)] = totals.get(key(row), 0.0) + row[2]
    return dict(sorted(totals.items()))


def features(at):
    turn = 2 * math.pi * at / 12
    return [at / 12, math.sin(turn), math.cos(turn)]


def fit(values):
    """Returns the function from the number of a month to its revenue."""
    rows = [features(at) for at in range(len(values))]
    if ENGINE == "scikit-learn":
        model = LinearRegression().fit(rows, values)
        intercept, weights = float(model.intercept_), [float(weight) for weight in model.coef_]
    else:
        intercept, *weights = least_squares([[1.0, *row] for row in rows], values)
    return lambda at: intercept + sum(weight * x for weight, x in zip(weights, features(at)))


def least_squares(rows, values):
    """Solves the normal equations by elimination."""
    size = len(rows[0])
    table = [
        [sum(row[i] * row[j] for row in rows) for j in range(size)]
        + [sum(row[i] * value for row, value in zip(rows, values))]
        for i in range(size)
    ]
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(table[row][i]))
        table[i], table[pivot] = table[pivot], table[i]
        for j in range(size):
            if j != i:
                factor = table[j][i] / table[i][i]
                table[j] = [a - factor * b for a, b in zip(table[j], table[i])]
    return [table[i][size] / table[i][i] for i in range(size)]


def after(month, steps):
    """Returns the month this many steps later: 2024-11 and 2 are 2025-01."""
    year, number = map(int, month.split("-"))
    number += year * 12 - 1 + steps
    return f"{number // 12:04}-{number % 12 + 1:02}"


def predict(history, steps):
    """Returns the coming months, the spread of the past ones around the model, and the
    mean error of the last months when the model did not know them."""
    if len(history) < LEAST:
        sys.exit(f"a prediction needs {LEAST} months, and there are {len(history)}")
    values = list(history.values())
    model = fit(values)
    residuals = [value - model(at) for at, value in enumerate(values)]
    spread = math.sqrt(sum(each * each for each in residuals) / len(residuals))
    earlier = fit(values[:-HELD_BACK])
    last = list(enumerate(values))[-HELD_BACK:]
    error = sum(abs(earlier(at) - value) / abs(value) for at, value in last if value) / len(last)
    say(f"fitted {len(values)} months; error of the last {HELD_BACK}: {error:.1%}")
    begin = max(history)
    coming = [(after(begin, step), model(len(values) - 1 + step)) for step in range(1, steps + 1)]
    return coming, spread, error


def table(rows, request):
    by = request["by"]
    keys = {"shop": lambda row: row[1], "year": lambda row: row[0][:4], "month": lambda row: row[0]}
    found = sums(rows, keys[by])
    return {"columns": [by, "revenue"], "rows": [[name, round(value, 2)] for name, value in found.items()]}


def prediction(rows, request):
    shop = request.get("shop")
    chosen = [row for row in rows if shop in (None, row[1])]
    if not chosen:
        sys.exit(f"there is no shop {shop!r}; there are: {', '.join(sorted({row[1] for row in rows}))}")
    coming, spread, error = predict(sums(chosen, lambda row: row[0]), request["months"])
    return {
        "model": "linear trend and yearly wave",
        "mean_error": round(error, 6),
        "points": [
            {"month": month, "value": round(value, 2), "low": round(value - 2 * spread, 2), "high": round(value + 2 * spread, 2)}
            for month, value in coming
        ],
    }


def chart(rows, request):
    shape = request.get("shape", "line")
    series = []
    for shop in sorted({row[1] for row in rows}):
        chosen = [row for row in rows if row[1] == shop]
        history = sums(chosen, lambda row: row[0][:4] if shape == "bar" else row[0])
        known = [[name, round(value, 2)] for name, value in history.items()]
        series.append({"name": shop, "points": known})
        if shape == "line" and request.get("months"):
            coming, _, _ = predict(history, request["months"])
            points = known[-1:] + [[month, round(value, 2)] for month, value in coming]
            series.append({"name": f"{shop}, predicted", "dashed": True, "points": points})
    return {
        "shape": shape,
        "title": request["title"],
        "x_label": "year" if shape == "bar" else "month",
        "y_label": "revenue",
        "series": series,
    }


def main():
    request_path, result_path = sys.argv[1:]
    with open(request_path) as file:
        request = json.load(file)
    say(f"engine: {ENGINE}")
    work = {"table": table, "prediction": prediction, "chart": chart}[request["kind"]]
    result = {"engine": ENGINE, **work(read(), request)}
    with open(result_path, "w") as file:
        json.dump(result, file)
    say(f"wrote {result_path}")


main()
