"""ITT tasks of unmodified programs: a test program, and Debian's PyTorch, whose oneDNN contains ITT."""
import json
import subprocess

from harness import BUILD, Skip, main, test

APP = BUILD / "tests/fakes/itt_app"
RESNET = """
import torch, torchvision
torch.manual_seed(0)
model = torchvision.models.resnet18(num_classes=10)
images = torch.randn(2, 3, 64, 64)
model(images).sum().backward()
print(sum(1 for module in model.modules() if isinstance(module, torch.nn.Conv2d)))
"""


def capture(workdir, *command, **options):
    done = workdir.wattle("run", "-q", "--itt", "--overwrite", "-o", "run.sqlite", "--json", "report.json", "--",
                          *command,
                          **options)
    assert done.returncode == 0, done
    return done


@test
def a_program(workdir):
    """tasks nest, overlapped ones end by their id, metadata with a number is work, paused tasks are not recorded"""
    done = capture(workdir, APP)
    assert done.stdout == "", done
    spans = workdir.rows("select span.name, around.name, span.kind, span.close, (span.end_ns - span.begin_ns) / 1e6 "
                      "from span left join span around on around.id = span.parent order by span.begin_ns, span.id")
    assert [s[:4] for s in spans] == [("app/first", None, "range", "ended"), ("app/second", None, "range", "ended"),
                                      *[("app/batch", None, "nested", "ended"),
                                        ("app/layer", "app/batch", "nested", "ended")] * 3], spans
    assert all(s[4] >= 20 for s in spans), spans
    assert workdir.rows("select user_metric.name, value, span.name from user_metric join span on span.id = span") == [
        ("images", 8.0, "app/batch")] * 3
    assert workdir.rows("select text from event where kind = 'mark'") == [("app/end",)]
    blocks = json.loads((workdir.folder / "report.json").read_text())["blocks"]
    batch, = [b for b in blocks if b["name"] == "app/batch"]
    assert batch["num_calls"] == 3 and batch["units"][0]["sum"] == 24, batch


@test
def without_asking(workdir):
    """no --itt: the program finds no collector"""
    done = workdir.wattle("run", "-q", "-o", "run.sqlite", "--", APP)
    assert done.stdout == "nobody listens\n", done


def debian_s_torch():
    done = subprocess.run(["/usr/bin/python3", "-c", "import torch, torchvision"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip("Debian's python3-torch and python3-torchvision are not installed")


@test
def an_unmodified_resnet(workdir):
    """forward and backward of an unmodified PyTorch ResNet-18: its oneDNN primitives are code blocks"""
    debian_s_torch()
    (workdir.folder / "resnet.py").write_text(RESNET)
    done = capture(workdir, "/usr/bin/python3", "resnet.py", env={"OMP_NUM_THREADS": "1"})
    layers = int(done.stdout)
    rows = dict(workdir.rows("select name, count(*) from span where close = 'ended' group by name"))
    assert set(rows) == {"dnnl::primitive::execute/convolution", "dnnl::primitive::execute/reorder"}, rows
    # Each convolution forward, by its weights, and by its input, which the first layer does not need.
    assert rows["dnnl::primitive::execute/convolution"] == 3 * layers - 1, (rows, layers)
    blocks = {b["name"]: b for b in json.loads((workdir.folder / "report.json").read_text())["blocks"]}
    convolution = blocks["dnnl::primitive::execute/convolution"]
    assert convolution["num_calls"] == 3 * layers - 1 and convolution["compute_time"]["total"] > 0, convolution


if __name__ == "__main__":
    main()
