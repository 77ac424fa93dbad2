/** Values inside a spec, by path. */

export function valueAt(values, path) {
  return path.reduce((found, key) => (found === null || found === undefined ? undefined : found[key]), values);
}

/** Sets a value. Undefined removes it, and parents that become empty unless `kept` says to keep them. */
export function setValue(values, path, value, kept = () => false) {
  const [key, ...rest] = path;
  if (rest.length) {
    const inner = values[key] !== null && typeof values[key] === 'object' ? values[key] : {};
    setValue(inner, rest, value, (below) => kept([key, ...below]));
    if (Object.keys(inner).length || kept([key])) values[key] = inner;
    else delete values[key];
  } else if (value === undefined) {
    delete values[key];
  } else {
    values[key] = value;
  }
}

/** Renames an entry in place. */
export function renameKey(values, before, after) {
  for (const [key, value] of Object.entries(values)) {
    delete values[key];
    values[key === before ? after : key] = value;
  }
}

/** Updates references to a renamed minimum or curve. */
export function renameReferences(values, map, before, after) {
  const renamed = (name) => {
    if (map === 'minima' && name === before) return after;
    if (map === 'curves' && typeof name === 'string' && name.startsWith(`${before}.bend`)) return after + name.slice(before.length);
    return name;
  };
  const apply = (owner, fields) => fields.filter((field) => field in owner).forEach((field) => {
    owner[field] = Array.isArray(owner[field]) ? owner[field].map(renamed) : renamed(owner[field]);
  });
  for (const minimum of Object.values(values.minima ?? {})) apply(minimum, ['of']);
  for (const curve of Object.values(values.curves ?? {})) apply(curve, ['from', 'to']);
  for (const plane of Object.values(values.planes ?? {})) apply(plane, ['through', 'around', 'trajectory']);
  apply(values.verdict ?? {}, ['between', 'control']);
}

/** An unused name based on `base`. */
export function freeName(taken, base) {
  const clean = base.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^[^A-Za-z]+/, '').slice(0, 40) || 'minimum';
  let name = clean;
  for (let number = 2; taken.includes(name); number += 1) name = `${clean}-${number}`;
  return name;
}
