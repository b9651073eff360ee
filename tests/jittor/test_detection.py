"""Which framework something belongs to, found without importing any."""

from __future__ import annotations

import jittor as jt
import pytest
from jittor import nn

import opscope
from opscope.tracers import registry


class Foreign:
    """A model of an unknown framework."""

    __module__ = "abacus.nn"

    def __call__(self, x):
        return x


def test_an_object_of_another_framework_is_named():
    with pytest.raises(
        opscope.OpscopeError,
        match=r"an object of type abacus\.nn\.Foreign: .* supported one \(.*jittor.*\)",
    ):
        opscope.trace(Foreign(), 3)
    with pytest.raises(opscope.OpscopeError, match=r"abacus\.nn\.Foreign"):
        opscope.record(Foreign())


def test_a_framework_by_name():
    with pytest.raises(
        opscope.OpscopeError,
        match=r"framework 'abacus' cannot be traced \(supported: .*jittor.*\)",
    ):
        opscope.record(framework="abacus")


class Wrapper:
    def __init__(self) -> None:
        self.model = nn.Linear(2, 2)


@pytest.mark.parametrize(
    "value",
    [
        lambda: nn.Linear(2, 2),
        lambda: jt.ones(3),
        lambda: nn.Linear(2, 2).execute,
        lambda: [{"a": (1, jt.ones(3))}],
        lambda: jt.optim.SGD(nn.Linear(2, 2).parameters(), 0.1),
        lambda: type("Mine", (nn.Linear,), {"__module__": "somebody.else"})(2, 2),
    ],
)
def test_types_of_jittor(value):
    assert registry.frameworks_of(value()) == {"jittor"}


def test_an_object_that_holds_a_model():
    assert registry.detect(Wrapper()) == "jittor"


def test_two_frameworks_at_once(monkeypatch):
    monkeypatch.setitem(registry.FRAMEWORKS, "abacus", registry.Framework("abacus_tracer", ("abacus",)))
    with pytest.raises(opscope.OpscopeError, match=r"could belong to abacus, jittor: say which with framework="):
        registry.detect([Foreign(), jt.ones(2)])
