"""Architectures: the sizes that the literature counts, the inputs that fit, and reproducible weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import fx, nn

from valleyscope.training.datasets import load_dataset
from valleyscope.training.models import build_model, count_parameters, describe_models, multiply_adds

SMALL = {
    "cnn": {"channels": [3, 4], "hidden": 5},
    "lenet": {},
    "mlp": {"hidden": [6]},
    "vgg16": {"width": 2},
    "vgg16_bn": {"width": 2},
    "resnet56": {"depth": 8, "width": 2},
    "wrn28x10": {"depth": 10, "widen": 1},
}


def small_model(name: str, **more: object) -> nn.Module:
    return build_model({"name": name, **SMALL[name]}, seed=0, **more)  # type: ignore[arg-type]


def batch(name: str, count: int = 4) -> torch.Tensor:
    shape = describe_models()[name].input_shape
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "classes", "parameters"),
    [
        ("vgg16", 10, 15_245_130),
        ("vgg16", 100, 15_291_300),
        ("vgg16_bn", 10, 14_724_042),
        ("vgg16_bn", 100, 14_770_212),
        ("resnet56", 10, 853_018),
        ("wrn28x10", 10, 36_489_290),
        ("wrn28x10", 100, 36_546_980),
        ("lenet", 10, 20 * 26 + 50 * 501 + 500 * 801 + 10 * 501),
        ("mlp", 10, 300 * 785 + 100 * 301 + 10 * 101),
        ("cnn", 10, 16 * 10 + 32 * 145 + 128 * 129 + 10 * 129),
    ],
)
def test_parameter_counts_are_those_of_the_reference_implementations(name: str, classes: int, parameters: int) -> None:
    with torch.device("meta"):
        assert count_parameters(build_model(name, classes=classes)) == parameters


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("vgg16", 313_725_952),
        ("vgg16_bn", 313_201_664),
        ("resnet56", 125_485_696),
        ("wrn28x10", 5_951_117_568),
        ("lenet", 24 * 24 * 20 * 25 + 8 * 8 * 50 * 500 + 800 * 500 + 500 * 10),
        ("cnn", 8 * 8 * 16 * 9 + 4 * 4 * 32 * 144 + 128 * 128 + 128 * 10),
    ],
)
def test_multiply_adds_are_those_of_the_reference_implementations(name: str, operations: int) -> None:
    with torch.device("meta"):
        assert multiply_adds(build_model(name), describe_models()[name].input_shape) == operations


def test_counting_multiply_adds_leaves_the_model_as_it_was() -> None:
    model = small_model("vgg16_bn")
    model.get_submodule("norm1_1").eval()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    multiply_adds(model, (3, 32, 32))
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert not any(module._forward_hooks for module in model.modules())


def test_a_layer_that_runs_twice_counts_twice_and_groups_divide() -> None:
    shared = nn.Linear(5, 5)
    assert multiply_adds(nn.Sequential(shared, shared), (5,)) == 2 * 25
    assert multiply_adds(nn.Conv2d(4, 4, 3, groups=4), (4, 3, 3)) == 4 * 9


@pytest.mark.parametrize("name", SMALL)
def test_every_architecture_maps_a_batch_to_one_value_for_each_class(name: str) -> None:
    for classes in (3, 10):
        assert small_model(name, classes=classes)(batch(name)).shape == (4, classes)


@pytest.mark.parametrize("name", SMALL)
def test_channels_last_computes_the_same_function(name: str) -> None:
    model, x = small_model(name).eval().double(), batch(name).double()
    expected = model(x)
    model.to(memory_format=torch.channels_last)
    if x.dim() == 4:
        x = x.to(memory_format=torch.channels_last)
    torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize("name", SMALL)
def test_functional_calls_use_the_weights_they_are_given(name: str) -> None:
    model, other, x = small_model(name).eval(), small_model(name).eval(), batch(name)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.9)
    called = torch.func.functional_call(model, dict(other.state_dict()), (x,))
    assert torch.equal(called, other(x))
    assert not torch.equal(called, model(x))


@pytest.mark.parametrize("name", SMALL)
def test_every_layer_runs_once_and_can_be_traced(name: str) -> None:
    model = small_model(name)
    calls = [str(node.target) for node in fx.Tracer().trace(model).nodes if node.op == "call_module"]
    leaves = [path for path, module in model.named_modules() if not list(module.children())]
    assert sorted(calls) == sorted(leaves)


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_fixes_the_weights_and_spares_the_global_generator(name: str) -> None:
    state = torch.get_rng_state()
    first, again = small_model(name), small_model(name)
    other = build_model({"name": name, **SMALL[name]}, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    pairs = list(zip(first.parameters(), again.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_without_a_seed_the_global_generator_rules() -> None:
    torch.manual_seed(5)
    first = build_model("mlp", hidden=[4])
    second = build_model("mlp", hidden=[4])
    torch.manual_seed(5)
    assert torch.equal(next(build_model("mlp", hidden=[4]).parameters()), next(first.parameters()))
    assert not torch.equal(next(second.parameters()), next(first.parameters()))


@pytest.mark.parametrize("name", ["vgg16", "wrn28x10"])
def test_convolutions_start_with_he_variance_and_no_bias(name: str) -> None:
    model = build_model(name, seed=0, **({"width": 16} if name == "vgg16" else {"depth": 10, "widen": 2}))
    layers = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    for layer in layers:
        assert layer.bias is not None
        assert not layer.bias.any()
        expected = (2 / (layer.out_channels * layer.kernel_size[0] ** 2)) ** 0.5
        deviation = layer.weight.detach().std().item()
        assert abs(deviation / expected - 1) < 5 / (2 * layer.weight.numel()) ** 0.5


def test_vgg_has_the_layers_of_the_connectivity_experiments() -> None:
    with torch.device("meta"):
        plain, normalised = build_model("vgg16"), build_model("vgg16_bn")
    linear = [(m.in_features, m.out_features) for m in plain.modules() if isinstance(m, nn.Linear)]
    assert linear == [(512, 512), (512, 512), (512, 10)]
    assert sum(isinstance(m, nn.Dropout) for m in plain.modules()) == 2
    assert sum(isinstance(m, nn.BatchNorm2d) for m in normalised.modules()) == 13
    assert all(m.bias is None for m in normalised.modules() if isinstance(m, nn.Conv2d))


def test_residual_shortcut_without_parameters_pads_with_zeros() -> None:
    block = small_model("resnet56").get_submodule("block2_1")
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.zero_()
    x = torch.rand(2, 2, 8, 8)
    y = block(x)
    assert y.shape == (2, 4, 4, 4)
    assert torch.equal(y[:, 1:3], x[:, :, ::2, ::2])
    assert not y[:, [0, 3]].any()


@pytest.mark.parametrize("side", [8, 14, 28, 32])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("kernel", "padding"), [(3, "same"), (5, "same"), (2, "valid")])
def test_cnn_takes_small_images_of_any_size(side: int, channels: int, kernel: int, padding: str) -> None:
    model = build_model("cnn", input_shape=(channels, side, side + side % 8), kernel=kernel, padding=padding)
    assert model(torch.zeros(2, channels, side, side + side % 8)).shape == (2, 10)


def test_pooling_before_relu_is_pooling_after_relu() -> None:
    model = build_model("cnn", seed=0).double()
    usual = nn.Sequential(*(model[i] for i in (0, 2, 1, 3, 5, 4, 6, 7, 8, 9)))  # type: ignore[index]
    x, y = torch.randn(8, 1, 8, 8).double(), torch.arange(8)
    gradients = []
    for network in (model, usual):
        model.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_data_set_gives_shape_and_classes() -> None:
    digits = load_dataset("digits")
    for name in ("cnn", "mlp"):
        assert build_model(name, digits)(digits.x_train[:3]).shape == (3, 10)


@pytest.mark.parametrize(
    ("name", "shape", "needs"),
    [
        ("lenet", (1, 8, 8), "28 or 32 pixels"),
        ("vgg16", (1, 28, 28), "32 pixels"),
        ("vgg16_bn", (3, 64, 64), "32 pixels"),
        ("resnet56", (3, 4, 4), "8 to 256 pixels"),
        ("wrn28x10", (64,), "images"),
        ("cnn", (3, 64, 64), "8 to 32 pixels"),
        ("cnn", (16,), "images"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_with_what_would(name: str, shape: tuple[int, ...], needs: str) -> None:
    with pytest.raises(ValueError, match=f"model '{name}' does not fit samples of shape") as caught:
        build_model(name, input_shape=shape)
    assert str(shape) in str(caught.value)
    assert needs in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("alexnet", "model 'alexnet' is unknown; use one of cnn, lenet, mlp, vgg16"),
        ({}, "model None is unknown"),
        ({"name": ["cnn"]}, "is unknown"),
        ({"name": "cnn", "chanels": [1, 2]}, "has no option 'chanels'; it has channels, hidden, kernel, padding"),
        ({"name": "lenet", "hidden": 3}, "has no option 'hidden'; it has no options"),
        ({"name": "cnn", "channels": [16]}, "channels is .16., must be a list of 2 whole numbers"),
        ({"name": "cnn", "channels": [16, 0]}, r"channels\[1\] is 0, must be a whole number"),
        ({"name": "cnn", "channels": "ab"}, "channels is 'ab'"),
        ({"name": "cnn", "hidden": 1.5}, "hidden is 1.5"),
        ({"name": "cnn", "kernel": 4}, "kernel is 4, must be odd"),
        ({"name": "cnn", "kernel": 5, "padding": "valid"}, r"does not fit samples of shape \(1, 8, 8\)"),
        ({"name": "cnn", "padding": "reflect"}, "padding is 'reflect', must be 'same' or 'valid'"),
        ({"name": "mlp", "hidden": 300}, "hidden is 300, must be a list"),
        ({"name": "vgg16", "dropout": 1}, "dropout is 1, must be a number from 0"),
        ({"name": "resnet56", "depth": 52}, "depth is 52, must be 6 n"),
        ({"name": "wrn28x10", "depth": 27}, "depth is 27, must be 6 n"),
    ],
)
def test_bad_specs_are_refused_by_name_value_and_remedy(spec: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_model(spec)  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="classes is 1, must be"):
        build_model("mlp", classes=1)
    with pytest.raises(ValueError, match="input_shape is"):
        build_model("mlp", input_shape=(0,))
    with pytest.raises(ValueError, match="seed is -1"):
        build_model("mlp", seed=-1)


def test_keyword_options_override_those_of_the_mapping() -> None:
    model = build_model({"name": "mlp", "hidden": [7]}, hidden=[9])
    assert model.get_submodule("linear1").out_features == 9


def test_descriptions_give_options_that_build_the_model() -> None:
    for name, architecture in describe_models().items():
        assert architecture.description
        with torch.device("meta"):
            described = build_model({"name": name, **architecture.options}, input_shape=architecture.input_shape)
            default = build_model(name)
        assert [p.shape for p in described.parameters()] == [p.shape for p in default.parameters()]


def test_descriptions_need_no_torch() -> None:
    code = "import sys, training.models as m; m.describe_models(); print('torch' in sys.modules)"
    folder = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture
def own_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "valley_test_models.py").write_text(
        "from torch import nn\n"
        "def tiny(input_shape, classes, units=2):\n"
        "    size = input_shape[0] * input_shape[1] * input_shape[2]\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(size, units), nn.Linear(units, classes))\n"
        "def stiff(input_shape, classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(5, classes))\n"
        "def mute(input_shape, classes):\n"
        "    return nn.Flatten()\n"
        "def wrong(input_shape, classes):\n"
        "    return 'a network'\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own_models")
def test_an_own_model_is_built_by_its_factory() -> None:
    digits = load_dataset("digits")
    spec = {"name": "valley_test_models:tiny", "units": 3}
    model = build_model(spec, digits, seed=4)
    assert count_parameters(model) == 65 * 3 + 4 * 10
    assert model.training
    again = build_model(spec, digits, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("valley_test_models:stiff", r"does not fit samples of shape \(1, 8, 8\)"),
        ("valley_test_models:mute", "must be one value for each of 10 classes"),
        ("valley_test_models:wrong", "returned a str, must return a torch.nn.Module"),
        ("valley_test_models:number", "'number' is a int, must be a callable"),
        ("valley_test_models:absent", "has no 'absent'"),
        ("valley_test_nothing.here:factory", "there is no module 'valley_test_nothing.here'"),
    ],
)
def test_an_own_model_that_does_not_do_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_model(name, load_dataset("digits"))


@pytest.mark.usefixtures("own_models")
def test_an_own_model_must_be_told_its_input() -> None:
    with pytest.raises(ValueError, match="needs a dataset, or both input_shape and classes"):
        build_model("valley_test_models:tiny", classes=10)
