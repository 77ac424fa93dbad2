/** Describes the fields of a spec from the API's OpenAPI document, so the form offers what the server accepts. */

/**
 * @typedef {object} Field
 * @property {'object'|'map'|'union'|'choice'|'boolean'|'integer'|'number'|'text'|'list'|'tuple'|'json'} kind
 * @property {boolean} optional whether it may be left out
 * @property {string} description
 * @property {unknown} [fallback] the default
 * @property {Record<string, object>} [properties] of an object
 * @property {boolean} [open] whether an object may have further fields
 * @property {object} [items] schema of the entries of a map or list
 * @property {Record<string, object>} [variants] of a union, by the value of `tag`
 * @property {string} [tag]
 * @property {string[]} [choices]
 * @property {number} [length] of a tuple
 * @property {number} [most] entries of a map
 * @property {string} [title] of an object
 */
export class Schema {
  /** @param {object} document OpenAPI */
  constructor(document) {
    this.document = document;
  }

  /** The schema of a whole spec that POST `path` takes (the branch without a recipe). */
  submission(path = '/api/experiments') {
    const body = this.document.paths[path].post.requestBody.content['application/json'].schema;
    const branches = (body.oneOf ?? body.anyOf ?? [body]).map((branch) => this.resolve(branch));
    return branches.find((branch) => branch.properties.minima);
  }

  resolve(node) {
    if (!node.$ref) return node;
    const target = node.$ref.split('/').slice(1).reduce((found, key) => found[key], this.document);
    return { ...target, ...node, $ref: undefined, description: node.description ?? target.description };
  }

  /** @returns {Field} */
  describe(node, required = false) {
    const schema = this.resolve(node);
    const branches = schema.anyOf?.filter((branch) => branch.type !== 'null');
    const inner = branches?.length === 1 ? { ...this.resolve(branches[0]), description: schema.description } : schema;
    return {
      optional: !required,
      description: schema.description ?? '',
      fallback: schema.default,
      ...(schema['x-form'] === 'json' ? { kind: 'json' } : this.#shape(inner)), // fields that only JSON can write
    };
  }

  #shape(schema) {
    if (schema.discriminator) {
      const { propertyName: tag, mapping } = schema.discriminator;
      return { kind: 'union', tag, variants: Object.fromEntries(Object.entries(mapping).map(([name, ref]) => [name, this.resolve({ $ref: ref })])) };
    }
    if (schema.enum) return { kind: 'choice', choices: schema.enum };
    if (schema.const !== undefined) return { kind: 'choice', choices: [schema.const] };
    if (schema.prefixItems) return { kind: 'tuple', length: schema.prefixItems.length };
    if (schema.type === 'array') return { kind: 'list', items: this.resolve(schema.items) };
    if (schema.properties) {
      return { kind: 'object', properties: schema.properties, required: schema.required ?? [], open: schema.additionalProperties === true, title: schema.title };
    }
    if (schema.type === 'object' && schema.additionalProperties?.anyOf) return { kind: 'json' }; // a map of single values
    if (schema.type === 'object') return { kind: 'map', items: schema.additionalProperties, most: schema.maxProperties };
    return { kind: { boolean: 'boolean', integer: 'integer', number: 'number' }[schema.type] ?? 'text' };
  }
}

/** "batch_size" as "batch size". */
export const words = (name) => name.replaceAll('_', ' ');
