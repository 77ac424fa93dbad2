"""Crops and mirror images against a loop over images, and the laws of their draws."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from valleyscope.training.augmentation import crop_and_flip

BORDER = (-1.5, -2.5, -3.5)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def distinct_images(count: int, channels: int, height: int, width: int) -> Tensor:
    """Images in which every pixel has another value, all of them positive."""
    size = count * channels * height * width
    return torch.arange(1, size + 1, dtype=torch.float32).view(count, channels, height, width)


def every_crop(image: Tensor, border: tuple[float, ...], padding: int) -> list[Tensor]:
    """All images that one image can become, by slicing."""
    _, height, width = image.shape
    framed = torch.stack(
        [torch.nn.functional.pad(c, (padding,) * 4, value=v) for c, v in zip(image, border, strict=True)]
    )
    offsets = range(2 * padding + 1)
    crops = [framed[:, a : a + height, b : b + width] for a in offsets for b in offsets]
    return crops + [crop.flip(2) for crop in crops]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    channels=st.sampled_from([1, 3]),
    height=st.integers(2, 6),
    width=st.integers(2, 6),
    padding=st.integers(0, 3),
)
def test_every_image_becomes_one_of_its_own_crops(
    seed: int, channels: int, height: int, width: int, padding: int
) -> None:
    x = distinct_images(5, channels, height, width)
    border = BORDER[:channels]
    for image, result in zip(x, crop_and_flip(x, generator(seed), border, padding), strict=True):
        assert any(torch.equal(result, crop) for crop in every_crop(image, border, padding))


def test_all_offsets_and_both_orientations_come_equally_often() -> None:
    count = 20_000
    image = distinct_images(1, 1, 3, 4)
    results = crop_and_flip(image.expand(count, -1, -1, -1).contiguous(), generator(3), (0.0,), padding=1)
    crops = every_crop(image[0], (0.0,), padding=1)
    shares = torch.tensor([(results == crop).flatten(1).all(1).float().mean() for crop in crops])
    assert len(crops) == 18
    # Five standard deviations of a binomial share.
    assert (shares - 1 / 18).abs().max() < 5 * (1 / 18 / count) ** 0.5


def test_the_same_seed_gives_the_same_images_and_the_next_batch_others() -> None:
    x = distinct_images(16, 3, 8, 8)
    source = generator(1)
    first, second = crop_and_flip(x, source, BORDER), crop_and_flip(x, source, BORDER)
    assert torch.equal(first, crop_and_flip(x, generator(1), BORDER))
    assert not torch.equal(first, second)


def test_global_random_state_and_input_stay_as_they_were() -> None:
    x = distinct_images(4, 3, 8, 8)
    before, state = x.clone(), torch.get_rng_state()
    crop_and_flip(x, generator(), BORDER)
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_memory_format_is_kept_and_changes_no_value() -> None:
    x = distinct_images(8, 3, 8, 8)
    plain = crop_and_flip(x, generator(2), BORDER)
    last = crop_and_flip(x.to(memory_format=torch.channels_last), generator(2), torch.tensor(BORDER))
    assert plain.is_contiguous()
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(plain, last)


def test_batches_that_cannot_be_cropped_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(4, 64\).*without augmentation"):
        crop_and_flip(torch.zeros(4, 64), generator(), (0.0,))
    with pytest.raises(ValueError, match="border has shape"):
        crop_and_flip(torch.zeros(4, 3, 8, 8), generator(), (0.0,))
    with pytest.raises(ValueError, match="padding is -1"):
        crop_and_flip(torch.zeros(4, 1, 8, 8), generator(), (0.0,), padding=-1)
