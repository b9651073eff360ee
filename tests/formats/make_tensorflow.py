"""Writes tests/data/tensorflow: models of the real TensorFlow 2.21, small. TensorFlow is in no lane (600 MB): run it in
an environment of its own.

    python tests/formats/make_tensorflow.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

OUT = Path(__file__).parents[1] / "data" / "tensorflow"


class Block(tf.Module):
    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.kernel = tf.Variable(tf.random.normal((3, 3, 4, 8)), name="kernel")
        self.bias = tf.Variable(tf.zeros(8), name="bias")

    @tf.Module.with_name_scope
    def __call__(self, x):
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, self.kernel, 2, "SAME"), self.bias))


class Net(tf.Module):
    def __init__(self) -> None:
        super().__init__(name="net")
        self.conv = Block("conv")
        self.fc = tf.Variable(tf.random.normal((8, 5)), name="fc")

    @tf.function(input_signature=[tf.TensorSpec((2, 8, 8, 4), tf.float32, name="x")])
    def run(self, x):
        y = tf.reduce_mean(self.conv(x), [1, 2])
        y = tf.cond(tf.reduce_sum(y) > 0, lambda: y * 2, lambda: y)
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [tf.constant(0), y])
        return {"logits": tf.matmul(y, self.fc)}

    @tf.function(input_signature=[tf.TensorSpec((2, 8, 8, 4), tf.float32, name="x")])
    def plain(self, x):
        return tf.nn.softmax(tf.matmul(tf.reduce_mean(self.conv(x), [1, 2]), self.fc))


def pictures():
    random = np.random.default_rng(0)
    for _ in range(3):
        yield [random.normal(size=(2, 8, 8, 4)).astype(np.float32)]


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    tf.random.set_seed(0)
    net = Net()
    run = net.run.get_concrete_function()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(net, folder, signatures={"serving_default": run})
        shutil.rmtree(OUT / "saved", ignore_errors=True)
        (OUT / "saved").mkdir()
        shutil.copy(Path(folder, "saved_model.pb"), OUT / "saved")
        shutil.copytree(Path(folder, "variables"), OUT / "saved" / "variables")
    frozen = convert_variables_to_constants_v2(run).graph.as_graph_def()
    (OUT / "frozen.pb").write_bytes(frozen.SerializeToString(deterministic=True))
    tf.io.write_graph(frozen, str(OUT), "frozen.pbtxt", as_text=True)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([run], net)
    (OUT / "net.tflite").write_bytes(converter.convert())
    converter = tf.lite.TFLiteConverter.from_concrete_functions([net.plain.get_concrete_function()], net)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = pictures
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    (OUT / "quantized.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    main()
