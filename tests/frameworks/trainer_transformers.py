"""wattle.torch.huggingface in the real Trainer of transformers, on a machine of known power."""
import logging

import torch
import transformers
from harness import main, near, test
from simulated import blocks, check_figures, machine
from transformers import Trainer, TrainerCallback, TrainingArguments

import wattle
from wattle.torch.huggingface import EnergyCallback

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
logging.getLogger("accelerate").setLevel(logging.ERROR)
BATCH, STEPS = 4, 8


class Bad(ValueError):
    pass


def model(simulated, fail_at=None):
    """A language model of two small layers, made from its configuration, that works as long and with as much power as is set."""
    made = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50, n_positions=16))
    calls = [0]

    def work(module, args):
        if module.training:
            calls[0] += 1
            if calls[0] == fail_at:
                raise Bad("bad batch")
            simulated.train()
        else:
            simulated.validate()

    made.register_forward_pre_hook(work)
    return made


class Truth(TrainerCallback):
    """When evaluation begins and ends, for the simulated machine."""

    def __init__(self, simulated):
        self.simulated = simulated

    def on_train_begin(self, *_, **__):
        self.simulated.start()

    def on_evaluate(self, *_, **__):
        self.simulated.is_training(True)

    def decided(self, args, state, control, **_):
        if control.should_evaluate:
            self.simulated.is_training(False)

    def on_step_end(self, args, state, control, **_):
        self.simulated.is_training()
        self.decided(args, state, control)

    on_epoch_end = decided


def data(batches):
    return [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(batches * BATCH)]


def trainer(workdir, simulated, *callbacks, fail_at=None, **options):
    options = {"num_train_epochs": 2, "logging_steps": 2, "per_device_train_batch_size": BATCH, "per_device_eval_batch_size": BATCH,
               "save_strategy": "no", "report_to": "none", "use_cpu": True, "disable_tqdm": True, **options}
    arguments = TrainingArguments(output_dir=workdir.folder / "out", **options)
    return Trainer(model(simulated, fail_at), arguments, train_dataset=data(STEPS * options.get("gradient_accumulation_steps", 1)),
                   eval_dataset=data(2), callbacks=[Truth(simulated), *callbacks])


def recorded(workdir):
    return wattle.Tracker(sleep_time=0.02, output=workdir.folder / "run.sqlite", overwrite=True)


def figures(state):
    return [line for line in state.log_history if "wattle/j_per_step" in line]


@test
def energy_in_the_log(workdir):
    """two epochs with evaluation, CPUs and a GPU: figures in log_history add up to the training's energy; samples, tokens and blocks"""
    with machine(workdir, gpu_w=100) as simulated, recorded(workdir):
        used = trainer(workdir, simulated, EnergyCallback(), eval_strategy="epoch", include_num_input_tokens_seen="all")
        used.train()
    lines = figures(used.state)
    assert len(lines) == STEPS and all("loss" in line for line in lines), used.state.log_history
    check_figures(lines, lambda line: 2, simulated)
    for line in lines:
        near(line["wattle/j_per_sample"], line["wattle/j_per_step"] / BATCH, relative=1e-6)
        near(line["wattle/j_per_token"], line["wattle/j_per_sample"] / 8, relative=1e-6)
    assert blocks(workdir) == {"epoch": 2, "step": 2 * STEPS, "validation": 2}, blocks(workdir)
    assert workdir.rows("SELECT name, sum(value) FROM user_metric GROUP BY name ORDER BY name") == [
        ("samples", 2.0 * STEPS * BATCH), ("tokens", 2.0 * STEPS * BATCH * 8)]


@test
def evaluation_by_steps(workdir):
    """evaluation every 4 steps inside an epoch: not part of the figures"""
    with machine(workdir) as simulated, recorded(workdir):
        used = trainer(workdir, simulated, EnergyCallback(), eval_strategy="steps", eval_steps=4)
        used.train()
    check_figures(figures(used.state), lambda line: 2, simulated)
    assert blocks(workdir) == {"epoch": 2, "step": 2 * STEPS, "validation": 4}, blocks(workdir)


@test
def accumulated(workdir):
    """gradient accumulation: a step is an optimizer step with all its samples"""
    with machine(workdir) as simulated, recorded(workdir):
        used = trainer(workdir, simulated, EnergyCallback(), gradient_accumulation_steps=2, num_train_epochs=1)
        used.train()
    lines = figures(used.state)
    assert len(lines) == STEPS // 2, lines
    check_figures(lines, lambda line: 2, simulated)
    near(lines[0]["wattle/j_per_sample"], lines[0]["wattle/j_per_step"] / (2 * BATCH), relative=1e-6)
    assert blocks(workdir) == {"epoch": 1, "step": STEPS}, blocks(workdir)


@test
def early_stop(workdir):
    """early stop in the second epoch: blocks are closed"""
    with machine(workdir) as simulated, recorded(workdir):
        used = trainer(workdir, simulated, EnergyCallback(), transformers.EarlyStoppingCallback(1, 1e9), eval_strategy="epoch",
                       save_strategy="epoch", load_best_model_at_end=True, metric_for_best_model="loss", num_train_epochs=9)
        used.train()
    assert used.state.epoch == 2 and len(figures(used.state)) == STEPS, used.state.log_history
    assert blocks(workdir) == {"epoch": 2, "step": 2 * STEPS, "validation": 2}, blocks(workdir)


@test
def exception(workdir):
    """exception in a batch: reaches the program; blocks are closed by the next training, which has figures of its own"""
    callback = EnergyCallback()
    with machine(workdir) as simulated, recorded(workdir):
        try:
            trainer(workdir, simulated, callback, fail_at=6).train()
            raise AssertionError("no exception")
        except Bad:
            pass
        simulated.train_j = simulated.train_s = 0.0
        used = trainer(workdir, simulated, callback, num_train_epochs=1)
        used.train()
    check_figures(figures(used.state), lambda line: 2, simulated)
    assert blocks(workdir) == {"epoch": 2, "step": 6 + STEPS}, blocks(workdir)


@test
def resumed(workdir):
    """training resumed from a checkpoint: figures, samples and tokens of the resumed epoch only"""
    with machine(workdir) as simulated:
        trainer(workdir, simulated, EnergyCallback(), num_train_epochs=1, save_strategy="epoch",
                include_num_input_tokens_seen="all").train()
        simulated.train_j = simulated.train_s = 0.0
        with recorded(workdir):
            used = trainer(workdir, simulated, EnergyCallback(), include_num_input_tokens_seen="all")
            used.train(resume_from_checkpoint=True)
    lines = [line for line in figures(used.state) if line["step"] > STEPS]
    check_figures(lines, lambda line: 2, simulated)
    assert blocks(workdir) == {"epoch": 1, "step": STEPS}, blocks(workdir)
    assert workdir.rows("SELECT sum(value) FROM user_metric WHERE name = 'tokens'") == [(STEPS * BATCH * 8.0,)]


if __name__ == "__main__":
    main()
