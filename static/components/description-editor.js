import { element, uniqueId } from '../elements.js';
import { problem } from './problem.js';

/** The tags of a text with commas between them. */
export const readTags = (text) => text.split(',').map((tag) => tag.trim()).filter(Boolean);

/**
 * A form for the name, the tags and the note of an experiment, in place of them: Enter saves, Escape does not.
 * @param {{id: string, name: string, tags: string[], note: string}} experiment
 * @param {{api: object, onEnd: (changed: object | null) => void}} options onEnd: with the experiment as saved, or null
 * @returns {HTMLFormElement}
 */
export function descriptionEditor(experiment, { api, onEnd }) {
  const errors = element('div');
  const field = (label, input) => {
    input.id = uniqueId('describe');
    return element('div.field', {}, element('label', { for: input.id }, label), input);
  };
  const name = element('input', { type: 'text', value: experiment.name, required: true, maxLength: 120 });
  const tags = element('input', { type: 'text', value: experiment.tags.join(', '), placeholder: 'paper, wide' });
  const note = element('textarea', { rows: 2, maxLength: 4000 }, experiment.note);
  const save = element('button.primary', { type: 'submit' }, 'Save');
  const form = element('form.describe', { 'aria-label': `Describe ${experiment.name}`, onsubmit: async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      onEnd(await api.patch(`/api/experiments/${experiment.id}`, { name: name.value.trim(), tags: readTags(tags.value), note: note.value.trim() }));
    } catch (error) {
      save.disabled = false;
      const fields = Object.entries(error.fields ?? {}).map(([path, message]) => `${path}: ${message}`).join('\n');
      errors.replaceChildren(problem({ message: fields || error.message }));
    }
  } },
  field('name', name), field('tags, with commas between', tags), field('note', note), errors,
  element('div.row', {}, save, element('button', { type: 'button', onclick: () => onEnd(null) }, 'Cancel')));
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      onEnd(null);
    } else if (event.key === 'Enter' && event.target === note && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  queueMicrotask(() => { name.focus(); name.select(); }); // when it is on the page; later it would take the focus from what is typed
  return form;
}
