"""Request bodies of submissions: a spec, or the name of a recipe with overrides."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Body
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from valleyscope.app.api.cost_schemas import Cost
from valleyscope.app.api.dependencies import AppState
from valleyscope.app.api.problems import BRANCHES, Problem, field_problems
from valleyscope.app.api.submission_limits import TooExpensive
from valleyscope.app.experiments.recipes import DEMO, recipe_names, recipe_values
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.spec_errors import InvalidField, raise_errors
from valleyscope.app.jobs.queue import LARGEST_PRIORITY

Priority = Annotated[int, Field(ge=0, le=LARGEST_PRIORITY, description="lower runs first; the default is 100")]
_Force = Annotated[bool, Field(description="submit even if the cost exceeds the limit")]


class SpecSubmission(Spec):
    """A spec with `force` and `priority` beside its fields."""

    force: _Force = False
    priority: Priority = 100


class RecipeSubmission(BaseModel):
    """A recipe. Put fields of the spec to replace into `overrides`, or beside `recipe`."""

    model_config = ConfigDict(extra="allow", frozen=True)
    recipe: str = Field(max_length=100, description="name of the recipe", examples=[DEMO])
    overrides: dict[str, Any] | None = Field(None, description="fields of the spec; null restores the default")
    force: _Force = False
    priority: Priority = 100

    def values(self) -> dict[str, Any]:
        if self.recipe not in recipe_names():
            message = f"recipe {self.recipe!r} is unknown: use one of {', '.join(recipe_names())}"
            raise_errors([InvalidField(("recipe",), self.recipe, message)])
        return recipe_values(self.recipe, {**(self.overrides or {}), **(self.__pydantic_extra__ or {})})


def _which(content: Any) -> str:
    return BRANCHES["recipe" if isinstance(content, dict) and "recipe" in content else "spec"]


Submission = Annotated[
    Annotated[SpecSubmission, Tag(BRANCHES["spec"])] | Annotated[RecipeSubmission, Tag(BRANCHES["recipe"])],
    Discriminator(_which),
]

_TINY: Final[dict[str, Any]] = {
    "name": "tiny",
    "dataset": "digits",
    "model": {"name": "cnn", "channels": [16, 32], "hidden": 128},
    "training": {"epochs": 2, "batch_size": 64},
    "minima": {"sgd": {"optimizer": "sgd"}, "altsdp": {"optimizer": "altsdp", "target": 0.8}},
    "planes": {"valley": {"through": ["sgd", "altsdp", "valley.bend"], "resolution": 9, "complete": "random"}},
    "curves": {"valley": {"from": "sgd", "to": "altsdp", "epochs": 1}},
    "points": 5,
}
Submitted = Annotated[
    Submission,
    Body(
        openapi_examples={
            "recipe": {"summary": "the demo", "value": {"recipe": DEMO}},
            "overrides": {
                "summary": "the demo with another seed and a coarser grid",
                "value": {
                    "recipe": DEMO,
                    "overrides": {"seed": 7, "planes": {"valley": {"resolution": 21}, "basins": {"resolution": 21}}},
                },
            },
            "spec": {"summary": "your own spec", "value": _TINY},
        }
    ),
]


def spec_of(submission: SpecSubmission | RecipeSubmission) -> Spec:
    """The submitted spec; a submitted spec is valid already, a recipe is validated with its overrides."""
    if isinstance(submission, SpecSubmission):
        given = {name: getattr(submission, name) for name in Spec.model_fields}
        return Spec.model_construct(submission.model_fields_set - {"force", "priority"}, **given)
    with field_problems():
        values = submission.values()
    with field_problems(values):
        return Spec.model_validate(values)


def check_limits(app_state: AppState, spec: Spec, *, force: bool) -> None:
    """Raise a problem unless this server accepts the spec."""
    try:
        with field_problems(spec.to_json()):
            app_state.submission_limits.check(spec, force=force)
    except TooExpensive as error:
        cost = Cost.of(error.cost, error.limit, app_state.service.devices()).model_dump(mode="json")
        raise Problem(422, "too-expensive", str(error), estimate=cost) from error
