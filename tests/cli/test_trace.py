"""`thunder trace` end to end: what it prints, records and exits with."""

import contextlib
import json
import os
import re
import subprocess
import sys

import pytest
from running_thunder import HAS_NVFUSER, environment, thunder

DATA = ("00-acquired", "01-dead-code-elimination")
STAGES = ["acquired", "Dead Code Elimination", "Transform for execution", "Delete Last Used"]
needs_nvfuser = pytest.mark.skipif(not HAS_NVFUSER, reason="nvFuser is not installed")


def session(directory, name="quickstart-foo-1"):
    return directory / ".thunder" / "sessions" / name


def test_the_four_stages_the_definition_the_repro_and_the_result_are_printed(traced):
    _, printed = traced
    for number, title in enumerate(STAGES):
        assert f"── {number}  {title} ─" in printed
    assert "e = ltorch.mul(a, a)" in printed.partition("── 1 ")[0]
    assert "e = ltorch.mul(a, a)" not in printed.partition("── 1 ")[2]
    assert "[c, f] = nvFusion0(a, b)" in printed
    assert "fd.ops.add(tv0, tv1)" in printed and "fd.execute(inputs)" in printed
    assert "[[12., 12.]," in printed
    assert "          equal to eager\n" in printed
    assert (
        'inputs    a: "cuda:0 f32[2, 2]"   b: "cuda:0 f32[2, 2]"      from the script\'s own call, quickstart.py:15'
        in printed
    )
    assert "session   .thunder/sessions/quickstart-foo-1      next: thunder repro --fusion nvFusion0" in printed


@needs_nvfuser
def test_the_kernel_and_its_launch_are_printed(traced):
    _, printed = traced
    assert "__global__ void nvfuser_pointwise_f0_c1_r0_g0(" in printed
    assert "// nvfuser_pointwise_f0_c1_r0_g0, grid 1, block 128, " in printed and "64 bytes moved" in printed


@pytest.mark.skipif(HAS_NVFUSER, reason="nvFuser is installed")
def test_without_nvfuser_the_output_says_what_to_install_for_kernels(traced):
    assert "// there is no kernel: nvFuser is not installed; to see kernels: pip install" in traced[1]


def test_what_the_program_prints_is_shown_as_its_own(traced):
    assert "program   │ sum 16.0\n" in traced[1]


def test_the_session_holds_the_index_and_one_text_for_each_stage_and_fusion(traced):
    directory, printed = traced
    index = json.loads((session(directory) / "index.json").read_text())
    assert index["version"] == 2
    assert index["started"]["device"] == "h100" and index["started"]["virtual"]
    stages = [stage for stage in index["stages"] if stage["trace"] == "computation"]
    assert [stage["constructed_by"] or "acquired" for stage in stages] == STAGES
    assert stages[2]["text"] == "computation/02-transform-for-execution.py"
    for stage in stages:
        assert (session(directory) / stage["text"]).read_text() in printed
    acquired, cleaned = (json.loads((session(directory) / f"computation/{n}.json").read_text()) for n in DATA)
    assert [event["kind"] for event in cleaned["events"]] == ["removed"]
    assert acquired["values"]["c"]["type"] == "cuda:0 f32[2, 2]"
    assert acquired["arguments"] == ["a", "b"] and acquired["returns"] == [[{"value": "c"}, {"value": "f"}], []]
    add = next(operation for operation in acquired["operations"] if operation["operation"] == "ltorch.add")
    assert add["inputs"] == ["a", "b"] and add["outputs"] == ["c"] and add["source"]["line"] == 5
    text = (session(directory) / stages[0]["text"]).read_text().splitlines()
    assert text[add["line"] - 1].strip().startswith("c = ltorch.add(a, b)")
    (fusion,) = index["fusions"]
    assert (session(directory) / fusion["definition"]).name == "definition.py"
    assert index["guards"]["checks"] and index["result"]["equal"] is True and index["failures"] == []


def test_show_prints_the_same_without_running_anything(traced):
    directory, printed = traced
    shown = thunder("show", cwd=directory, CUDA_VISIBLE_DEVICES="")
    assert shown.returncode == 0
    assert shown.stdout == printed


def test_changes_are_printed_in_place_of_whole_stages(traced):
    directory, _ = traced
    printed = thunder("show", "--changes", cwd=directory).stdout
    assert printed.count("def computation(a, b):") == 1
    assert "  - e = ltorch.mul(a, a)  result never used  quickstart.py:7\n" in printed
    assert "  - d = ltorch.add(a, b)  replaced by c: same operation on the same inputs" in printed
    assert "  + nvFusion0 (add, mul)  by nvfuser" in printed and "  + 1 del" in printed
    assert "fd.ops" not in printed and "equal to eager" in printed


@pytest.mark.parametrize(("options", "stages"), [((), 1), (("-v",), 4), (("--only", "stages"), 4)])
def test_on_a_terminal_it_is_short_unless_more_is_asked_for(traced, options, stages):
    directory, _ = traced
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "thunder_cli", "show", "--no-color", *options]
    process = subprocess.Popen(command, cwd=directory, env=environment(), stdout=end)
    os.close(end)
    printed = b""
    with contextlib.suppress(OSError):  # the end, on Linux
        while chunk := os.read(terminal, 4096):
            printed += chunk
    os.close(terminal)
    assert process.wait() == 0
    assert printed.count(b"def computation(a, b):") == stages


