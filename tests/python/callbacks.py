"""The callbacks for Lightning, transformers and Keras, called in the documented order of hooks.

The packages themselves are not available: the stand-ins are programs of a few lines that call the hooks as the
frameworks do. Their counter is a number: a step uses 3 J, loading its data 1 J and validation 100 J.
"""
from harness import main, near, test
from package import python

COUNTER = """
    import math, types, wattle, wattle._training as training
    used_j, gpu = 0.0, False
    class Meter:
        def start(self): self.at = used_j
        def read(self):
            joules = used_j - self.at
            return types.SimpleNamespace(total_j=joules, gpu_j=joules / 4 if gpu else math.nan, seconds=joules / 2, estimated=False)
        def close(self): pass
    training._wattle = types.SimpleNamespace(**{**vars(training._wattle), "Meter": Meter})
    def use(joules):
        global used_j
        used_j += joules
"""
RECORDED = """
    recorder = wattle._wattle.Tracker(interval_s=0.01, output="run.sqlite", overwrite=True)
    recorder.start()
"""
LIGHTNING = """
class Callback:
    def on_fit_start(self, trainer, pl_module): pass
    def setup(self, trainer, pl_module, stage): pass

class Module:
    def __init__(self): self.logged = []
    def log_dict(self, figures, on_step, on_epoch, rank_zero_only, logger): self.logged.append(figures)

class Logger:
    def __init__(self): self.lines = []
    def log_metrics(self, figures, step): self.lines.append((step, figures))

class Trainer:
    is_global_zero, sanity_checking, global_step = True, False, 0
    def __init__(self, callbacks, use): self.callbacks, self.use, self.loggers = callbacks, use, [Logger()]
    def call(self, hook, *arguments):
        for callback in self.callbacks:
            getattr(callback, hook, lambda *_: None)(self, self.module, *arguments)
    def validate(self):
        self.call("on_validation_start"); self.call("on_validation_epoch_start"); self.use(100)
        self.call("on_validation_epoch_end"); self.call("on_validation_end")
    def fit(self, module, batches, epochs):
        self.module = module
        self.call("setup", "fit"); self.call("on_fit_start")
        self.sanity_checking = True; self.validate(); self.sanity_checking = False
        self.call("on_train_start")
        for epoch in range(epochs):
            self.call("on_train_epoch_start")
            for i, batch in enumerate(batches):
                self.use(1)
                self.call("on_train_batch_start", batch, i)
                if batch == "bad": raise self.fail(ValueError("bad batch"))
                self.use(3)
                self.global_step += 1
                self.call("on_train_batch_end", None, batch, i)
            self.validate()
            self.call("on_train_epoch_end")
        self.call("on_train_end"); self.call("on_fit_end")
    def fail(self, error):
        self.call("on_exception", error)
        return error
"""
TRANSFORMERS = """
import types
class TrainerCallback:
    def on_save(self, args, state, control, **kwargs): pass

class Trainer:
    def __init__(self, args, callbacks, use):
        self.args, self.callbacks, self.use = args, callbacks, use
        self.state = types.SimpleNamespace(log_history=[], num_input_tokens_seen=0)
        self.control = types.SimpleNamespace(should_evaluate=False)
    def call(self, hook, **more):
        for callback in self.callbacks:
            getattr(callback, hook, lambda *_, **__: None)(self.args, self.state, self.control, model=None, **more)
    def log(self, logs):
        self.state.log_history.append(dict(logs))
        self.call("on_log", logs=logs)
    def evaluate(self):
        for _ in range(2):
            self.use(50)
            self.call("on_prediction_step")
        self.log({"eval_loss": 1.0})
        self.call("on_evaluate", metrics={})
        self.control.should_evaluate = False
    def train(self, steps, epochs, log_every, tokens):
        self.call("on_train_begin")
        for epoch in range(epochs):
            self.call("on_epoch_begin")
            for step in range(1, steps + 1):
                self.use(1)
                self.call("on_step_begin"); self.use(3)
                self.state.num_input_tokens_seen += tokens
                self.control.should_evaluate = step == steps
                self.call("on_step_end")
                if step % log_every == 0: self.log({"loss": 0.5})
                if self.control.should_evaluate: self.evaluate()
            self.call("on_epoch_end")
        self.call("on_train_end")
"""
KERAS = """
import types
class Callback:
    def __init__(self): self.params = self.model = None
    def on_epoch_begin(self, epoch, logs=None): pass
callbacks = types.SimpleNamespace(Callback=Callback)

def fit(callbacks, steps, epochs, use):
    history = []
    def call(hook, *arguments):
        for callback in callbacks: getattr(callback, hook, lambda *_: None)(*arguments)
    call("on_train_begin", {})
    for epoch in range(epochs):
        call("on_epoch_begin", epoch, {})
        for step in range(steps):
            use(1); call("on_train_batch_begin", step, {}); use(3); call("on_train_batch_end", step, {"loss": 1.0})
        call("on_test_begin", {}); use(100); call("on_test_end", {})
        logs = {"loss": 1.0}
        call("on_epoch_end", epoch, logs)
        history.append(logs)
    call("on_train_end", {})
    return history
"""


