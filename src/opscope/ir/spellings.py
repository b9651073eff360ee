"""How frameworks spell what the page must recognise in a capture that nobody has annotated.

The patterns mean the same in Python and in JavaScript: `viewer/src/wire/facts.ts` is generated from here.
"""

from __future__ import annotations

import re

# Packages whose frames are the framework's own, and are folded in a stack.
PACKAGES = ("torch", "jittor", "paddle", "megengine", "hidet")
# Kineto leaves out what stands before the package. Inductor's generated code is not the user's either.
FRAMEWORK_FILE = re.compile(
    r"[\\/](?:site|dist)-packages[\\/](?:" + "|".join(PACKAGES) + r")[\\/]|^torch[\\/]|[\\/]torchinductor_|<frozen"
)

# What stands before the short name of an operator: `torch.ops.aten.add.Tensor` reads as `add`, `nn.Conv2d` as `Conv2d`.
NATIVE_OPERATOR = re.compile(r"^(?:torch\.ops\.)?(?:aten|prims|prim)(?:\.|::)(\w+)")
PYTHON_OPERATOR = re.compile(
    r"^(?:torch\.(?:nn\.functional|nn|_C\._nn|_C\._linalg|_C)|nn\.functional|torch|nn|F|_?operator|Tensor|builtins|math)"
    r"\.(\w+)$"
)
OPERATOR_GROUP = re.compile(r"^(?:binary|unary)\.")

# Operators that read an attribute of a module, or call its method: their title says which.
READS_ATTRIBUTE = "GetAttr"
CALLS_METHOD = "CallMethod"

# Autograd's own copy of a tensor that the backward pass reads.
SAVED_COPY = re.compile(r"^(?:torch\.ops\.)?aten(?:\.|::)detach(?:\.default)?$")