def test_colour_adds_escape_codes_and_changes_nothing_else(traced):
    directory, _ = traced
    plain = thunder("show", "-v", cwd=directory).stdout
    for depth in ("truecolor", ""):
        coloured = thunder("show", "-v", cwd=directory, FORCE_COLOR="1", COLORTERM=depth, TERM="xterm").stdout
        assert coloured != plain and "\x1b[" not in plain
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert thunder("show", "-v", "--no-color", cwd=directory, FORCE_COLOR="1").stdout == plain


@pytest.mark.parametrize("name", ["2", "transform-for-execution", "Transform for execution", "computation/2"])
def test_a_stage_is_printed_alone_by_its_number_or_name(traced, name):
    directory, _ = traced
    text = (session(directory) / "computation" / "02-transform-for-execution.py").read_text()
    assert thunder("show", "--stage", name, cwd=directory).stdout == text


def test_a_stage_of_another_trace_is_named_with_it(traced):
    directory, _ = traced
    assert "def prologue(args, kwargs):" in thunder("show", "--stage", "prologue/0", cwd=directory).stdout


def test_an_unknown_stage_lists_those_there_are(traced):
    done = thunder("show", "--stage", "7", cwd=traced[0])
    assert done.returncode == 2
    assert "there is no stage 7" in done.stderr and "computation/2  Transform for execution" in done.stderr


def test_only_prints_one_kind_of_text_that_stays_a_program(traced):
    directory, _ = traced
    for part in ("stages", "fusions", "repro"):
        printed = thunder("show", "--only", part, cwd=directory).stdout
        compile(printed, part, "exec")
    assert thunder("show", "--only", "stages", cwd=directory).stdout.count("def computation(a, b):") == 4
    assert "def nvfuser_fusion" in thunder("show", "--only", "fusions", cwd=directory).stdout
    kernels = thunder("show", "--only", "kernels", cwd=directory).stdout
    assert kernels.startswith("// nvFusion0 (add, mul)")


