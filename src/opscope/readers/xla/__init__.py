"""What JAX and XLA write: HLO modules as protos and as text, StableHLO as text, and the folders of `--xla_dump_to`."""

from __future__ import annotations

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Pools, Stage, add_listings
from opscope.readers.source import Options, Source

from . import dump, mlir, proto, text, xplane
from .build import Builder
from .hlo import Module
from .listing import listing

NAME = "xla"
FRAMEWORK = "jax"
_LARGEST_LISTING = 16 << 20


def match(source: Source) -> bool:
    if source.is_folder:
        return dump.is_dump(source)
    head = source.head
    return is_text(head) or mlir.looks_like_module(head) or xplane.match(source) or proto.looks_like_module(head)


def is_text(head: bytes) -> bool:
    """A module, or single computations without its header."""
    lines = [
        line for line in head.decode("utf-8", "replace").splitlines() if line.strip() and not line.startswith("//")
    ]
    return bool(lines) and lines[0].startswith("HloModule ")


def read(source: Source, options: Options) -> Capture:
    capture = _read(source)
    if options.profile is not None:
        profile = Source.of(options.profile).unpacked()
        if not xplane.match(profile):
            raise BadInput(
                f"{options.profile}: not a profile of JAX: an XSpace (.xplane.pb) belongs to what XLA compiled"
            )
        xplane.join(capture, profile)
    return capture


def _read(source: Source) -> Capture:
    if source.is_folder:
        return dump.read(source)
    if xplane.match(source):
        return xplane.read(source)
    module = read_module(source)
    capture = Capture(pools=Pools(), origin=Origin(NAME, FRAMEWORK, how="file"))
    capture.stages.append(Stage(module.name or "module", Builder(capture.pools).graph(module, source.name)))
    if _is_written(source.head) and source.size <= _LARGEST_LISTING:
        add_listings(capture, 0, {"native": listing(source, capture.stages[0].graph)})
    return capture


def _is_written(head: bytes) -> bool:
    return is_text(head) or mlir.looks_like_module(head)


def read_module(source: Source, decoder: proto.Decoder | None = None) -> Module:
    if is_text(source.head):
        return text.read_module(source.lines(), source.name)
    if mlir.looks_like_module(source.head):
        return mlir.read_module(source.lines(), source.name)
    if not proto.looks_like_module(source.head):
        raise BadInput(f"{source.name}: neither HLO text nor a module of HLO")
    return proto.read_module(source.read(), source.name, decoder)
