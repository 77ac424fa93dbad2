/** What hovering shows: a box of values at the pointer, and marks that move on the pictures. */

import { element } from '../elements.js';

/** One box for the whole view, beside the pointer and inside the window. */
export class Tooltip {
  node = element('div.tooltip', { role: 'status', hidden: true });

  /** @param {{title: string, rows: [string, string, string?][]}} content rows: name, value, colour */
  show({ title, rows }, { clientX, clientY }) {
    this.node.replaceChildren(
      element('p', {}, title),
      element('dl', {}, rows.map(([name, value, colour]) =>
        element('div', {},
          element('dt', {}, colour ? element('i.dot', { style: `background:${colour}` }) : null, name),
          element('dd', {}, value)))),
    );
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    const left = clientX + 16 + width > innerWidth - 8 ? clientX - width - 16 : clientX + 16;
    const top = Math.min(clientY + 16, innerHeight - height - 8);
    this.node.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  hide() {
    this.node.hidden = true;
  }
}

/** Replace the marks of a picture, and draw a vertical line at `rule`: {left, top, height}.
 *
 * `marks`: [{left, top, colour, minor, label}]; a minor mark is small, a label stands beside its mark.
 */
export function setMarks(plot, marks, rule = null) {
  const width = plot.overlay.clientWidth;
  const dots = marks.filter(Boolean).map(({ left, top, colour, minor, label }) =>
    element(minor ? 'i.mark.minor' : 'i.mark', { style: `left:${left}px;top:${top}px;--mark:${colour}` },
      label ? element(left > 0.6 * width ? 'span.before' : 'span', {}, label) : null));
  const line = rule
    ? [element('i.rule', { style: `left:${rule.left}px;top:${rule.top}px;height:${rule.height}px` })]
    : [];
  plot.overlay.replaceChildren(...line, ...dots);
}

/** Where a place of a scene is drawn, in pixels of the stage; null while there is no scene. */
export function scenePixel(plot, x, y, z) {
  const scene = plot.canvas._fullLayout?.scene?._scene;
  const camera = scene?.glplot?.cameraParams;
  if (!camera || !Number.isFinite(z)) return null;
  const [a, b, c] = scene.dataScale;
  const seen = [camera.model, camera.view, camera.projection].reduce(transformed, [x * a, y * b, z * c, 1]);
  const box = scene.container.getBoundingClientRect();
  const stage = plot.stage.getBoundingClientRect();
  return {
    left: box.left - stage.left + 0.5 * (1 + seen[0] / seen[3]) * box.width,
    top: box.top - stage.top + 0.5 * (1 - seen[1] / seen[3]) * box.height,
  };
}

/** A vector of four times a matrix of sixteen, column by column. */
function transformed(vector, matrix) {
  return [0, 1, 2, 3].map((row) => vector.reduce((sum, value, column) => sum + matrix[4 * column + row] * value, 0));
}