def test_json_is_one_object_on_each_line_and_the_same_events(traced):
    directory, _ = traced
    events = [json.loads(line) for line in thunder("show", "--json", cwd=directory).stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds.index("output") > kinds.index("fusion")  # where it came; it has a pipe of its own
    kinds.remove("output")
    assert kinds == ["started", "inputs", *["stage"] * 5, "guards", "fusion", "result", "recorded"]
    only = thunder("show", "--json", "--stage", "1", cwd=directory).stdout.splitlines()
    assert [json.loads(line)["constructed_by"] for line in only if json.loads(line)["event"] == "stage"] == [STAGES[1]]


def test_sessions_lists_them(traced):
    directory, _ = traced
    header, row = thunder("sessions", cwd=directory).stdout.splitlines()
    assert header.split() == ["session", "when", "target", "stages", "fusions", "outcome"]
    assert row.split()[0] == "quickstart-foo-1" and row.endswith("h100    4       1        equal to eager")


def test_repro_prints_and_writes_a_script_that_compiles(traced, tmp_path):
    directory, _ = traced
    printed = thunder("repro", "--fusion", "nvFusion0", cwd=directory)
    assert printed.returncode == 0
    compile(printed.stdout, "repro", "exec")
    written = thunder("repro", "--fusion", "computation/nvFusion0", "-o", str(tmp_path / "r.py"), cwd=directory)
    assert written.returncode == 0
    assert (tmp_path / "r.py").read_text() == printed.stdout
    nowhere = thunder("repro", "--fusion", "nvFusion0", "-o", str(tmp_path / "no" / "r.py"), cwd=directory)
    assert nowhere.returncode == 2 and "cannot be written" in nowhere.stderr


@needs_nvfuser
def test_the_repro_runs_on_the_virtual_device(traced, tmp_path):
    (tmp_path / "repro.py").write_text(thunder("repro", "--fusion", "nvFusion0", cwd=traced[0]).stdout)
    command = [sys.executable, "-m", "thunder.virtual_cuda", "repro.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_fusion_or_session_lists_those_there_are(traced):
    directory, _ = traced
    done = thunder("repro", "--fusion", "nvFusion1", cwd=directory)
    assert done.returncode == 2
    assert "has no fusion nvFusion1" in done.stderr and "Did you mean nvFusion0?" in done.stderr
    done = thunder("show", "--session", "quickstart-foo-2", cwd=directory)
    assert done.returncode == 2
    assert "There are quickstart-foo-1." in done.stderr


def test_canonical_texts_do_not_depend_on_the_directory_or_the_time(traced, tmp_path):
    """Traced again from elsewhere, by an absolute path, with other options that change no stage."""
    directory, _ = traced
    script = str(directory / "quickstart.py")
    done = thunder("trace", f"{script}:foo", "--out", "again", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / ".thunder").exists()
    first, second = session(directory), tmp_path / "again"
    files = sorted(p.relative_to(first) for p in first.rglob("*.*") if p.name != "index.json")
    assert files == sorted(p.relative_to(second) for p in second.rglob("*.*") if p.name != "index.json")
    for file in files:
        assert (first / file).read_text() == (second / file).read_text()
        assert str(directory) not in (second / file).read_text()
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()].count("stage") == 5


def test_the_script_gets_its_arguments_and_its_gradients(run, tmp_path):
    """The call is traced without gradients; the program, which needs them, goes on as it would alone."""
    (tmp_path / "train.py").write_text(
        "import sys\nimport torch\n\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = torch.nn.Linear(2, 2)\n"
        "    def forward(self, x):\n        return torch.tanh(self.fc(x))\n\n"
        "if __name__ == '__main__':\n"
        "    model = Model()\n"
        "    model(torch.ones(1, 2)).sum().backward()\n"
        "    print(sys.argv, __file__ == sys.argv[0] or __file__, model.fc.weight.grad is not None)\n"
    )
    done = run("trace", "train.py:model", "--target", "cpu", "--stage", "0", "--", "--steps", "3")
    assert done.returncode == 0, done.stderr
    assert "t_fc_weight" in done.stdout and "ltorch.linear(x, t_fc_weight, t_fc_bias)" in done.stdout
    assert "['train.py', '--steps', '3']" in done.stderr and done.stderr.rstrip().endswith("True")


def test_with_gradients_the_stages_of_the_backward_are_shown_and_kept(run, tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\n\n"
        "def loss(x):\n    return (x.tanh() * x).sum()\n\n"
        "if __name__ == '__main__':\n"
        "    x = torch.ones(3, requires_grad=True)\n"
        "    loss(x).backward()\n"
        "    print(x.grad is not None)\n"
    )
    done = run("trace", "train.py:loss", "--target", "cpu", "--grad", "--out", "session")
    assert done.returncode == 0, done.stderr
    assert "backward 0" in done.stdout and "ltorch.tanh_backward(" in done.stdout
    assert [p.name for p in sorted((tmp_path / "session" / "backward").glob("*.py"))] == [
        "00-backward.py", "01-transform-for-execution.py", "02-delete-last-used.py",
    ]  # fmt: skip
    assert "train.py:4:     return (x.tanh() * x).sum()" in (tmp_path / "session/backward/00-backward.py").read_text()


def test_a_module_is_found_as_python_finds_it(run, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "layers.py").write_text("def twice(x):\n    return x * 2\n")
    arguments = ["--target", "cpu", "--input", "f32[2, 3]", "--stage", "0"]
    done = run("trace", "package.layers:twice", *arguments)
    assert done.returncode == 0, done.stderr
    assert '# x: "cpu f32[2, 3]"' in done.stdout and "# package/layers.py:2:     return x * 2" in done.stdout
    done = run("trace", "package.layers:twice", *arguments[:4], "--only", "kernels")
    assert done.returncode == 0 and done.stdout == "" and "thunder: there are no fusions." in done.stderr


def test_a_script_that_only_runs_in_its_package_says_how(run, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "layers.py").write_text("from . import other\ndef twice(x):\n    return x * 2\n")
    done = run("trace", "package/layers.py:twice", "--target", "cpu", "--input", "f32[2, 3]")
    assert done.returncode == 3 and "thunder trace package.layers:twice." in done.stderr


def test_what_the_program_jits_itself_is_traced_with_its_own_options(run, tmp_path):
    (tmp_path / "own.py").write_text(
        "import thunder, torch\n"
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
        "model = thunder.jit(Model(), executors=['torch'])\n"
        "print(model(torch.ones(2)), len(thunder.last_traces(model)))\n"
    )
    done = run("trace", "own.py:model", "--target", "cpu")
    assert done.returncode == 0, done.stderr
    assert 'inputs    x: "cpu f32[2]"' in done.stdout and "equal to eager" in done.stdout
    assert "program   │ tensor([2., 2.]) 4" in done.stdout


LAYER_NORM = """\
import torch
import torch.nn.functional as F


def norm(x, weight, bias):
    return F.layer_norm(x, (4096,), weight, bias)
"""


@needs_nvfuser
def test_the_kernel_is_the_one_that_nvfuser_schedules_for_the_chip(run, tmp_path):
    """nvFuser gives a row of 4096 bf16 elements 256 threads on an H100, 128 on an A100."""
    (tmp_path / "norm.py").write_text(LAYER_NORM)
    inputs = [x for size in ("4096, 4096", "4096", "4096") for x in ("--input", f"bf16[{size}]@cuda")]
    kernels = {}
    for chip, threads in (("h100", 256), ("a100", 128)):
        done = run("trace", "norm.py:norm", *inputs, "--target", chip, "--only", "kernels")
        assert done.returncode == 0, done.stdout + done.stderr
        _, launch, kernels[chip] = done.stdout.split("\n", 2)
        assert launch.startswith(f"// nvfuser_inner_persistent_f0_c1_r0_g0, grid 4096, block {threads}, ")
    assert kernels["h100"] != kernels["a100"]
