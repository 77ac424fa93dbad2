/** Stages and tasks of an experiment in words. */
export const STAGES = {
  minima: 'training the minima',
  curves: 'fitting the curves',
  surfaces: 'computing the surfaces',
  profiles: 'measuring the paths',
  curvature: 'measuring the curvature',
  verdict: 'computing the verdict',
};

const STEPS = {
  minima: 'train the minima',
  curves: 'fit the curves',
  surfaces: 'compute the surfaces',
  profiles: 'measure the paths',
  curvature: 'measure the curvature',
  verdict: 'judge',
};

/** The stages of an experiment, as [{name, words, state: 'done' | 'now' | 'next'}]. */
export function stepsOf({ stage, minima, planes, resolved }) {
  const pair = minima.length > 1;
  const curvature = Boolean(resolved?.curvature);
  const there = { curves: Object.keys(resolved?.curves ?? {}).length, surfaces: planes.length, profiles: pair, curvature, verdict: pair };
  const names = Object.keys(STEPS).filter((name) => name === stage || (there[name] ?? true));
  const now = names.indexOf(stage); // none while it is queued
  return names.map((name, index) => ({
    name,
    words: STEPS[name],
    state: index < now ? 'done' : index === now ? 'now' : 'next',
  }));
}

const TASKS = {
  train: (name) => `training ${name}`,
  fit: (name) => `fitting the curve ${name}`,
  frame: (name) => `placing the plane ${name}`,
  surface: (name, tile) => `computing part ${Number(tile) + 1} of the plane ${name}`,
  estimate: (name) => `estimating the plane ${name}`,
  picture: (name) => `drawing the estimated plane ${name}`,
  curve: (name) => `measuring the curve ${name}`,
  line: (name) => `measuring the line ${name}`,
  sharpness: (name) => `measuring the sharpness of ${name}`,
  compact: (name) => `removing the zero groups of ${name}`,
  ensemble: (name) => `averaging the set ${name}`,
  curvature: (name) => `measuring the curvature at ${name}`,
  'snapshot-curvature': (name, epoch) => `measuring the curvature at ${name} after epoch ${epoch}`,
  directions: (name) => `finding the flat subspace at ${name}`,
  trial: (name) => `putting the theorem to the test on ${name}`,
  verdict: () => 'computing the verdict',
};

/** A task, such as "surface:valley:3", in words. */
export function taskText(task) {
  const [kind, ...parts] = task.split(':');
  return TASKS[kind]?.(...parts) ?? task;
}
