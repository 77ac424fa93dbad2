/** Differences of specs, field by field. */

/** Every field of a spec by its path: {"training.lr": 0.1}. */
function flattened(value, path = '', found = {}) {
  const nested = value !== null && typeof value === 'object' && !Array.isArray(value);
  if (!nested) found[path] = value;
  else for (const [key, entry] of Object.entries(value)) flattened(entry, path ? `${path}.${key}` : key, found);
  return found;
}

/** The fields in which specs differ, each with the values in the order of the specs. */
export function differences(specs) {
  const flat = specs.map((spec) => flattened(spec));
  const paths = [...new Set(flat.flatMap((fields) => Object.keys(fields)))];
  return paths
    .map((path) => ({ path, values: flat.map((fields) => fields[path]) }))
    .filter(({ values }) => new Set(values.map((value) => JSON.stringify(value))).size > 1);
}
