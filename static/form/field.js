import { element, uniqueId } from '../elements.js';
import { control } from './inputs.js';
import { words } from './schema.js';

/**
 * A form field with label, one-line hint and error message.
 * @param {import('./schema.js').Field} field
 * @param {{path: string[], label?: string, value: unknown, defaultValue?: unknown, choices?: () => [string, string][], none?: string,
 *          onchange: (value: unknown) => void}} options
 */
export function formField(field, { path, label = words(path.at(-1)), value, defaultValue, choices, none, onchange }) {
  const id = uniqueId('field');
  const made = control(field, { id, label, choices, none, onchange: () => onchange(made.read()) });
  const hint = element('p.hint', { id: `${id}-hint` }, withCode(field.description));
  const error = element('p.wrong', { id: `${id}-error`, hidden: true });
  const group = made.inputs.length > 1;
  made.showDefault(defaultValue);
  made.write(value);
  for (const input of made.inputs) input.setAttribute('aria-describedby', `${id}-hint ${id}-error`);
  const title = element(group ? 'span.label' : 'label.label', group ? { id: `${id}-label` } : { for: id }, label);
  if (group) {
    made.node.setAttribute('role', 'group');
    made.node.setAttribute('aria-labelledby', `${id}-label`);
  }
  return {
    node: element('div.field', { 'data-path': path.join('.') }, title, made.node, hint, error),
    focus: () => made.inputs[0].focus(),
    showDefault: made.showDefault,
    /** @param {string | null} message */
    showError: (message) => {
      error.textContent = message ?? '';
      error.hidden = !message;
      for (const input of made.inputs) {
        if (message) input.setAttribute('aria-invalid', 'true');
        else input.removeAttribute('aria-invalid');
      }
    },
  };
}

/** Text in which names of fields stand between backticks. */
function withCode(text) {
  return (text ?? '').split('`').map((part, index) => (index % 2 ? element('code', {}, part) : part));
}
