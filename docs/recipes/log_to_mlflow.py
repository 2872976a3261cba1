#!/usr/bin/env python3
"""Logs what changed between two models to MLflow; without MLflow, prints the metrics as JSON.

    log_to_mlflow.py OLD NEW
"""
import json
import subprocess
import sys

try:
    import mlflow
except ImportError:
    mlflow = None


def compare(old, new):
    """The list of changes: one-key objects, [] when nothing differs."""
    result = subprocess.run(["tensordiff", old, new, "--output", "json"],
                            capture_output=True, text=True)
    if result.returncode == 2:
        raise RuntimeError(result.stderr.strip())
    return json.loads(result.stdout)


def count_by_tag(changes):
    metrics = {"total_changes": len(changes)}
    for tag in ("TensorStatsChanged", "TensorShapeChanged", "TensorAdded", "TensorRemoved"):
        metrics[tag] = len([change for change in changes if tag in change])
    return metrics


def main():
    old, new = sys.argv[1:]
    changes = compare(old, new)
    metrics = count_by_tag(changes)
    if mlflow is None:
        print(json.dumps(metrics))
        return
    with mlflow.start_run():
        mlflow.log_dict(changes, "model_comparison.json")
        mlflow.log_metrics(metrics)


if __name__ == "__main__":
    main()