def run(workdir, stand_ins, code, **options):
    """Runs a program beside stand-ins: {name of package: its text}."""
    for name, text in stand_ins.items():
        workdir.tree(".", {name.replace(".", "/") + ".py": text})
    return python(workdir, code, **options)


def blocks(workdir):
    return dict(workdir.rows("SELECT name, count(*) FROM span GROUP BY name"))


@test
def lightning(workdir):
    """Lightning: 2 epochs of 4 steps with 8 samples; 4 J a step, validation separate; J/sample in the log every 4th
    step"""
    lines, _ = run(workdir, {"pytorch_lightning": LIGHTNING}, COUNTER + RECORDED + """
    import numpy, pytorch_lightning as lightning
    from wattle.torch.lightning import EnergyCallback
    assert issubclass(EnergyCallback, lightning.Callback)
    module, gpu = lightning.Module(), True
    batch = {"input_ids": numpy.zeros((8, 16)), "labels": numpy.zeros(8)}
    trainer = lightning.Trainer([EnergyCallback(every=4)], use)
    trainer.fit(module, [batch] * 4, 2)
    recorder.stop()
    assert trainer.loggers[0].lines == list(zip((3, 7), module.logged)), trainer.loggers[0].lines
    print(module.logged)
    """)
    first, second = eval(lines[-1])
    assert first == second, lines
    near(first["wattle/j_per_step"], 4)
    near(first["wattle/j_per_sample"], 0.5)
    near(first["wattle/j_per_token"], 16 / (4 * 8 * 16))
    near(first["wattle/power_w"], 2)
    near(first["wattle/gpu_j_per_step"], 1)
    assert blocks(workdir) == {"epoch": 2, "step": 8, "validation": 2, "sanity check": 1}, blocks(workdir)
    assert workdir.rows("SELECT name, count(*), sum(value) FROM user_metric GROUP BY name ORDER BY name") \
        == [("samples", 8, 64.0), ("tokens", 8, 1024.0)]
    assert workdir.rows("SELECT count(*) FROM user_metric m JOIN span s ON m.t_ns BETWEEN s.begin_ns AND s.end_ns"
                     " WHERE s.name = 'step'") == [(16,)]


@test
def lightning_by_its_new_name(workdir):
    """package `lightning` with a Callback of its own: if both are loaded, wattle's is an instance of either"""
    run(workdir, {"lightning.pytorch": LIGHTNING, "lightning.__init__": "", "pytorch_lightning": LIGHTNING}, """
    import lightning.pytorch, pytorch_lightning
    from wattle.torch.lightning import EnergyCallback
    assert issubclass(EnergyCallback, lightning.pytorch.Callback)
    assert issubclass(EnergyCallback, pytorch_lightning.Callback)
    """)


