/** Differences of specs, field by field. Specs are compared with all their defaults, so that these are no differences. */

const MAPS = ['minima', 'curves', 'planes'];
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Every field of a spec by its path: {"training.lr": 0.1}. */
function flattened(value, path = '', found = {}) {
  if (!isObject(value)) found[path] = value;
  else for (const [key, entry] of Object.entries(value)) flattened(entry, path ? `${path}.${key}` : key, found);
  return found;
}

/** An entry that not all specs have is one difference, not one for each of its fields. */
function withWholeEntries(specs) {
  return specs.map((spec) => {
    const whole = {};
    const kept = { ...spec };
    for (const map of MAPS) {
      const shared = (name) => specs.every((other) => other[map]?.[name]);
      kept[map] = Object.fromEntries(Object.entries(spec[map] ?? {}).filter(([name]) => shared(name)));
      for (const other of specs) {
        for (const name of Object.keys(other[map] ?? {})) if (!shared(name)) whole[`${map}.${name}`] = spec[map]?.[name] ? 'yes' : 'no';
      }
    }
    return { ...flattened(kept), ...whole };
  });
}

/** A field of a minimum that only repeats the difference of `training`, or of the seed. */
function inherited(path, text, rows) {
  const [map, , ...field] = path.split('.');
  if (map !== 'minima') return false;
  return [`training.${field.join('.')}`, ...(field[0] === 'seed' ? ['seed'] : [])].some((parent) => rows.get(parent) === text);
}

/**
 * The fields in which specs differ, each with the values in the order of the specs.
 * @param {object[]} specs resolved: every field has its value
 */
export function differences(specs) {
  const flat = withWholeEntries(specs);
  const paths = [...new Set(flat.flatMap((fields) => Object.keys(fields)))];
  const found = paths
    .map((path) => ({ path, values: flat.map((fields) => fields[path]) }))
    .filter(({ values }) => new Set(values.map((value) => JSON.stringify(value))).size > 1);
  const rows = new Map(found.map(({ path, values }) => [path, JSON.stringify(values)]));
  return found.filter(({ path, values }) => !inherited(path, JSON.stringify(values), rows));
}
