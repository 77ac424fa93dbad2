/** Stages and tasks of an experiment in words. */
export const STAGES = {
  minima: 'training the minima',
  curves: 'fitting the curves',
  surfaces: 'computing the surfaces',
  profiles: 'measuring the paths',
  verdict: 'computing the verdict',
};

const TASKS = {
  train: (name) => `training ${name}`,
  fit: (name) => `fitting the curve ${name}`,
  frame: (name) => `placing the plane ${name}`,
  surface: (name, tile) => `computing part ${Number(tile) + 1} of the plane ${name}`,
  curve: (name) => `measuring the curve ${name}`,
  line: (name) => `measuring the line ${name}`,
  sharpness: (name) => `measuring the sharpness of ${name}`,
  compact: (name) => `removing the zero groups of ${name}`,
  verdict: () => 'computing the verdict',
};

/** A task, such as "surface:valley:3", in words. */
export function taskText(task) {
  const [kind, ...parts] = task.split(':');
  return TASKS[kind]?.(...parts) ?? task;
}
