"""What a graph is. Nothing here knows a file format or a framework."""

from .build import GraphBuilder
from .capture import Capture, Column, Origin, Stage, StageLink, Table, column
from .check import InvalidGraph, verify, verify_capture
from .graph import NULL, PHASES, ROLES, Body, Graph, Node, Use, Value
from .pools import Frame, Pools, Scope, Type, scope_label
from .relations import Groups, Links

__all__ = [
    "NULL",
    "PHASES",
    "ROLES",
    "Body",
    "Capture",
    "Column",
    "Frame",
    "Graph",
    "GraphBuilder",
    "Groups",
    "InvalidGraph",
    "Links",
    "Node",
    "Origin",
    "Pools",
    "Scope",
    "Stage",
    "StageLink",
    "Table",
    "Type",
    "Use",
    "Value",
    "column",
    "scope_label",
    "verify",
    "verify_capture",
]
