"""wattle.torch in DistributedDataParallel and FullyShardedDataParallel: two ranks on CPUs, with gloo, started by torchrun."""
import json
import sys

from harness import WATTLE, main, near, test

STEPS = 3
PROGRAM = """
import json, os, sys
import torch, torch.distributed as distributed
from torch import nn
import wattle, wattle.torch

torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()

def block():
    return nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32))

def ddp():
    return nn.parallel.DistributedDataParallel(nn.Sequential(block(), nn.Linear(32, 1)))

def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    return FullyShardedDataParallel(nn.Sequential(block(), nn.Linear(32, 1)), device_id=torch.device("cpu"),
                                    auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), use_orig_params=True)

def fsdp2():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    model, mesh = nn.Sequential(block(), nn.Linear(32, 1)), init_device_mesh("cpu", (2,))
    for part in (*model[0], model):
        if next(part.parameters(), None) is not None:
            fully_shard(part, mesh=mesh)
    return model

def train(measure):
    "Losses and parameters after a few steps, bitwise."
    torch.manual_seed(0)
    model = {"ddp": ddp, "fsdp": fsdp, "fsdp2": fsdp2}[sys.argv[1]]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def steps():
        losses = []
        for number in range(int(sys.argv[2])):
            torch.manual_seed(100 * rank + number)
            loss = model(torch.randn(8, 32)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().clone())
        parameters = [p.detach() for p in model.parameters()]
        return losses + [(p.to_local() if hasattr(p, "to_local") else p).clone() for p in parameters]
    if not measure:
        return steps(), None
    with wattle.torch.layers(model, tracker="--tracker" in sys.argv) as measured:
        return steps(), measured

plain, _ = train(False)
measured_state, measured = train(True)
same = len(plain) == len(measured_state) and all(map(torch.equal, plain, measured_state))
result = {"same": same, "rows": [[row.name, row.type, row.calls, row.forward_s, row.backward_s, row.energy_j] for row in measured.rows],
          "by": measured.backward_by, "notes": measured.notes, "total_s": measured.total_s}
with open(f"rank{rank}.json", "w") as file:
    json.dump(result, file)
distributed.destroy_process_group()
"""


def both_ranks(workdir, kind, *prefix, arguments=()):
    (workdir.folder / "program.py").write_text(PROGRAM)
    done = workdir.finish(workdir.start("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2,
                                        *prefix, "program.py", kind, STEPS, *arguments, program=sys.executable,
                                        env={"OMP_NUM_THREADS": "1"}))
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((workdir.folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]


def check(workdir, kind, around, names):
    for rank in both_ranks(workdir, kind, arguments=["--tracker"]):
        assert rank["same"] and rank["by"] == "hooks", rank
        rows = {row[0]: row for row in rank["rows"]}
        assert {around + name for name in names} <= set(rows), list(rows)
        for name in names:
            _, _, calls, forward_s, backward_s, _ = rows[around + name]
            assert calls == STEPS and forward_s > 0 and backward_s > 0, rows[around + name]
        near(sum(row[3] + (row[4] or 0) for row in rank["rows"]), rank["total_s"], relative=1e-9)


@test
def data_parallel(workdir):
    """DistributedDataParallel: bitwise equal losses and parameters, forward and backward of each layer in each rank"""
    check(workdir, "ddp", "module.", ["0.0", "0.1", "0.2", "1"])


@test
def sharded(workdir):
    """FullyShardedDataParallel: bitwise equal losses and parameters, forward and backward of each layer in each rank"""
    check(workdir, "fsdp", "", ["_fsdp_wrapped_module.0.0._fsdp_wrapped_module", "_fsdp_wrapped_module.0.1",
                                "_fsdp_wrapped_module.1._fsdp_wrapped_module"])


@test
def sharded_2(workdir):
    """fully_shard: bitwise equal losses and parameters, forward and backward of each layer in each rank"""
    check(workdir, "fsdp2", "", ["0.0", "0.1", "0.2", "1"])


@test
def job(workdir):
    """`wattle run` around each rank: a run file for each, merged to a job with the layers' spans"""
    (workdir.folder / "runs").mkdir()
    both_ranks(workdir, "ddp", "--no_python", str(WATTLE), "run", "-q", "-o", "runs/%r.sqlite", "--", sys.executable)
    for rank in (0, 1):
        names = dict(workdir.rows("SELECT name, count(*) FROM span GROUP BY name", f"runs/{rank}.sqlite"))
        assert names["module.1"] == STEPS and names["module.1 backward"] >= STEPS, names
    report = json.loads(workdir.wattle("report", "runs", "--format", "json").stdout)
    assert "module.1 backward" in json.dumps(report), list(report)


if __name__ == "__main__":
    main()
