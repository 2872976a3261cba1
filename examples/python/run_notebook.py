"""Runs port.ipynb again and writes its output; with --check, only compares it.

    python examples/python/run_notebook.py [--check]

Needs nbformat, nbclient, ipykernel, torch and transformers.
"""

import pathlib
import re
import sys

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).with_name("port.ipynb")


def texts(notebook):
    """What the cells printed, without the errors' sizes: they depend on the machine's rounding."""
    return [re.sub(r"rel[_ ][lL]2 \S+", "", output["text"]) for cell in notebook.cells
            for output in cell.get("outputs", []) if "text" in output]


def run(notebook):
    """Runs all cells; the code of a cell is named after it, not after a temporary file."""
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:  # Warnings of other packages have paths of this machine.
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = re.sub(r"\S*ipykernel_\d+/\d+\.py", "port.ipynb", output["text"])
            if "text/html" in output.get("data", {}):
                output["data"]["text/html"] = re.sub(r"[^\s>]*ipykernel_\d+/\d+\.py", "port.ipynb",
                                                     output["data"]["text/html"])
    return notebook


def main():
    kept = nbformat.read(NOTEBOOK, as_version=4)
    made = run(nbformat.read(NOTEBOOK, as_version=4))
    if "--check" not in sys.argv[1:]:
        nbformat.write(made, NOTEBOOK)
        return 0
    if texts(kept) != texts(made):
        print("port.ipynb prints something else than it has: run examples/python/run_notebook.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
