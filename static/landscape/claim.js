// What a verdict claims, as pictures show it: up to which level a path counts as flat.
// The same rules as landscape/claim.py. Planes come from the server in the order of the claim.

import { style } from '../plots/theme.js';

const RULES = style.claim;

/** The claim of a verdict: the judged minima, their control, and a level {end, tolerance, peak, value, judged} by quantity. */
export class Claim {
  constructor(between, control, levels) {
    Object.assign(this, { between, control, levels });
  }

  /** The level of a quantity, if the plane passes through a minimum of the claim; else null. */
  level(plane, split, value) {
    const names = [...this.between, this.control].filter(Boolean);
    const there = names.some((name) => name in plane.points && !plane.isProjected(name));
    return (there && this.levels[`${split} ${value}`]) || null;
  }
}

/** @param paths as LiveExperiment has them; returns null without a verdict */
export function claimOf(verdict, paths) {
  if (verdict?.between?.length !== 2) return null;
  const [start, end] = verdict.between;
  const control = verdict.control?.name ?? null;
  const verdicts = { loss: verdict, error: verdict.test_error_verdict ?? {} };
  const joins = (path, one, other) =>
    (path.start === one && path.end === other) || (path.start === other && path.end === one);
  const lines = paths.filter(({ kind }) => kind === 'line');
  const judged = [...lines, ...paths.filter(({ kind }) => kind !== 'line')].filter((path) => joins(path, start, end));
  const beside = lines.filter((path) => joins(path, start, control));
  const levels = {};
  for (const split of Object.keys(judged[0]?.loss ?? {}))
    for (const [value, found] of Object.entries(verdicts)) {
      const level = levelOf(judged, beside, split, value, found);
      if (level) levels[`${split} ${value}`] = level;
    }
  return new Claim([start, end], control, levels);
}

/** Names of planes, those that show the claim first: through both minima and the control, then through both.
 *
 * `through`: the names of the points that define each plane.
 */
export function planesInOrder(through, between, control) {
  const rank = (name) => {
    const points = through[name];
    if (!between.every((minimum) => points.includes(minimum))) return 2;
    return points.includes(control) ? 0 : 1;
  };
  return Object.keys(through).sort((one, other) => rank(one) - rank(other));
}

function levelOf(judged, beside, split, value, { kind, tolerance: given }) {
  const along = judged[0][value][split];
  const end = Math.max(along[0], along.at(-1));
  if (!Number.isFinite(end)) return null;
  const values = [...judged, ...beside].flatMap((path) => [...(path[value][split] ?? [])]);
  const highest = values.reduce((top, each) => (Number.isFinite(each) && each > top ? each : top), end);
  // A quantity that the verdict does not judge has no tolerance contour.
  const tolerance = given || RULES.tolerance[value];
  const peak = Math.max(highest, end + RULES.least_room * tolerance);
  return { end, tolerance, peak, value: end + tolerance, judged: Boolean(given), floor: floorOf(judged[0], along, end, given, kind) };
}

/** Of a slope: the lowest value of the judged line plus the tolerance, where what is level with it ends; else null. */
function floorOf(path, along, end, tolerance, kind) {
  if (!tolerance || kind !== 'one basin, sloping' || path.kind !== 'line') return null;
  const floor = along.reduce((low, each) => (each < low ? each : low), Infinity) + tolerance;
  return floor < end ? floor : null;
}
