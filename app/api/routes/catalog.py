"""/api/recipes, /api/models, /api/methods, /api/datasets: what a spec can name."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter

from valleyscope.app.api.dependencies import State
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.schemas import (
    Architecture,
    Architectures,
    DataSource,
    DataSources,
    PruningMethod,
    PruningMethods,
    Recipe,
    Recipes,
)
from valleyscope.app.experiments.cost import estimate, split_sizes
from valleyscope.app.experiments.recipes import DEMO, describe_recipe, load_recipe, recipe_names
from valleyscope.training.dataset_sources import SOURCES, data_root
from valleyscope.training.methods.catalog import NOT_OURS, describe_methods
from valleyscope.training.models import describe_models
from valleyscope.training.models.libraries import LIBRARIES

_ADDED = "added by the operator of this server"

router = APIRouter(tags=["catalog"])


@router.get("/recipes", response_model=Recipes, responses=problems())
@cache
def recipes() -> Any:
    """List the included specs: the demo, and the experiments of the paper with its errata applied."""
    items = []
    for name in recipe_names():
        spec = load_recipe(name)
        cost = estimate(spec)
        items.append(
            Recipe(
                name=name,
                description=describe_recipe(name),
                spec=spec.to_json(),
                gpu_hours=cost.gpu_hours,
                core_hours=cost.core_hours,
            )
        )
    return Recipes(demo=DEMO, items=items)


@router.get("/models", response_model=Architectures, responses=problems())
def models(app_state: State) -> Any:
    """List the networks that a spec can name, with their options."""
    app_state.model_info_cache.prepare()  # an estimate usually follows
    named = [Architecture.model_validate(found) for found in describe_models().values()]
    own = [
        Architecture(name=name, description=_ADDED, options={}, needs=_needs(name))
        for name in app_state.settings.allowed_models
    ]
    return Architectures(items=named + own)


def _needs(name: str) -> str:
    return "images (C, H, W)" if name.partition(":")[0] in LIBRARIES else "see its author"


@router.get("/methods", response_model=PruningMethods, responses=problems())
def pruning_methods() -> Any:
    """List the pruning methods that a minimum can name, with formula, source and options."""
    named = [
        PruningMethod(
            name=name,
            title=info.title,
            formula=info.formula,
            source=info.source,
            kind=info.kind,
            options=dict(info.options),
            needs_batch_norm=info.needs_batch_norm,
        )
        for name, info in describe_methods().items()
    ]
    return PruningMethods(items=named, not_ours=list(NOT_OURS))


@router.get("/datasets", response_model=DataSources, responses=problems())
def datasets(app_state: State) -> Any:
    """List the data sets that a spec can name, and whether this server has them already."""
    root = data_root(app_state.settings.data)
    named = []
    for source in SOURCES.values():
        train, test = split_sizes(source.name)
        named.append(
            DataSource(
                name=source.name,
                description=source.description,
                classes=source.classes,
                shape=list(source.shape),
                train=train,
                test=test,
                present=not (source.files and source.missing_files(root)),
            )
        )
    own = [DataSource(name=name, description=_ADDED) for name in app_state.settings.allowed_datasets]
    return DataSources(items=named + own)
