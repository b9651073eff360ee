"""Programs as people write them: each is a function and its arguments."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

KEY = jax.random.key(0)


def normal(*shape):
    return jax.random.normal(KEY, shape)


def dense(x, w, name):
    with jax.named_scope(name):
        return jnp.tanh(x @ w)


def mlp():
    def loss(params, x):
        for i, w in enumerate(params):
            x = dense(x, w, f"layer{i}")
        return (x**2).mean()

    return jax.value_and_grad(loss), ([normal(8, 16), normal(16, 16), normal(16, 4)], normal(32, 8))


def loop_without_names():
    def loss(params, x):
        for w in params:
            x = jnp.sin(x @ w)
        return x.sum()

    return jax.grad(loss), ([normal(8, 8) for _ in range(5)], normal(4, 8))


def conv_net():
    def net(kernels, x):
        for stride, kernel in zip((1, 2), kernels, strict=True):
            x = lax.conv_general_dilated(
                x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.sum()

    return jax.grad(net), ([normal(3, 3, 3, 8), normal(3, 3, 8, 16)], normal(2, 16, 16, 3))


def transformer():
    width, heads = 32, 4

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def block(p, x):
        with jax.named_scope("attn"):
            q, k, v = jnp.split(norm(x) @ p["qkv"], 3, axis=-1)
            q, k, v = (t.reshape(*t.shape[:-1], heads, width // heads) for t in (q, k, v))
            scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k), axis=-1)
            x = x + jnp.einsum("bhts,bshd->bthd", scores, v).reshape(x.shape) @ p["o"]
        with jax.named_scope("mlp"):
            return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]

    def loss(params, x):
        for i, p in enumerate(params):
            with jax.named_scope(f"layer{i}"):
                x = block(p, x)
        return x.mean()

    params = [
        {"qkv": normal(32, 96), "o": normal(32, 32), "up": normal(32, 128), "down": normal(128, 32)} for _ in range(2)
    ]
    return jax.jit(jax.value_and_grad(loss)), (params, normal(2, 8, width))


def scanned_rnn():
    def run(w, xs):
        def step(h, x):
            h = jnp.tanh(h @ w["h"] + x @ w["x"])
            return h, h

        return lax.scan(step, jnp.zeros((4, 16)), xs)[1].sum()

    return jax.grad(run), ({"h": normal(16, 16), "x": normal(8, 16)}, normal(10, 4, 8))


def vmapped():
    def one(w, x):
        return jnp.dot(jnp.dot(w, x), x)

    return jax.vmap(one, in_axes=(None, 0)), (normal(6, 6), normal(5, 6))


def branches():
    def choose(x):
        return lax.switch(jnp.int32(x.sum()), [jnp.sin, lambda v: v @ v.T @ v, lambda v: v * 2], x)

    return choose, (normal(4, 3),)


def until():
    def run(x):
        return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] @ s[1]), (0, x))[1]

    return run, (normal(3, 3),)


def counted():
    return lambda x: lax.fori_loop(0, 5, lambda i, v: v @ v + i, x), (normal(4, 4),)


def custom_gradient():
    @jax.custom_vjp
    def clipped(x):
        return jnp.exp(x)

    clipped.defvjp(lambda x: (jnp.exp(x), x), lambda x, g: (jnp.clip(g * jnp.exp(x), -1, 1),))
    return jax.grad(lambda x, w: clipped(x @ w).sum()), (normal(3, 4), normal(4, 2))


def checkpointed():
    @jax.checkpoint
    def block(w, x):
        return jnp.sin(jnp.sin(x @ w) @ w)

    return jax.grad(lambda w, x: block(w, block(w, x)).sum()), (normal(6, 6), normal(2, 6))


def sharded():
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    x = jax.device_put(normal(16, 8), NamedSharding(mesh, P("data", None)))
    w = jax.device_put(normal(8, 12), NamedSharding(mesh, P(None, "model")))
    return jax.jit(lambda x, w: (x @ w).sum(0)), (x, w)


def mapped_over_devices():
    mesh = Mesh(np.array(jax.devices()), ("i",))

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
    def summed(x, w):
        return lax.psum(x @ w, "i")

    return jax.jit(summed), (normal(16, 4), normal(4, 4))


def data_moves():
    def run(x, i):
        x = jnp.sort(x, axis=-1)[..., ::-1]
        top, at = lax.top_k(x, 3)
        x = x.at[:, i].add(1.0).at[0].set(0.0)
        return jnp.cumsum(x, 1), top, at, jnp.argmax(x, 1), x[i], jnp.concatenate([x, x]), jnp.pad(x, 1)

    return run, (normal(6, 8), jnp.array([1, 3]))


def random_numbers():
    def run(key, x):
        keys = jax.random.split(key)
        return jax.random.normal(keys[0], x.shape) + jax.random.bernoulli(keys[1], 0.5, x.shape) * x

    return run, (KEY, normal(4, 5))


def linear_algebra():
    return lambda a: (jnp.linalg.cholesky(a @ a.T + jnp.eye(4)), jnp.linalg.svd(a)[1], jnp.fft.fft(a[0])), (
        normal(4, 4),
    )


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 4, (3, 3), rngs=rngs)
        self.out = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x, train=False):
        x = nnx.relu(self.conv(x))
        return self.out(x.mean((1, 2))) * (2 if train else 1)


def flax_module():
    return Net(nnx.Rngs(0)), (normal(2, 8, 8, 3), True)


def equinox_module():
    return eqx.nn.MLP(4, 3, 8, 2, key=KEY), (normal(4),)


def train_step():
    def step(params, moments, x, y):
        def loss(params):
            hidden = jax.nn.relu(x @ params["a"])
            return ((hidden @ params["b"] - y) ** 2).mean()

        value, grads = jax.value_and_grad(loss)(params)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
        return value, jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments

    params = {"a": normal(4, 8), "b": normal(8, 2)}
    return jax.jit(step, donate_argnums=(0, 1)), (
        params,
        jax.tree.map(jnp.zeros_like, params),
        normal(16, 4),
        normal(16, 2),
    )


PROGRAMS = [
    *(mlp, loop_without_names, conv_net, transformer, scanned_rnn, vmapped, branches, until, counted, custom_gradient),
    *(checkpointed, sharded, mapped_over_devices, data_moves, random_numbers, linear_algebra, flax_module),
    *(equinox_module, train_step),
]
