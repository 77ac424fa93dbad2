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

/** A record with each of its values converted. */
export function each(record, convert) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, convert(value)]));
}

function numbers(list) {
  return list.map(fromJson);
}
