"""Results of wattle in pandas, numpy and polars of today; ONNX models exported by PyTorch, and run by onnxruntime."""
import json

import numpy
import onnx
import onnxruntime
import pandas
import polars
import torch
from harness import main, near, test
from torch import nn

import wattle
import wattle.torch


def recorded(workdir):
    with wattle.Tracker(sleep_time=0.02, output=workdir.folder / "run.sqlite", overwrite=True) as tracker:
        for number in range(5):
            with wattle.span("block"):
                wattle.metric("loss", number / 2)
                sum(range(200000))
    return tracker


@test
def frames(workdir):
    """tables of a run: pandas data frames, numpy arrays without copies, and the same in polars"""
    recorded(workdir)
    run = wattle.open(workdir.folder / "run.sqlite")
    for name in ("samples", "spans", "user_metrics", "processes", "segments", "blocks"):
        frame = run.to_pandas(name)
        assert isinstance(frame, pandas.DataFrame) and len(frame) > 0, name
    columns = {name: numpy.asarray(run.spans[name]) for name in ("begin_ns", "end_ns")}
    assert (polars.DataFrame(columns).to_numpy() == run.to_pandas("spans")[list(columns)].to_numpy()).all()
    near(float(run.to_pandas("user_metrics")["value"].sum()), 5, relative=1e-9)
    begins = numpy.asarray(run.spans["begin_ns"])
    assert begins.dtype == numpy.int64 and len(begins) == 5 and (numpy.diff(begins) > 0).all(), begins


@test
def onnx_model(workdir):
    """a model exported by torch.onnx: `wattle model` has the parameters and multiply-adds of complexity(); onnxruntime runs it
    in a span"""
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)).eval(), torch.randn(2, 3, 8, 8)
    path = workdir.folder / "model.onnx"
    torch.onnx.export(model, (x,), str(path), external_data=False)
    onnx.checker.check_model(onnx.load(path))
    found = wattle.torch.complexity(model, input_data=x)
    told = json.loads(workdir.wattle("model", "model.onnx", "--format", "json").stdout)
    assert (told["parameters"], told["multiply_adds"]) == (found.parameters, found.multiply_adds), (told, found)
    session = onnxruntime.InferenceSession(str(path))
    with wattle.Tracker(sleep_time=0.02, output=workdir.folder / "run.sqlite", overwrite=True):
        for _ in range(3):
            with wattle.span("inference"):
                (output,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    near(float(numpy.abs(output - model(x).detach().numpy()).max()), 0, absolute=1e-5)
    assert workdir.rows("SELECT name, count(*) FROM span GROUP BY name") == [("inference", 3)]


@test
def jax_steps(workdir):
    """a compiled JAX step in spans and a window: results are unchanged, blocks are in the run"""
    import jax
    step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: (x @ w).sum() ** 2)(w))
    w = x = numpy.ones((4, 4), "float32")
    plain = step(w, x)
    with wattle.Tracker(sleep_time=0.02, output=workdir.folder / "run.sqlite", overwrite=True) as tracker:
        tracker.begin_window("steps")
        for _ in range(3):
            with wattle.span("step"):
                measured = step(w, x).block_until_ready()
        assert tracker.end_window("steps").seconds > 0
    assert (numpy.asarray(plain) == numpy.asarray(measured)).all()
    assert workdir.rows("SELECT name, count(*) FROM span WHERE name = 'step' GROUP BY name") == [("step", 3)]


if __name__ == "__main__":
    main()
