"""What a person sees of an isolation: text, a notebook's HTML, a file, a page that is served."""

from __future__ import annotations

import copy
import json
import pathlib
import urllib.error
import urllib.request

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402


@pytest.fixture
def answer() -> tensordiff.Isolation:
    torch.manual_seed(0)
    a = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    b = copy.deepcopy(a)
    b[1] = torch.nn.GELU(approximate="tanh")
    b.add_module("<b>&", torch.nn.Identity())  # A name from a model is no HTML.
    return tensordiff.isolate(a, b, torch.linspace(-2, 2, 8).reshape(2, 4))


def test_a_page_is_served_on_this_machine_only(answer: tensordiff.Isolation) -> None:
    served = answer.serve(browser=False)
    try:
        assert served.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(served.url) as reply:
            text = reply.read().decode()
        assert "GELU" in text and "&lt;b&gt;&amp;" in text and "<b>&" not in text
    finally:
        served.close()
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(served.url, timeout=5)


def test_files_and_notebooks_show_the_tree(answer: tensordiff.Isolation,
                                           tmp_path: pathlib.Path) -> None:
    path = tmp_path / "page.html"
    answer.save_html(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "http://" not in text and "https://" not in text
    assert "GELU" in answer._repr_html_()
    assert json.loads(json.dumps(answer.to_dict()))["findings"][0]["path"] == "1"
    assert str(answer).startswith("DIFFERENT")


def test_invariance_is_shown_too() -> None:
    answer = tensordiff.invariance(torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.ones(3, 4))
    assert "runs repeat" in answer._repr_html_() and answer.to_dict()["functions"] > 0


@pytest.mark.parametrize("mapping,text", [
    ({"9": "1"}, "mapping: B has no module '9'"), ({"1": "x.y"}, "mapping: A has no module 'x.y'")])
def test_a_mapping_that_names_unknown_modules(mapping: dict[str, str], text: str) -> None:
    a = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with pytest.raises(tensordiff.MappingError, match=text):
        tensordiff.isolate(a, copy.deepcopy(a), torch.ones(1, 4), mapping=mapping)
