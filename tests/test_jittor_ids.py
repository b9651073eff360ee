"""Jittor's own numbers can be searched, and gradients of gradients stand apart."""

from __future__ import annotations

import re

from commands import good

import opscope
from conftest import DATA

QUIRKS = DATA / "jittor" / "quirks"


def test_what_a_warning_names_can_be_found():
    capture = opscope.open(QUIRKS / "second_order.pkl")
    named = [int(number) for text in capture.all_warnings() for number in re.findall(r"\d{4}", text.partition(")")[0])]
    assert named == [2605, 2607, 2609, 2603]
    for number in named:
        (node,) = capture.find(f"id:{number}")
        assert node.phase == "backward"
    assert capture.find("id:2600..2610 phase:backward")
    assert not capture.find("id:1")
    assert "backward" in good("find", QUIRKS / "second_order.pkl", "id:2605")


def test_orders_of_gradients_stand_apart():
    graph = opscope.open(QUIRKS / "second_order.pkl").graph
    second = [node for node in graph.nodes if node.path.startswith("backward 2")]
    assert len(second) == 28
    assert all(node.phase == "backward" for node in second)
    assert {node.path for node in second} >= {"backward 2/m/fc1", "backward 2/m/relu"}
    links = graph.links["grad"]
    of = dict(zip(links.target.tolist(), links.source.tolist(), strict=True))
    for node in second:
        if node.index in of:
            assert graph.node(of[node.index]).phase == "backward", "a gradient of a gradient"