@test
def lightning_that_fails(workdir):
    """exception in training: reaches the program, and open blocks are closed before the next training"""
    run(workdir, {"pytorch_lightning": LIGHTNING}, COUNTER + RECORDED + """
    import pytorch_lightning as lightning
    from wattle.torch.lightning import EnergyCallback
    callback = EnergyCallback(samples=8, every=0)
    try:
        lightning.Trainer([callback], use).fit(lightning.Module(), ["good", "bad"], 1)
    except ValueError as error:
        assert str(error) == "bad batch"
    else:
        raise AssertionError("no error")
    lightning.Trainer([callback], use).fit(lightning.Module(), ["good"], 1)
    recorder.stop()
    """)
    assert blocks(workdir) == {"epoch": 2, "step": 3, "validation": 1, "sanity check": 2}, blocks(workdir)
    assert workdir.rows("SELECT count(*) FROM span WHERE close != 'ended'") == [(0,)]


@test
def transformers(workdir):
    """transformers: figures are in the logs and the history of every 2nd step; evaluation is separate"""
    lines, _ = run(workdir, {"transformers": TRANSFORMERS}, COUNTER + RECORDED + """
    import types, transformers
    from wattle.torch.huggingface import EnergyCallback
    args = types.SimpleNamespace(train_batch_size=4, gradient_accumulation_steps=2)
    trainer = transformers.Trainer(args, [EnergyCallback()], use)
    trainer.train(steps=4, epochs=2, log_every=2, tokens=64)
    recorder.stop()
    print(trainer.state.log_history)
    """)
    history = eval(lines[-1])
    training = [line for line in history if "loss" in line]
    assert len(training) == 4, history
    assert all("wattle/j_per_step" not in line for line in history if "eval_loss" in line), history
    for line in training:
        near(line["wattle/j_per_step"], 4)
        near(line["wattle/j_per_sample"], 4 / 8)
        near(line["wattle/j_per_token"], 4 / 64)
    assert blocks(workdir) == {"epoch": 2, "step": 8, "validation": 2}, blocks(workdir)
    assert workdir.rows("SELECT name, sum(value) FROM user_metric GROUP BY name ORDER BY name") \
        == [("samples", 64.0), ("tokens", 512.0)]


@test
def keras(workdir):
    """Keras: each epoch's logs have energy per step and sample"""
    lines, _ = run(workdir, {"keras": KERAS}, COUNTER + RECORDED + """
    import keras
    from wattle.keras import EnergyCallback
    print(keras.fit([EnergyCallback(samples=16)], steps=5, epochs=2, use=use))
    recorder.stop()
    """)
    for logs in eval(lines[-1]):
        assert "wattle/gpu_j_per_step" not in logs, logs  # no GPU
        near(logs["wattle/j_per_step"], 4)
        near(logs["wattle/j_per_sample"], 4 / 16)
    assert blocks(workdir) == {"epoch": 2, "step": 10, "validation": 2}, blocks(workdir)


@test
def without_package(workdir):
    """no framework: one line with the package to install"""
    modules = (("torch.huggingface", "transformers"), ("torch.lightning", "lightning"), ("keras", "keras"))
    for module, package in modules:
        python(workdir, f"""
        import sys
        for name in ("transformers", "lightning", "lightning.pytorch", "pytorch_lightning", "keras", "tf_keras",
                     "tensorflow"):
            sys.modules[name] = None
        try:
            import wattle.{module}
        except ImportError as error:
            assert "pip install {package}" in str(error), error
        else:
            raise AssertionError("no ImportError")
        """)


@test
def without_counter(workdir):
    """no counter: no figures; training continues and blocks exist"""
    lines, _ = run(workdir, {"keras": KERAS}, COUNTER + RECORDED + """
    import keras
    def none(): raise OSError("no counter")
    training._wattle.Meter = none
    from wattle.keras import EnergyCallback
    print(keras.fit([EnergyCallback(samples=16)], steps=5, epochs=1, use=use))
    recorder.stop()
    """)
    assert eval(lines[-1]) == [{"loss": 1.0}], lines
    assert blocks(workdir)["step"] == 5


if __name__ == "__main__":
    main()
