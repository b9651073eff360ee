"""The real TensorBoard loads our log, and shows the graph in Chromium."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from steps import PATIENCE

import opscope
from opscope.ir import Table, column
from opscope.ir.columns import frozen

DATA = Path(__file__).parent.parent / "data"
LABELS = """() => {
    const found = [];
    const walk = root => {
        for (const element of root.querySelectorAll('*')) {
            if (element.shadowRoot) walk(element.shadowRoot);
            if (element.tagName === 'text') found.push(element.textContent);
        }
    };
    walk(document);
    return found;
}"""


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("log")
    capture = opscope.open(DATA / "megengine" / "resnet18_w8.mge")
    count = capture.graph.n_nodes
    capture.tables["times"] = Table(0, "node", frozen(range(count)), {"time": column([5e6] * count, "ns")}, "times")
    capture.save(folder, format=".tensorboard")
    # Blocking: it has read the log before it answers.
    options = ["--port=0", "--load_fast=false", "--reload_task=blocking", "--reload_interval=0"]
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={folder}", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        found = re.search(r"http://localhost:\d+/", line)
        if found:
            yield found[0]
            break
    else:
        pytest.fail(f"TensorBoard did not start:\n{seen}")
    process.terminate()
    process.wait()


def fetched(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def test_the_plugin_serves_the_graph(tensorboard: str) -> None:
    base = f"{tensorboard}data/plugin/graphs"
    runs = json.loads(fetched(f"{base}/info"))
    assert runs["."]["run_graph"] is True
    text = fetched(f"{base}/graph?run=.")
    assert text.count("\nnode {") + text.startswith("node {") == 147
    assert 'name: "layer4/1/conv2/Convolution"' in text
    assert 'input: "bn1/BatchNorm:3"' in text
    assert '"flops"' in text
    assert "opscope" in runs["."]["tags"]
    stats = fetched(f"{base}/run_metadata?run=.&tag=opscope")
    assert stats.count("node_stats") == 78
    assert "all_end_rel_micros: 5000" in stats


def test_chromium_sees_it(tensorboard: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{tensorboard}#graphs")
    page.wait_for_function(f"() => ({LABELS})().some(text => text.includes('layer4'))")
    shown = page.evaluate(LABELS)
    for name in ("data", "conv1", "layer1", "layer2", "layer3", "maxpool", "fc"):
        assert any(name in text for text in shown), shown
    assert any("1×3×64×64" in text for text in shown)  # a shape on an edge
    page.close()
