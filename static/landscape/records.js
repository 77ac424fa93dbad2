/** Minima and paths as the API and the report send them, with numbers that JSON cannot carry put back. */

import { fromJson } from '../plots/numbers.js';

export function minimumOf(minimum) {
  return { ...minimum, epochs: each(minimum.epochs, numbers), final: each(minimum.final, fromJson) };
}

export function pathOf({ arc, loss, error, barrier, fit = {}, ...path }) {
  return {
    ...path,
    arc: numbers(arc),
    loss: each(loss, numbers),
    error: each(error, numbers),
    barrier: each(barrier, fromJson),
    fit: each(fit, numbers),
  };
}

/** The curvature of a minimum, as /curvature sends it. */
export function curvatureOf({ density, directions, trials, epochs, ...rest }) {
  const lists = ({ note, text, layers, scores, strength, zero, ...arrays }) =>
    ({ note, text, layers, scores, strength, zero, ...each(arrays, numbers) });
  return {
    ...rest,
    trace: fromJson(rest.trace),
    trace_error: fromJson(rest.trace_error),
    density: density && each(density, numbers),
    epochs: each(epochs, numbers),
    directions: directions && { ...directions, losses: each(directions.losses, numbers) },
    trials: each(trials, lists),
  };
}

/** A record with each of its values converted. */
export function each(record, convert) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, convert(value)]));
}

function numbers(list) {
  return list.map(fromJson);
}
