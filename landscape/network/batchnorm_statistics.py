"""Statistics of BatchNorm layers at points of weight space.

``PopulationStatistics`` is the default: at every layer the mean and biased variance over all training samples, after
the layers before it were normalised with theirs. One batch of the whole training set would give the same; they depend
on weights and data alone. ``RunningStatistics`` are those of Garipov et al. (2018): averages over batches of one pass
in training mode, which depend on the batch size and the order of the samples.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.network.batchnorm_layers import (
    Normalise,
    ScaleAndShift,
    check_accepts_statistics,
    is_standard,
    scale_and_shift,
    signed_maximum,
    signs_of,
    through_running_averages,
)
from valleyscope.landscape.network.call_recorder import CallRecord
from valleyscope.landscape.network.fx_graph import ForwardPass, PausableGraph, batch_norm_nodes
from valleyscope.landscape.network.graph_rewrites import Window, is_temporary, remove_pooling_after
from valleyscope.landscape.network.memory_limit import machine_memory
from valleyscope.landscape.network.running_moments import RunningMoments

# A network that runs on all samples at once holds about this many outputs of the largest size.
_LIVE_OUTPUTS = 4

Advance = Callable[[float], None]
"""Called with the number of samples done at a point; it may raise to stop the work."""


def batch_norms(network: nn.Module) -> dict[str, _BatchNorm]:
    """The BatchNorm layers of a network by name."""
    return {name: layer for name, layer in network.named_modules() if isinstance(layer, _BatchNorm)}


def check_running_averages(layers: Mapping[str, _BatchNorm], wanted: str) -> None:
    """Raise an error that names the first layer without running averages."""
    for name, layer in layers.items():
        if layer.running_mean is None:
            raise ValueError(
                f"BatchNorm layer {name!r} has no running averages, which batch_norm={wanted!r} needs; "
                "use batch_norm='population'"
            )


def check_not_compiled(network: nn.Module, wanted: str) -> None:
    """Raise an error that names the first BatchNorm layer in TorchScript: its statistics cannot be set."""
    for name, module in network.named_modules():
        buffers = {key for key, _ in module.named_buffers(recurse=False)}
        if isinstance(module, torch.jit.ScriptModule) and {"running_mean", "running_var"} <= buffers:
            raise ValueError(
                f"layer {name!r} is BatchNorm in TorchScript, whose statistics cannot be recomputed, and batch_norm is "
                f"{wanted!r}; pass the network before scripting, or use batch_norm='frozen'"
            )


class PopulationStatistics:
    """Population statistics of the BatchNorm layers of a network; replaces the forward passes of these layers.

    A traced network runs layer by layer over blocks: every block pauses at a BatchNorm layer until all have reached it.
    Any other network runs on all samples at once.
    """

    def __init__(self, network: nn.Module, example: Tensor, record: CallRecord) -> None:
        self._network = network
        self._device = example.device
        self._statistics: list[Normalise] = []
        self._calls = 0
        self._measuring = False
        self._layers: list[_BatchNorm] = []
        self._graph: PausableGraph | None = None
        self._in_place: set[int] = set()
        self._windows: dict[int, Window] = {}
        layers = batch_norms(network)
        self._custom_forwards = {layer: layer.forward for layer in layers.values() if not is_standard(layer)}
        custom = {name: layer for name, layer in layers.items() if layer in self._custom_forwards}
        for name, x in _layer_inputs(network, custom, example):
            check_accepts_statistics(name, layers[name], x)
        if isinstance(network, fx.GraphModule) and set(batch_norm_nodes(network).values()) == set(layers.values()):
            self._network = graph = fx.GraphModule(network, copy.deepcopy(network.graph))
            stops = batch_norm_nodes(graph)
            self._layers = list(stops.values())
            # The output of a convolution that only BatchNorm reads is normalised where it is, and pooled before that.
            for place, (node, layer) in enumerate(stops.items()):
                if is_temporary(graph, node.all_input_nodes[0]) and layer not in self._custom_forwards:
                    self._in_place.add(place)
                    window = remove_pooling_after(graph, node)
                    if window is not None:
                        self._windows[place] = window
            self._graph = PausableGraph(graph, stops)
            self.bytes_a_sample = self._peak_live_bytes(self._graph, example) // len(example)
        else:
            self.bytes_a_sample = _LIVE_OUTPUTS * record.largest_output
        for layer in layers.values():
            layer.forward = partial(self._forward, layer)  # type: ignore[method-assign]

    def fits(self, limit: int | None, samples: int) -> bool:
        """Whether the statistics of this many samples need no more memory than the limit (default: half of all)."""
        allowed = limit if limit is not None else _device_memory(self._device) // 2
        return samples * self.bytes_a_sample <= allowed

    @torch.inference_mode()
    def measure(self, blocks: Sequence[Callable[[], Tensor]], advance: Advance) -> list[Tensor]:
        """Compute the statistics over blocks of samples (functions that load them); returns the output of each."""
        self._statistics = []
        if self._graph is None:
            return self._measure_at_once([load() for load in blocks], advance)
        runs = []
        moments = RunningMoments()
        for load in blocks:
            run = self._graph.start(load())
            if run.resume():
                self._add_moments(moments, run, 0)
            runs.append(run)
        for place, layer in enumerate(self._layers):
            normalise = self._keep_statistics(layer, moments, runs[0].input.dtype)
            moments = RunningMoments()
            for run in runs:
                size = len(run.input)
                self._calls = place
                # A custom layer is called, and calls ``_forward``.
                if layer in self._custom_forwards:
                    value = run.result()
                elif isinstance(normalise, ScaleAndShift) and place in self._in_place:
                    value = normalise.in_place(run.input)
                else:
                    value = normalise(run.input)
                if run.resume(value):
                    self._add_moments(moments, run, place + 1)
                advance(size / len(self._layers))
        return [run.output for run in runs]

    def __call__(self, x: Tensor) -> Tensor:
        """The output of the network with the last statistics."""
        self._calls = 0
        output: Tensor = self._network(x)
        return output

    def _add_moments(self, moments: RunningMoments, run: ForwardPass, place: int) -> None:
        """Add the input of a paused layer; where max-pooling follows, only the pooled values are kept."""
        moments.add(run.input)
        if place in self._windows:
            run.input = signed_maximum(run.input, self._windows[place], signs_of(self._layers[place]))

    @torch.no_grad()
    def _peak_live_bytes(self, graph: PausableGraph, example: Tensor) -> int:
        """Peak memory of a forward pass on the example while it pauses at BatchNorm layers."""
        run = graph.start(example.clone())
        peak = place = 0
        paused = run.resume()
        while paused:
            self._add_moments(RunningMoments(), run, place)
            peak = max(peak, run.live_bytes())
            paused = run.resume(run.result())
            place += 1
        return peak

    def _measure_at_once(self, blocks: list[Tensor], advance: Advance) -> list[Tensor]:
        self._measuring = True
        try:
            output: Tensor = self._network(torch.cat(blocks))
        finally:
            self._measuring = False
        advance(len(output))
        return list(output.split([len(block) for block in blocks]))  # type: ignore[no-untyped-call]

    def _keep_statistics(self, layer: _BatchNorm, moments: RunningMoments, dtype: torch.dtype) -> Normalise:
        normalise: Normalise
        custom_forward = self._custom_forwards.get(layer)
        if custom_forward is None:
            normalise = scale_and_shift(layer, *moments.pooled(), dtype, self._windows.get(len(self._statistics)))
        else:
            normalise = through_running_averages(layer, custom_forward, moments, dtype)
        self._statistics.append(normalise)
        return normalise

    def _forward(self, layer: _BatchNorm, x: Tensor, *arguments: object, **options: object) -> Tensor:
        """Forward pass of a BatchNorm layer: with statistics of its input, or with the stored ones."""
        if self._measuring:
            moments = RunningMoments()
            moments.add(x)
            return self._keep_statistics(layer, moments, x.dtype)(x, *arguments, **options)
        if self._calls == len(self._statistics):
            raise ValueError(
                "the network calls BatchNorm layers more often for some inputs than for others, so population "
                "statistics do not fit; use batch_norm='running' or 'frozen'"
            )
        self._calls += 1
        return self._statistics[self._calls - 1](x, *arguments, **options)


class RunningStatistics:
    """Running averages over batches in training mode: momentum b / (n + b) after n samples, for a batch of b.

    Variances are averages of the batches' unbiased ones, as PyTorch keeps them. Only BatchNorm layers are put in
    training mode: dropout stays off, so the same weights always give the same values.

    ``forward`` runs the network on a batch, by default a tensor; ``size`` counts the samples of a batch.
    """

    def __init__(
        self, network: nn.Module, forward: Callable[[Any], Any] | None = None, size: Callable[[Any], int] = len
    ) -> None:
        self._forward = forward or network
        self._size = size
        self._layers = list(batch_norms(network).values())

    @torch.inference_mode()
    def measure(self, batches: Sequence[Callable[[], Any]], advance: Advance) -> list[Any]:
        """Average over batches (functions that load them); returns no outputs."""
        seen = 0
        for layer in self._layers:
            layer.reset_running_stats()
            layer.train()
        try:
            for load in batches:
                batch = load()
                size = self._size(batch)
                for layer in self._layers:
                    layer.momentum = size / (seen + size)
                self._forward(batch)
                seen += size
                advance(size)
        finally:
            for layer in self._layers:
                layer.eval()
        return []

    def __call__(self, batch: Any) -> Any:
        """The output for a batch with the last averages."""
        return self._forward(batch)


def _layer_inputs(network: nn.Module, layers: Mapping[str, _BatchNorm], example: Tensor) -> list[tuple[str, Tensor]]:
    """The inputs of these layers when the network runs on the example, by name."""
    found: list[tuple[str, Tensor]] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, given, name=name: found.append((name, given[0])), prepend=True)
        for name, layer in layers.items()
    ]
    try:
        if hooks:
            with torch.no_grad():
                network(example.clone())
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _device_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return machine_memory()
